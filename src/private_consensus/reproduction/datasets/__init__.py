"""Data sets: acquired (cache, mirror, publisher, surrogate), prepared, partitioned to agents.

Conventions: labels of tables are -1 and +1, of images 0 to 9; protected attributes are 0/1; the
first axis of everything is the record. Real data are checked by the checksum of their contents.
A surrogate is never used in silence: its provenance, its card and the log say so, and why.
"""

from private_consensus.core import partition

from .acquisition import Acquisition, acquire, read_acquired, suffix_of, write_provenance, write_raw
from .card import Card
from .catalogue import DATA_SETS, fingerprint
from .origin import Provenance
from .preparation import PREPARATIONS, Preparation, prepare
from .prepared import Prepared
from .summary import summary

__all__ = [
    "DATA_SETS",
    "PREPARATIONS",
    "Acquisition",
    "Card",
    "Preparation",
    "Prepared",
    "Provenance",
    "acquire",
    "fingerprint",
    "partition",
    "prepare",
    "read_acquired",
    "suffix_of",
    "summary",
    "write_provenance",
    "write_raw",
]
