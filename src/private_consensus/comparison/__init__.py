"""Comparison of all private algorithms with a common design, accountant and observer per table.

:mod:`.design` expands ``config/comparison.yaml`` to cells, and :mod:`.schema` defines the columns
of the results. :mod:`.answers` collects the conclusions from :mod:`.ranks` (mean ranks, critical
differences), :mod:`.leaders` (methods that may be best in a cell), :mod:`.pareto`, :mod:`.gap`,
:mod:`.goals` and :mod:`.gains`. :mod:`.advice` and :mod:`.headline` state them as tested sentences.
"""
