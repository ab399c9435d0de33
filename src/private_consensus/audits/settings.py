"""Audits of settings that figures show: the very algorithm, noise, iterations and claim of a cell,
on neighbouring data that an attacker chose.

The bound holds for the setting, since a guarantee is one for all data. Where it stays below the
claim, nothing is contradicted; where an accountant says more than the claim, it shows how much of
that these data and this many runs make visible.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import binom

from ..aggregation import log_mass
from ..algorithms.base import stack
from ..algorithms.decentralized_sgd import DecentralizedSGD
from ..algorithms.functional_mechanism import FunctionalMechanism
from ..algorithms.q_dpsgd_2 import QDPSGD2
from ..algorithms.random_aggregation import RandomAggregation
from ..algorithms.sdm_dsgd import SDMDSGD
from ..errors import require
from ..experiments.cells import calibrated_cell, privacy_rows, worst_case
from ..privacy.audit import CONFIDENCE, TranscriptAudit, transcript_audit
from ..randomness import PURPOSES
from ..simulation import Setting, calibrated
from .asked import chosen
from .attained import least_epsilon, least_epsilon_from_zero
from .likelihood import overheard
from .neighbours import Neighbours, neighbours
from .transcripts import ROOT, Together, at_once

LEVEL, RATIO = "transcript of this setting", "likelihood ratio"
NOISED = "attack on the noised batches, computed"
ROUNDED = "attack on the first message from 0, computed"
SCHEMA = {
    **dict.fromkeys(("experiment", "algorithm", "variant", "setting", "level", "copy"), pl.String),
    **dict.fromkeys(("delta", "claimed", "bound", "ceiling"), pl.Float64),
    "runs": pl.Int64, "confidence": pl.Float64, "flagged": pl.Boolean,
}  # fmt: skip
MOST = 1_000_000
"""Outputs of a random aggregate that are looked at."""
NUMBERS = 2_000_000
"""About so many numbers are worked on at once."""
UNHEARD = 1e-9
"""Probability that a round of SDM-DSGD sends fewer coordinates, of a record that is in all alike,
than are counted on; it is added to delta."""
ARRAYS = 20
"""About so many arrays of all agents' coordinates are there at once in an iteration."""
EXACT = 1e-9
"""Relative to lengths, what counts as 0."""


def audit_cell(
    cell: Mapping[str, Any], entries: Iterable[Mapping[str, Any]], prepared: Mapping[str, Any],
    runs: int,
) -> list[dict[str, Any]]:  # fmt: skip
    """A row for each setting that is named and claims something."""
    rows = []
    for spec in chosen(cell, entries):
        calibration = calibrated_cell(cell, [spec], prepared)
        # of several statements the first is of the least change, which the data here make
        statement = privacy_rows(calibration, 0)[0]
        problem, (setting,) = calibration.problem, calibration.settings
        network = worst_case(calibration, 0).network
        if not np.isfinite(statement["epsilon_claimed"]):
            continue
        name = f"{cell['experiment']} {cell['algorithm']} {spec['variant']} {spec['columns']}"
        found = _found(setting, problem, network, runs, name)
        rows.append(_row(cell, spec, statement, found))
    return rows


def _row(cell, spec, statement, found: Mapping[str, Any]) -> dict[str, Any]:
    claimed = float(statement["epsilon_claimed"])
    return {
        "experiment": cell["experiment"], "algorithm": cell["algorithm"],
        "variant": spec["variant"], "setting": json.dumps(spec["columns"], sort_keys=True),
        "copy": "correct", "delta": float(statement["delta"]), "claimed": claimed, **found,
        "flagged": found["bound"] > claimed,
    }  # fmt: skip


def _found(setting: Setting, problem, network, runs: int, name: str) -> dict[str, Any]:
    """The bound: of sampled batches computed, else from transcripts."""
    if isinstance(setting.algorithm, DecentralizedSGD):
        level, bound = _computed(setting, problem, network)
        return {"level": level, "bound": bound, "ceiling": np.nan, "runs": 0, "confidence": 1.0}
    bound = audited(setting, problem, network, runs, name).bound
    return {
        "level": LEVEL, "bound": float(bound.epsilon), "ceiling": float(bound.ceiling),
        "runs": runs, "confidence": CONFIDENCE,
    }  # fmt: skip


def _computed(setting: Setting, problem, network) -> tuple[str, float]:
    algorithm = calibrated(setting, problem, network)
    if isinstance(algorithm, QDPSGD2):
        return ROUNDED, _from_zero(algorithm, setting, problem)
    noise, delta = algorithm.sampled(problem, setting.horizon), setting.budget.delta
    if isinstance(algorithm, SDMDSGD):
        heard = binom.ppf(UNHEARD, problem.dim, algorithm.c) / problem.dim
        noise = replace(noise, losses=tuple(loss * heard**0.5 for loss in noise.losses))
        delta += setting.horizon * UNHEARD
    return NOISED, least_epsilon(noise, algorithm.sigma, setting.horizon, delta)


