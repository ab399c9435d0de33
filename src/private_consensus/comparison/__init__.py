"""Every private algorithm on equal terms: one design, one accountant, one observer a table.

:mod:`.design` expands ``config/comparison.yaml`` to cells, :mod:`.schema` is what results look
like.
"""
