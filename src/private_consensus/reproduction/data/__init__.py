"""Data sets: acquisition (cache, mirror, publisher or surrogate), preparation, partition to agents.

The first axis of all arrays is the record. Labels of tables are -1 and +1, labels of images 0 to 9,
and protected attributes 0 and 1. The checksum of the contents identifies real data. Surrogates are
named, with the reason, in the provenance, on the data card and in the log.
"""

from .catalogue import DATA_SETS, fingerprint
from .preparation import PREPARATIONS, Preparation, prepare
from .prepared import Prepared
from .raw import Provenance, read_acquired, write_provenance, write_raw

__all__ = [
    "DATA_SETS",
    "PREPARATIONS",
    "Preparation",
    "Prepared",
    "Provenance",
    "fingerprint",
    "prepare",
    "read_acquired",
    "write_provenance",
    "write_raw",
]
