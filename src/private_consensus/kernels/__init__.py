"""Compiled kernels, each with a NumPy reference implementation for tests.

The package does not depend on algorithms or problems. Random samples are functions of a key and a
counter. Each run has its own key and is computed by one thread. Neither the number of threads nor
the vector width changes the samples.
"""
