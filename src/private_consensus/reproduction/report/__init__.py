"""The page of a whole reproduction: results in, one folder that opens offline out.

``freshness`` refuses results that are not current, ``reading`` loads files, ``views`` shapes what
is read for a reader, ``page`` renders it, ``site`` writes the folder.
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
