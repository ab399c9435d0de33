"""A study in a folder of one's own: written by :func:`write_study`, made by :func:`reproduce`.

The workflow, its configuration and its profile come with the package: in a clone they are where
they are edited, beside a package that is installed in ``_workflow``.
"""

from .places import HOME, SNAKEFILE
from .reproduction import reproduce
from .writing import write_study

__all__ = ["HOME", "SNAKEFILE", "reproduce", "write_study"]
