"""Every private algorithm on equal terms: one design, one accountant, one observer a table.

:mod:`.design` expands ``config/comparison.yaml`` to cells, :mod:`.schema` is what results look
like. From these :mod:`.ranks` (mean ranks, critical differences), :mod:`.leaders` (who may be best
in a cell), :mod:`.pareto`, :mod:`.gap` and :mod:`.goals` make the answers.
"""
