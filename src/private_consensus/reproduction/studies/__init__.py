"""Write a new study to a folder (:func:`write_study`) and compute it (:func:`reproduce`).

The package contains the workflow, its configuration and its profile. A clone of the repository has
them at its root; an installed package has them in ``_workflow``.
"""

from .places import HOME, SNAKEFILE
from .reproduction import reproduce
from .writing import write_study

__all__ = ["HOME", "SNAKEFILE", "reproduce", "write_study"]
