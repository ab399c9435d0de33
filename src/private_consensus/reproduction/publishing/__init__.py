"""Publish the reference results, and compare later runs with them.

``reference`` writes the folder of reference results. ``aggregates`` checks that it contains no
individual records, and ``manifest`` describes how the results were computed. ``comparison`` lists
the numbers of a later run that changed. ``profile`` lists the jobs with the largest CPU time.
"""

from .aggregates import require_aggregates
from .comparison import Comparison, compare
from .manifest import manifest
from .profile import beyond_limits, profile_table
from .reference import publish

__all__ = [
    "Comparison",
    "beyond_limits",
    "compare",
    "manifest",
    "profile_table",
    "publish",
    "require_aggregates",
]
