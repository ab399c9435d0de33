"""Privacy: what is promised, what is let out, and what it costs."""
