"""Common bases of several algorithms, one module per family; no module here is an algorithm."""
