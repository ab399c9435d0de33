"""Compute each setting that several cells contain in one of these cells only.

Two settings are equal if their algorithm, problem, network, budget, horizon, seed and names of
random streams are equal. An omitted parameter equals its default value. The name of the graph's
stream is compared only if the graph is random. Of several cells with the same setting, the cell
with the most runs computes it, then the cell with the most settings, then the first. This order
excludes cycles.
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

_load = cache(algorithms.load)
"""Cached, because the registry searches the folder of algorithms on each call."""

Pair = tuple[str, str]
"""Experiment and algorithm."""

PARTS = ("problem", "network", "budget", "horizon")
"""Keys of a setting that have to be equal in addition to the algorithm."""
MEASURED = ("runs", "measures", "iterations", "intermediate_measures")
"""Keys of a cell that determine which measurements it requests from other cells."""


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
    common = {key: cell.get(key) for key in ("algorithm", "seed", "divergence", "averages")}
    return settings_hash(_as_floats([parameters(built), sections, groups, common]))


def _as_floats(value: Any) -> Any:
    """Convert integers to floats at all levels, so that 1 and 1.0 have equal hashes."""
    if isinstance(value, Mapping):
        return {key: _as_floats(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_as_floats(entry) for entry in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def reused_settings(cells: Mapping[Pair, Mapping[str, Any]]) -> dict[Pair, dict[str, Pair]]:
    """Map each cell to the settings that it reuses: their identity and the cell that computes them.

    Cells that compute all of their settings are absent. Audits and analyses reuse no settings.
    Tuned settings are not reused either, because they are known only after the tuning runs.
    """
    order = sorted(cells, key=lambda pair: (-cells[pair]["runs"], -len(cells[pair]["settings"])))
    first: dict[str, Pair] = {}
    reused: dict[Pair, dict[str, Pair]] = defaultdict(dict)
    for pair, setting in _recurring(cells, _with_equal_streams(cells, order)):
        name = identity(cells[pair], setting)
        if first.setdefault(name, pair) != pair:
            reused[pair][name] = first[name]
    return dict(reused)


def _with_equal_streams(
    cells: Mapping[Pair, Mapping[str, Any]], order: Iterable[Pair]
) -> list[list[Pair]]:
    """Group cells, in order, that have the same algorithm and the same random streams."""
    cells_by_streams: dict[str, list[Pair]] = defaultdict(list)
    for pair in order:
        kind = _load(pair[1])
        if kind.kind == METHOD and not kind.deterministic:
            cell = cells[pair]
            groups = {key: group for key, group in cell["groups"].items() if key != "graph"}
            cells_by_streams[settings_hash([pair[1], cell["seed"], groups])].append(pair)
    return [pairs for pairs in cells_by_streams.values() if len(pairs) > 1]


def _recurring(
    cells: Mapping[Pair, Mapping[str, Any]], cell_groups: Iterable[Sequence[Pair]]
) -> Iterator[tuple[Pair, Mapping[str, Any]]]:
    """Yield the settings that occur in several cells of a group.

    Only these settings need an identity, whose computation is slow.
    """
    for pairs in cell_groups:
        occurrences: dict[str, list[tuple[Pair, Mapping[str, Any]]]] = defaultdict(list)
        for pair in pairs:
            for setting in cells[pair]["settings"]:
                if "tuned" not in setting:
                    occurrences[str(_as_floats([setting[section] for section in PARTS]))].append(
                        (pair, setting)
                    )
        for equal_settings in occurrences.values():
            if len({pair for pair, _ in equal_settings}) > 1:
                yield from equal_settings


def requests_to(
    cells: Mapping[Pair, Mapping[str, Any]], reused: Mapping[Pair, Mapping[str, Pair]], pair: Pair
) -> list[dict[str, Any]]:
    """Return the measurements that other cells request from a cell, as plain JSON.

    Parameters
    ----------
    cells : mapping
        (experiment, algorithm) to the specification of the cell.
    reused : mapping
        Reused settings of each cell as :func:`reused_settings` returns them.
    pair : (str, str)
        Experiment and algorithm of the cell that computes the measurements.

    Returns
    -------
    list of dict
        Settings by identity, measures, iterations and number of runs. One or two requests per
        requesting cell: settings with and without measurements at intermediate iterations.
    """
    requests = []
    for requester, sources in reused.items():
        names = {name for name, source in sources.items() if source == pair}
        if names:
            cell = cells[requester]
            measured = {key: cell[key] for key in MEASURED if key in cell}
            restricted = any("intermediate" in setting for setting in cell["settings"])
            last_only = names - _measured_at_intermediate(cell) if restricted else set()
            requests += [
                {"settings": sorted(identities), **measured, **change}
                for identities, change in ((names - last_only, {}), (last_only, {"iterations": []}))
                if identities
            ]
    return requests


def _measured_at_intermediate(cell: Mapping[str, Any]) -> set[str]:
    """Return the identities of the settings that a cell measures at intermediate iterations."""
    return {
        identity(cell, setting) for setting in cell["settings"] if setting.get("intermediate", True)
    }
