"""Origin of a data set, which every figure of the data repeats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

SOURCES = ("publisher", "mirror", "surrogate")


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Origin of one acquired data set.

    Parameters
    ----------
    dataset : str
        Name of the data set.
    source : {"publisher", "mirror", "surrogate"}
        Kind of the source.
    where : str
        Host of the publisher or of a mirror's URL, ``mirror folder``, or ``generated here``.
    version : str
        Edition or excerpt.
    checksum : str
        SHA-256 of the canonical contents (see :mod:`.checksums`).
    because : str
        Reason for this source: sources that were tried before, with their errors.
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
        """Return True if the data were generated, so that figures and tables must say so."""
        return self.source == "surrogate"

    @property
    def publishable(self) -> bool:
        """Return True if the licence allows the redistribution of records; the licence of IPUMS
        does not.
        """
        return "no redistribution" not in self.licence

    def to_dict(self) -> dict[str, str]:
        """Return plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, str]) -> Provenance:
        """Build an origin from the values of :meth:`to_dict`."""
        return cls(**values)
