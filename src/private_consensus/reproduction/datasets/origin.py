"""Provenance of acquired data sets."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Source, version, checksum and licence of an acquired data set.

    Parameters
    ----------
    source : {"publisher", "mirror", "surrogate"}
        Kind of the source.
    where : str
        Host of the publisher, ``mirror folder``, or ``generated here``.
    version : str
        Edition of the data set, or name of an excerpt.
    checksum : str
        SHA-256 of the canonical contents (see :mod:`.checksums`).
    because : str
        Reason for the use of this source: the errors of the sources that were tried before.
    licence : str
        Terms of use.
    """

    dataset: str
    source: str
    where: str
    version: str
    checksum: str
    because: str
    licence: str

    @property
    def is_surrogate(self) -> bool:
        """True if the data are a surrogate, which figures and tables have to state."""
        return self.source == "surrogate"

    @property
    def publishable(self) -> bool:
        """True if the licence allows the redistribution of records; that of IPUMS does not."""
        return "no redistribution" not in self.licence
