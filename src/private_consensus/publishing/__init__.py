"""Publish the reference results, and compare later runs with them.

``reference`` writes the folder of reference results, and checks that it contains no individual
records. ``manifest`` describes how the results were computed. ``differences`` lists the numbers of
a later run that changed.
"""

from .differences import compare
from .reference import publish

__all__ = ["compare", "publish"]
