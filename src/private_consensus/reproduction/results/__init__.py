"""Results: from a cell of the plan to the numbers of figures and tables.

``cells`` runs the settings of a cell, ``files`` and ``freshness`` write results and refuse outdated
ones, and ``numbers`` and ``tables`` compute what figures and tables show.
"""
