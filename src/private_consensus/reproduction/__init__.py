"""Reproduction of the papers: data, configuration, results, claims, statements and figures.

The subpackages, in the order of the workflow:

1. ``configuration`` reads ``config/papers``, checks it once, and plans the cells.
2. ``data`` downloads, verifies, encodes and scales the records.
3. ``results`` runs the cells, writes their files, and computes what figures and tables show.
4. ``figures`` draws the figures.
5. ``claims`` tests the claims of the papers, ``statements`` their theorems and errata.

``comparison`` ranks methods at equal true privacy.
``audits`` selects the settings of the papers that the package ``audits`` examines.
``studies`` applies these steps to experiments of a user. The packages ``report`` and ``publishing``
use the results.
"""
