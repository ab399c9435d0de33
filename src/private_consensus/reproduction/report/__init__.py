"""Write the report of a reproduction as one folder of pages that open offline.

``freshness`` rejects results that are not up to date, ``reading`` loads files, ``views`` prepares
the content of pages, ``page`` renders them, and ``site`` writes the folder.
"""

from .commands import described_commit
from .freshness import expected_stamps, require_current, require_whole, stale
from .page import extra_pages, page
from .reading import Results, made_beside, read_results
from .site import ASSETS, CHECKSUMS, DOWNLOADS, assets_hash, write_site
from .views.scorecard import FILES

__all__ = [
    "ASSETS",
    "CHECKSUMS",
    "DOWNLOADS",
    "FILES",
    "Results",
    "assets_hash",
    "described_commit",
    "expected_stamps",
    "extra_pages",
    "made_beside",
    "page",
    "read_results",
    "require_current",
    "require_whole",
    "stale",
    "write_site",
]
