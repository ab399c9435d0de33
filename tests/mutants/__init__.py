"""A bench of broken copies: what an audit has to find, and correct algorithms that it must not."""
