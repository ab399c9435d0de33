"""Share equal settings between cells, so that only one of the cells computes each setting.

Two settings are equal if their algorithm, problem, network, budget, horizon, seed and groups of
random streams are equal. A default parameter equals the same value written explicitly. A graph that
uses no random stream has no group. The lender is the cell with the most runs, then with the most
settings, then the first cell. This order excludes cycles of lenders.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from private_consensus.common.provenance import settings_hash
from private_consensus.core import algorithms
from private_consensus.core.algorithms.base import METHOD, parameters
from private_consensus.core.networks import drawn

# The registry looks into the folder of algorithms each time; a plan asks it a thousand times.
_load = cache(algorithms.load)

Pair = tuple[str, str]
"""Experiment and algorithm."""

PARTS = ("problem", "network", "budget", "horizon")
ASKED = ("runs", "measures", "iterations", "courses")
"""Keys of a cell that say what it asks of a lender."""


def identity(cell: Mapping[str, Any], setting: Mapping[str, Any]) -> str:
    """Return a hash that is equal for settings that describe the same computation.

    Parameters
    ----------
    cell : mapping
        The cell that contains the setting.
    setting : mapping
        One setting of the cell.

    Returns
    -------
    str
        Hash of the setting with all parameters of its algorithm.
    """
    groups = dict(cell["groups"])
    if not drawn(setting["network"]["name"]):
        del groups["graph"]
    built = _load(cell["algorithm"])(**setting["algorithm"])
    sections = {section: setting[section] for section in PARTS}
    how = {key: cell.get(key) for key in ("algorithm", "seed", "divergence", "averages")}
    return settings_hash(_plain([parameters(built), sections, groups, how]))


def _plain(value: Any) -> Any:
    """Convert integers to floats at all levels, so that 1 and 1.0 have equal hashes."""
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def lenders(cells: Mapping[Pair, Mapping[str, Any]]) -> dict[Pair, dict[str, Pair]]:
    """Map each cell that need not compute all of its settings to the cells that compute them, by
    identity of the setting.

    Audits and analyses compute their own settings. Tuned settings are not shared either, because
    they are known only after the tuning runs.
    """
    order = sorted(cells, key=lambda pair: (-cells[pair]["runs"], -len(cells[pair]["settings"])))
    first: dict[str, Pair] = {}
    shared: dict[Pair, dict[str, Pair]] = defaultdict(dict)
    for pair, setting in _recurring(cells, _alike(cells, order)):
        name = identity(cells[pair], setting)
        if first.setdefault(name, pair) != pair:
            shared[pair][name] = first[name]
    return dict(shared)


def _alike(cells: Mapping[Pair, Mapping[str, Any]], order: Iterable[Pair]) -> list[list[Pair]]:
    """Group cells, in order, that have equal streams and an equal algorithm."""
    together: dict[str, list[Pair]] = defaultdict(list)
    for pair in order:
        kind = _load(pair[1])
        if kind.kind == METHOD and not kind.deterministic:
            cell = cells[pair]
            groups = {key: group for key, group in cell["groups"].items() if key != "graph"}
            together[settings_hash([pair[1], cell["seed"], groups])].append(pair)
    return [pairs for pairs in together.values() if len(pairs) > 1]


def _recurring(
    cells: Mapping[Pair, Mapping[str, Any]], alike: Iterable[Sequence[Pair]]
) -> Iterator[tuple[Pair, Mapping[str, Any]]]:
    """Yield the settings that several cells describe identically.

    This filter leaves few settings, because computing an identity is slow.
    """
    for pairs in alike:
        occurrences: dict[str, list[tuple[Pair, Mapping[str, Any]]]] = defaultdict(list)
        for pair in pairs:
            for setting in cells[pair]["settings"]:
                if "tuned" not in setting:
                    occurrences[str(_plain([setting[section] for section in PARTS]))].append(
                        (pair, setting)
                    )
        for equal_settings in occurrences.values():
            if len({pair for pair, _ in equal_settings}) > 1:
                yield from equal_settings


def requests_to(
    cells: Mapping[Pair, Mapping[str, Any]], borrowed: Mapping[Pair, Mapping[str, Pair]], pair: Pair
) -> list[dict[str, Any]]:
    """Return the requests of other cells to a cell, as plain JSON: settings by identity,
    measures, and number of runs.

    Parameters
    ----------
    cells : mapping
        (experiment, algorithm) to the specification of the cell.
    borrowed : mapping
        Each borrowing cell to its reused settings, by identity, and their lenders.
    pair : (str, str)
        Experiment and algorithm of the lender.

    Returns
    -------
    list of dict
        One or two requests per borrowing cell: settings with and without intermediate iterations.
    """
    requests = []
    for borrower, sources in borrowed.items():
        names = {name for name, lender in sources.items() if lender == pair}
        if names:
            borrowing_cell = cells[borrower]
            measured = {key: borrowing_cell[key] for key in ASKED if key in borrowing_cell}
            short = any("course" in setting for setting in borrowing_cell["settings"])
            ends = names - _on_the_way(borrowing_cell) if short else set()
            requests += [
                {"settings": sorted(identities), **measured, **change}
                for identities, change in ((names - ends, {}), (ends, {"iterations": []}))
                if identities
            ]
    return requests


def _on_the_way(cell: Mapping[str, Any]) -> set[str]:
    """Return the identities of the settings that a cell measures at intermediate iterations."""
    return {identity(cell, setting) for setting in cell["settings"] if setting.get("course", True)}
