"""The published reference results, and the comparison of later runs with them.

``reference`` writes the folder, ``aggregates`` keeps records out of it, ``manifest`` says what made
it, ``comparison`` finds the numbers of a later run that moved, ``profile`` the heaviest jobs.
"""

from .aggregates import require_aggregates
from .comparison import Comparison, compare
from .manifest import manifest
from .profile import beyond_limits, heaviest, profile_table
from .reference import publish

__all__ = [
    "Comparison",
    "beyond_limits",
    "compare",
    "heaviest",
    "manifest",
    "profile_table",
    "publish",
    "require_aggregates",
]
