"""Reproduction of the papers: data, experiments, claims, figures and report.

The subpackages, in the order of the workflow:

1. ``datasets`` downloads, verifies, encodes and scales the records.
2. ``experiments`` reads ``config/papers``, plans the cells, and computes them.
3. ``claims`` tests the claims of the papers, ``statements`` their theorems and errata.
4. ``plotting`` draws the figures, ``report`` writes the pages.
5. ``publishing`` compares a run with the reference results, and publishes new ones.

``audits`` and ``observers`` select the settings of the papers that the package ``audits`` examines.
``studies`` applies these steps to experiments of a user.
"""
