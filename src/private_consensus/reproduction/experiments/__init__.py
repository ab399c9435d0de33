"""From configuration to cells, and from a cell to its rows."""