def _from_zero(algorithm: QDPSGD2, setting: Setting, problem) -> float:
    require(algorithm.init == "zero", "audits.variant", setting.name, "a start at 0")
    a, e = algorithm.steps(float(setting.horizon))
    length = algorithm.K / algorithm.eta
    batch = algorithm.batches(), problem.records
    event = float(a * e * length), algorithm.sigma * length, problem.dim, setting.budget.delta
    return least_epsilon_from_zero(*batch, *event)


def audited(setting: Setting, problem, network, runs: int, name: str) -> TranscriptAudit:
    """The audit of one setting, ``runs`` on each of two neighbouring data sets."""
    algorithm = calibrated(setting, problem, network)
    delta = setting.budget.delta
    if isinstance(algorithm, RandomAggregation):
        ratios = _aggregates(algorithm, problem, network, runs, name)
        return transcript_audit(None, None, statistics=ratios, delta=delta)
    chosen = neighbours(problem, network, algorithm)
    worlds = [
        list(_played(algorithm, chosen, setting.horizon, runs, world, name)) for world in (0, 1)
    ]
    ratios, transcripts = zip(*(map(_joined, zip(*parts, strict=True)) for parts in worlds),
                              strict=True)  # fmt: skip
    if ratios[0] is not None:
        return transcript_audit(None, None, statistics={RATIO: ratios}, delta=delta)
    return transcript_audit(*transcripts, delta=delta)


def _aggregates(algorithm: RandomAggregation, problem, network, runs: int, name: str):
    """Log-likelihood ratios of single outputs, of each agent and coordinate, where the data move
    the interval by as much as they can."""

    def outputs(world: int) -> np.ndarray:
        streams = _fresh(runs, f"{name} {world}")
        seen: dict[str, Any] = {}
        world_of = problem, network, streams, np.array([1])
        stack([algorithm]).run(*world_of, lambda t, active, now: seen.update(now))
        return np.ravel(seen["released"])[:MOST] + world * algorithm.change

    middle = algorithm.omega / 2

    def ratio(x):
        away, closer = np.abs(x - middle), np.abs(x - middle - algorithm.change)
        one, other = (log_mass(r, algorithm.omega, algorithm.beta) for r in (away, closer))
        return one - other

    return {RATIO: (ratio(outputs(0)), ratio(outputs(1)))}


def _fresh(runs: int, label: str) -> Together:
    """Streams of runs that share nothing with those of another label, not even their start."""
    return Together(ROOT, tuple(range(runs)), dict.fromkeys(PURPOSES, label))


def _joined(parts):
    return None if parts[0] is None else np.concatenate(parts)


def _played(algorithm, chosen: Neighbours, horizon: int, runs: int, world: int, name: str):
    """Log-likelihood ratios and transcripts, some runs after the other so that they fit."""
    for part, count in enumerate(_parts(runs, chosen, horizon)):
        streams = _fresh(count, f"{name} {world} {part}")
        if isinstance(algorithm, FunctionalMechanism):
            yield _minimum(stack([algorithm]), chosen, world, streams)
        else:
            world_of = chosen.pair, world, chosen.network, horizon, chosen.direction
            yield tuple(overheard(algorithm, *world_of, streams))


def _parts(runs: int, chosen: Neighbours, horizon: int) -> Iterator[int]:
    problem = chosen.pair[0]
    # what is let out at once may be made of a matrix a run
    arrays = problem.dim if horizon == 1 else ARRAYS
    most = max(1, NUMBERS // (arrays * (problem.n_agents * problem.dim + horizon)))
    for first in range(0, runs, most):
        yield min(most, runs - first)


def _minimum(batch: FunctionalMechanism, chosen: Neighbours, world: int, streams: Together):
    r"""The minimiser that is let out. With an exact covariance g it lies on :math:`g^Tw = 0` with
    some probability, which tells g; else nothing is known but the minimiser itself."""
    sent = at_once(batch, chosen.pair[world], chosen.network, streams).sent[:, 0]
    if getattr(batch, "shift", "") != "raw":
        return None, sent
    lengths = np.linalg.norm(sent, axis=-1)
    on = [
        np.abs(sent[:, 0] @ problem.coefficients.covariance[0]) < EXACT * lengths[:, 0]
        for problem in chosen.pair
    ]
    return on[0].astype(float) - on[1], sent
