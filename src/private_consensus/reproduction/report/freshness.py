"""Comparison of results' stamps with the present code and settings.

Snakemake reruns what is out of date, unless it is told not to (``--touch``, ``--rerun-triggers``)
or a file was copied in. The page is where such a result would mislead, so it asks again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from private_consensus.common.errors import InvalidInput
from private_consensus.common.provenance import changed, files_hash, settings_hash
from private_consensus.common.readable import DAMAGED, read_json

from ..experiments.results import damaged, mark_of
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
    where there is no result, or one that cannot be read."""
    try:
        found = read_json(path) if Path(path).suffix == ".json" else mark_of(path)
    except InvalidInput:
        return {}
    return found if isinstance(found, dict) else {}


def stale(found: Mapping[str, Stamp], expected: Mapping[str, Stamp]) -> dict[str, list[str]]:
    """Results that are not current, each with the parts of its stamp that differ.

    Parameters
    ----------
    found, expected : mapping
        Path to stamp, of what is there and of what there should be. A result that is expected
        and has no stamp is stale; one that is not expected is ignored.
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
    """Refuse results that are not current, or not what was written.

    Parameters
    ----------
    expected : mapping
        From :func:`expected_stamps`.

    Raises
    ------
    InvalidInput
        Names the first such file and the command that makes it anew.
    """
    parts_of = stale({path: read(path) for path in expected}, with_checksums(expected))
    found: dict[str, str] = {}
    for path in expected:
        if not Path(path).is_file():
            found |= {path: "nothing"} if path in parts_of else {}
        elif lost := damaged(path):
            found |= dict.fromkeys(lost, DAMAGED)
        elif path in parts_of:
            found[path] = f"made with other {' and other '.join(parts_of[path])}"
    _refuse(found, scale)


def require_whole(listed: str | Path, *, scale: str) -> None:
    """Refuse a folder whose files are not what its list of checksums says.

    Parameters
    ----------
    listed : path
        JSON: the files' paths from its folder, each with its SHA-256.

    Raises
    ------
    InvalidInput
        Names the first such file and the command that makes it anew.
    """
    listed = Path(listed)
    try:
        found = changed(read_json(listed), listed.parent)
    except InvalidInput:
        found = [str(listed)]
    _refuse(dict.fromkeys(found, DAMAGED), scale, remake=str(listed))


def _refuse(found: Mapping[str, str], scale: str, remake: str = "") -> None:
    if not found:
        return
    path, because = next(iter(found.items()))
    more = f" ({len(found) - 1} more results are out of date)" if len(found) > 1 else ""
    call = command(remake or path, scale, force=True)
    raise InvalidInput(path, because, f"a current result; run `{call}`{more}")


def _stamp(settings: Any, code: str, prepared: Iterable[str]) -> dict[str, Any]:
    known = {} if settings is None else {"settings": settings_hash(settings)}
    return {**known, "code": code, "prepared": list(prepared)}


def _checksum(prepared: tuple[str, ...]) -> str:
    try:
        return files_hash(prepared)
    except FileNotFoundError:  # what is not there has made no result
        return "missing"
