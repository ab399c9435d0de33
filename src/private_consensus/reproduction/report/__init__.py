"""Write the report of a reproduction: a folder of HTML pages that can be read offline.

``reading`` loads the results, ``views`` prepares the content of the pages, ``page`` renders them,
and ``site`` writes the folder.
"""

from ..experiments.commands import described_commit
from ..experiments.results import CHECKSUMS
from .page import TOPICS, page
from .reading import Results, optional_parts, read_results
from .site import ASSETS, DOWNLOADS, assets_hash, write_site
from .views.scorecard import FILES

__all__ = [
    "ASSETS",
    "CHECKSUMS",
    "DOWNLOADS",
    "FILES",
    "TOPICS",
    "Results",
    "assets_hash",
    "described_commit",
    "optional_parts",
    "page",
    "read_results",
    "write_site",
]
