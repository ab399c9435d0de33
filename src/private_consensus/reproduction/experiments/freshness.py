"""Refuse results that the present code and settings would not reproduce.

Snakemake reruns outdated jobs, unless options disable this (``--touch``, ``--rerun-triggers``) or a
file was copied. Targets, the report and the published reference therefore compare the provenance of
each result (hashes of settings, code and data, its stamp) and the checksums of its files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from private_consensus.common.errors import InvalidInput, Refused
from private_consensus.common.provenance import files_hash, settings_hash
from private_consensus.common.readable import DAMAGED, read_json

from .results import damaged, provenance_of

MAX_TARGETS = 5
"""Largest number of results that the command in a message names."""


def expected_stamps(
    entries: Iterable[tuple[Iterable[str], Any, str, Iterable[str]]],
) -> dict[str, dict[str, Any]]:
    """Return the stamps that up-to-date results have, by path.

    Parameters
    ----------
    entries : iterable of (paths, settings, code, prepared)
        For each job: the paths of its results, its settings, the hash of its code, and the paths of
        the prepared data that it reads. Settings of ``None`` are not compared. The prepared data
        need not exist yet: :func:`require_current` computes their checksum.
    """
    return {
        path: {
            **({} if settings is None else {"settings": settings_hash(settings)}),
            "code": code,
            "prepared": list(prepared),
        }
        for paths, settings, code, prepared in entries
        for path in paths
    }


def actual_stamp(path: str | Path) -> dict[str, str]:
    """Return the stamp of a result, from the metadata of a Parquet file or the keys of a JSON file.

    The stamp is empty if the file is missing or cannot be read.
    """
    try:
        stamp = read_json(path) if Path(path).suffix == ".json" else provenance_of(path)
    except InvalidInput:
        return {}
    return stamp if isinstance(stamp, dict) else {}


def require_current(expected: Mapping[str, Mapping[str, Any]], *, scale: str) -> None:
    """Raise ``InvalidInput`` if a result is out of date or damaged.

    ``expected`` has the stamps of :func:`expected_stamps`; an empty stamp requires undamaged files
    only. The error names the first such file and the command that computes all of them again.
    """
    data_hash = cache(_data_hash)
    defects = {path: _defect(path, stamp, data_hash) for path, stamp in expected.items()}
    defects = {path: defect for path, defect in defects.items() if defect}
    for file, problem in defects.values():
        targets = command(" ".join(list(defects)[:MAX_TARGETS]), scale, force=True)
        count = len(defects) - MAX_TARGETS
        further = f" ({count} more results are out of date)" if count > 0 else ""
        remedy = f"a current result; run `{targets}`, with the --config of your run{further}"
        raise Refused([f"{file}: found {problem!r}, expected {remedy}"])


def _defect(
    path: str, expected: Mapping[str, Any], data_hash: Callable[[tuple[str, ...]], str]
) -> tuple[str, str] | None:
    """Return the file that makes a result unusable and the reason; None for a current result."""
    if not Path(path).is_file():
        return path, "nothing"
    if files := damaged(path):
        return files[0], DAMAGED
    stamp = {key: value for key, value in expected.items() if key != "prepared"}
    if "prepared" in expected:
        stamp["data"] = data_hash(tuple(expected["prepared"]))
    actual = actual_stamp(path)
    differences = [name for name in stamp if actual.get(name) != stamp[name]]
    return (path, f"made with other {' and other '.join(differences)}") if differences else None


def _data_hash(prepared: tuple[str, ...]) -> str:
    try:
        return files_hash(prepared)
    except FileNotFoundError:
        return "missing"


def command(target: str, scale: str, *, force: bool = False) -> str:
    """Return the shell command that builds a target, by default everything, at a scale.

    If ``force``, existing outputs are rebuilt.
    """
    words = ["snakemake", "--cores 2", "--force" if force else "", target]
    if scale != "paper":
        # The file comes last: Snakemake reads every later argument as a configuration file.
        words.append(f"--configfile config/{scale}.yaml")
    return " ".join(filter(None, words))
