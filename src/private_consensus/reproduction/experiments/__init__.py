"""Experiments: from the configuration to cells, and from a cell to its measurements.

From configuration to plan: ``schema`` defines the keys of the files, ``files`` reads and expands
them, ``checks`` refuses unknown names and invalid settings, and ``plan`` has the cells.

From a cell to a figure: ``cells`` runs its settings, ``results`` and ``freshness`` write files and
refuse outdated ones, and ``numbers`` and ``tables`` compute what figures and tables show.
"""
