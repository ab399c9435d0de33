"""What a file of ``config/papers`` may say, and the paper that it stands for.

A file says each thing once: what most of its experiments have in common (``defaults``), grids
(``axes``), variants of algorithms, sets of curves, and titles, each by a name; experiments, figures
and claims name them and say what is their own. :func:`read_paper` puts it all in its place, so that
:mod:`..schema` and all that follows see an experiment, a figure and a claim that are complete.
``config/README.md`` has every key with an example.
"""

from .files import read_paper, schemas

__all__ = ["read_paper", "schemas"]
