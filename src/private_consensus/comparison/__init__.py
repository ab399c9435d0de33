"""Comparison of all private algorithms with a common design, accountant and observer per table.

:mod:`.design` expands ``config/comparison.yaml`` to cells, and :mod:`.schema` defines the columns
of the results. :mod:`.answers` collects the conclusions from :mod:`.ranks` (mean ranks over
problems) and :mod:`.statistics` (best methods of a cell, Pareto fronts, budgets for goals, benefit
of tuning). :mod:`.advice` and :mod:`.headline` state them as tested sentences.
"""
