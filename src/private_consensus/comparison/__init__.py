"""Every private algorithm on equal terms: one design, one accountant, one observer a table.

:mod:`.design` expands ``config/comparison.yaml`` to cells, :mod:`.schema` is what results look
like. From these :mod:`.ranks` (mean ranks, critical differences), :mod:`.leaders` (who may be best
in a cell), :mod:`.pareto`, :mod:`.gap`, :mod:`.goals` and :mod:`.gains` make :mod:`.answers`;
:mod:`.advice` and :mod:`.headline` put them into sentences that are tested.
"""
