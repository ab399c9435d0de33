"""Whether results were made by the code and the settings of now.

Snakemake reruns what is out of date, unless it is told not to (``--touch``, ``--rerun-triggers``)
or a file was copied in. The page is where such a result would mislead, so it asks again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import InvalidInput
from ..experiments.results import mark_of
from ..provenance import files_hash, settings_hash
from .commands import command

Stamp = Mapping[str, str]


def expected_stamps(
    entries: Iterable[tuple[Iterable[str], Any, str, Iterable[str]]],
) -> dict[str, dict[str, Any]]:
    """Stamps that current results carry.

    Parameters
    ----------
    entries : iterable of (paths, settings, code, prepared)
        Results of one job, what it is made with, the hash of the code that makes it, and the files
        of prepared data that it reads. Settings of ``None`` are not compared. Prepared data need
        not be there yet: their checksum is taken by :func:`require_current`.
    """
    return {
        path: _stamp(settings, code, prepared)
        for paths, settings, code, prepared in entries
        for path in paths
    }


def found_stamp(path: str | Path) -> dict[str, str]:
    """The stamp that a result carries: in a Parquet's metadata, or in a JSON's own keys; empty
    where there is no result."""
    if not Path(path).is_file():
        return {}
    if Path(path).suffix == ".json":
        return json.loads(Path(path).read_text())
    return mark_of(path)


def stale(found: Mapping[str, Stamp], expected: Mapping[str, Stamp]) -> dict[str, list[str]]:
    """Results that are not current, each with the parts of its stamp that differ.

    Parameters
    ----------
    found, expected : mapping
        Path to stamp, of what is there and of what there should be. A result that is expected
        and has no stamp is stale; one that nobody expects is nobody's business.
    """
    differences = {
        path: [part for part, value in stamp.items() if found.get(path, {}).get(part) != value]
        for path, stamp in expected.items()
    }
    return {path: parts for path, parts in differences.items() if parts}


def with_checksums(expected: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Expected stamps with the checksum of prepared data as they are now, in place of files."""
    checksum = cache(_checksum)
    return {
        path: {
            **{part: value for part, value in stamp.items() if part != "prepared"},
            "data": checksum(tuple(stamp["prepared"])),
        }
        for path, stamp in expected.items()
    }


def require_current(
    expected: Mapping[str, Mapping[str, Any]],
    *,
    scale: str,
    read: Callable[[str], Stamp] = found_stamp,
) -> None:
    """Refuse results that are not current.

    Parameters
    ----------
    expected : mapping
        From :func:`expected_stamps`.

    Raises
    ------
    InvalidInput
        Names the first such file and the command that makes it anew.
    """
    found = stale({path: read(path) for path in expected}, with_checksums(expected))
    if not found:
        return
    path, parts = next(iter(found.items()))
    more = f" ({len(found) - 1} more results are out of date)" if len(found) > 1 else ""
    raise InvalidInput(
        path,
        f"made with other {' and other '.join(parts)}",
        f"a current result; run `{command(path, scale, force=True)}`{more}",
    )


def _stamp(settings: Any, code: str, prepared: Iterable[str]) -> dict[str, Any]:
    known = {} if settings is None else {"settings": settings_hash(settings)}
    return {**known, "code": code, "prepared": list(prepared)}


def _checksum(prepared: tuple[str, ...]) -> str:
    try:
        return files_hash(prepared)
    except FileNotFoundError:  # what is not there has made no result
        return "missing"
