"""Properties that every algorithm must have, tested on its small example.

The results of a batch of settings equal those of its settings one by one, a run does not depend on
the number of runs, and seeds determine all random numbers.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from private_consensus.audits.examples import examples
from private_consensus.common.errors import InvalidInput
from private_consensus.core.algorithms.base import Algorithm, Analysis, parameters, stack
from private_consensus.core.networks import Network
from private_consensus.core.randomness import Streams

RUNS = 3
ROOT = 11
RTOL, ATOL = 1e-9, 1e-11
"""Tolerances for sums of arrays of different shapes, which are rounded in different orders."""

Shown = dict[tuple[int, int, str], np.ndarray]
"""Values of all runs, by setting, iteration and quantity."""


class CalibratedRun(NamedTuple):
    """Calibrated algorithm with its problem, network and number of iterations."""

    algorithm: Algorithm
    problem: Any
    network: Network
    horizon: int


def world_of(name: str) -> CalibratedRun:
    """Return the calibrated run of an algorithm on its small example."""
    algorithm, problem, network, budget, horizon = examples(name)[0].setting
    calibrated = algorithm.calibrate(budget, problem, network, horizon)
    return CalibratedRun(calibrated, problem, network, horizon)


def check(name: str) -> None:
    """Run every check of this module on the example of a registered algorithm.

    A failed check raises an ``AssertionError`` that names the difference.
    """
    instance = world_of(name)
    for test in CHECKS:
        test(instance)


def batch_equals_its_settings(
    instance: CalibratedRun, *, variant: Algorithm | None = None, exact: bool = False
) -> None:
    """Check that a batch of two settings equals the settings one by one, byte by byte if ``exact``.

    The second setting is ``variant``; by default, it has other numbers than the first.
    """
    second = varied(instance.algorithm) if variant is None else variant
    settings = [instance.algorithm, second, instance.algorithm]
    horizons = [max(1, instance.horizon - 1), instance.horizon, instance.horizon]
    batch_observables = shown(instance, settings, horizons, RUNS)
    for index, (setting, horizon) in enumerate(zip(settings, horizons, strict=True)):
        single_observables = shown(instance, [setting], [horizon], RUNS)
        keys_of_setting = {key[1:] for key in batch_observables if key[0] == index}
        assert keys_of_setting == {key[1:] for key in single_observables}, (
            f"setting {index} shows other quantities alone"
        )
        for (_, t, quantity), values in single_observables.items():
            batched = batch_observables[index, t, quantity]
            text = f"{quantity} at {t}"
            np.testing.assert_allclose(batched, values, rtol=RTOL, atol=ATOL, err_msg=text)
            assert not exact or np.array_equal(batched, values), text


def more_runs_change_nothing(instance: CalibratedRun) -> None:
    """Check that the results of a run do not depend on the number of runs."""
    fewer_runs, more_runs = (
        shown(instance, [instance.algorithm], [instance.horizon], runs) for runs in (RUNS, RUNS + 2)
    )
    assert fewer_runs.keys() == more_runs.keys(), "more runs show other quantities"
    for key, values in fewer_runs.items():
        if len(values) == RUNS:
            again = more_runs[key][:RUNS]
            np.testing.assert_allclose(again, values, rtol=RTOL, atol=ATOL, err_msg=str(key))


def seeds_are_all_randomness(instance: CalibratedRun, *, noisy: bool = True) -> None:
    """Check that equal seeds lead to byte-identical outputs, and different seeds to other noise."""
    first, again, other_seed = (
        shown(instance, [instance.algorithm], [instance.horizon], RUNS, root)
        for root in (ROOT, ROOT, ROOT + 1)
    )
    bytes_of = [
        {key: values.tobytes() for key, values in observables.items()}
        for observables in (first, again)
    ]
    assert bytes_of[0] == bytes_of[1], "the same seed gives other numbers"
    differ = any(first[key].tobytes() != other_seed[key].tobytes() for key in first)
    assert differ or not noisy, "another seed gives the same numbers"
    assert not (differ and isinstance(instance.algorithm, Analysis)), (
        "the algorithm is declared deterministic, but its outputs depend on the seed"
    )


CHECKS: tuple[Callable[[CalibratedRun], None], ...] = (
    batch_equals_its_settings, more_runs_change_nothing, seeds_are_all_randomness,
)  # fmt: skip


def shown(
    instance: CalibratedRun,
    settings: list[Algorithm],
    horizons: list[int],
    runs: int,
    root: int = ROOT,
) -> Shown:
    """Return the observables of settings in some runs, by setting, iteration and quantity."""
    observables_by_key: Shown = {}

    def keep(t: int, active: np.ndarray, observables: Mapping[str, Any]) -> None:
        for position, setting in enumerate(active):
            for quantity, values in observables.items():
                observables_by_key[int(setting), t, quantity] = np.array(values[position])

    streams = Streams(root, tuple(range(runs)))
    problem = instance.problem.repeated(runs)
    stack(settings).run(problem, instance.network, streams, np.array(horizons), keep)
    return observables_by_key


def varied(algorithm: Algorithm) -> Algorithm:
    """Return a copy in which every float is reduced by 10 % where the parameter permits it."""
    for name, value in parameters(algorithm).items():
        if isinstance(value, float) and np.isfinite(value) and value:
            try:
                algorithm = replace(algorithm, **{name: 0.9 * value})
            except InvalidInput:
                continue
    return algorithm
