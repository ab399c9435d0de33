"""Experiments: from the configuration to cells, and from a cell to its measurements."""
