"""Write the report of a reproduction as one folder of pages that open offline.

``reading`` loads files, ``views`` prepares the content of pages, ``page`` renders them, and
``site`` writes the folder.
"""

from ..experiments.commands import described_commit
from ..experiments.results import CHECKSUMS
from .page import EXTRA, page
from .reading import Results, made_beside, read_results
from .site import ASSETS, DOWNLOADS, assets_hash, write_site
from .views.scorecard import FILES

__all__ = [
    "ASSETS",
    "CHECKSUMS",
    "DOWNLOADS",
    "EXTRA",
    "FILES",
    "Results",
    "assets_hash",
    "described_commit",
    "made_beside",
    "page",
    "read_results",
    "write_site",
]
