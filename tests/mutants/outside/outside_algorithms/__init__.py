"""One module per algorithm; each module ends with its class as ``ALGORITHM``."""
