"""The interface of data set modules: routes to a publisher, and the access that they get."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from private_consensus.common.secrets import key_in

from .catalogue import Publisher
from .downloads import Downloads
from .patience import Patience

Raw = pl.DataFrame | Mapping[str, np.ndarray]
"""A table in its canonical schema, or named arrays of images and labels."""


@dataclass(frozen=True, kw_only=True)
class Access:
    """Means to reach a publisher: a budget of seconds and a folder for downloads."""

    patience: Patience
    downloads: Downloads


@dataclass(frozen=True, kw_only=True)
class Route:
    """Download source: a publisher and the function that fetches canonical contents.

    Parameters
    ----------
    publisher : Publisher
        Row of the table of sources.
    fetch : callable
        ``(access, publisher) -> raw``; raises ``Unavailable``.
    key : str, optional
        Environment variable without which this way is closed.
    """

    publisher: Publisher
    fetch: Callable[[Access, Publisher], Raw]
    key: str | None = None

    @property
    def has_key(self) -> bool:
        """Return True if the key that this source needs is set."""
        return self.key is None or key_in(self.key) is not None
