"""Reproduction of the papers: data, experiments, claims, theorems and figures.

The subpackages, in the order of the workflow:

1. ``datasets`` downloads, verifies, encodes and scales the records.
2. ``experiments`` reads ``config/papers``, plans the cells, and computes them.
3. ``claims`` tests the claims of the papers, ``statements`` their theorems and errata.
4. ``plotting`` draws the figures.

``audits`` selects the settings of the papers that the package ``audits`` examines.
``studies`` applies these steps to experiments of a user. The packages ``report`` and ``publishing``
use the results.
"""
