"""Write the report of a reproduction: a folder of HTML pages that can be read offline.

``reading`` loads the results, ``views`` prepares the content of the pages, ``page`` renders them,
and ``site`` writes the folder.
"""

from .reading import described_commit, read_results
from .site import assets_hash, write_site

__all__ = [
    "assets_hash",
    "described_commit",
    "read_results",
    "write_site",
]
