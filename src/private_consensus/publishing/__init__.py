"""Publish the reference results, and compare later runs with them.

``reference`` writes the folder of reference results, and checks that it contains no individual
records. ``manifest`` describes how the results were computed. ``comparison`` lists the numbers of a
later run that changed. ``profile`` lists the jobs with the largest CPU time.
"""

from .comparison import compare
from .profile import beyond_limits, profile_table
from .reference import publish

__all__ = [
    "beyond_limits",
    "compare",
    "profile_table",
    "publish",
]
