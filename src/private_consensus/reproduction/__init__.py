"""Reproduction of the papers: data, experiments, claims, figures and report.

The modules follow the path of the data:

1. ``datasets`` downloads, verifies, encodes and scales the records.
2. ``experiments`` reads ``config/papers`` and plans and computes the cells.
3. ``claims`` and ``statements`` judge what the papers claim and prove.
4. ``plotting`` draws the figures, ``report`` writes the pages.
5. ``publishing`` compares a run with the reference and publishes it.

``audits`` and ``observers`` select the settings of the papers that the package ``audits``
examines. ``studies`` applies the same steps to a user's own experiments.
"""
