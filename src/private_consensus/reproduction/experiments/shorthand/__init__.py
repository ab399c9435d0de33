"""Expand the abbreviated files of ``config/papers`` to complete papers.

A file states each fact once. Common parts of experiments (``defaults``), grids (``axes``), variants
of algorithms, sets of curves, and titles have names. Experiments, figures and claims refer to these
names and add their specific parts. :func:`read_paper` resolves all references, so that
:mod:`..schema` and later modules receive complete experiments, figures and claims.
``config/README.md`` lists every key with an example.
"""

from .files import read_paper, schemas

__all__ = ["read_paper", "schemas"]
