"""Test that compiled rounds agree with the plain step, which defines them."""

import warnings

import numpy as np
import pytest

from observed import prepared_images
from private_consensus import networks
from private_consensus.common.errors import OutsideRange
from private_consensus.core.algorithms.base import stack
from private_consensus.core.algorithms.dsgd import DSGD
from private_consensus.core.algorithms.families import sampled_rounds
from private_consensus.core.algorithms.q_dpsgd_1 import QDPSGD1
from private_consensus.core.algorithms.q_dpsgd_2 import QDPSGD2
from private_consensus.core.algorithms.sdm_dsgd import SDMDSGD
from private_consensus.core.problems import perceptron
from private_consensus.core.randomness import Streams

AGENTS, HORIZON = 5, 3
STREAMS = Streams(0, (0, 1))
SHAPES = {"several blocks of columns": (50, 31), "less than a block": (20, 3)}
SIGMAS = (0.0, 2.0, 1.0)
BATCHES = {
    "q_dpsgd_1": [QDPSGD1(sigma=s, eta=eta, a0=a)
                  for s, eta, a in zip(SIGMAS, (0.1, 0.01, 0.2), (0.3, 0.5, 0.3), strict=True)],
    "q_dpsgd_1, open": [QDPSGD1(sigma=s, eta=0.01, grid="open") for s in SIGMAS],
    "q_dpsgd_2": [QDPSGD2(sigma=s, eta=eta)
                  for s, eta in zip(SIGMAS, (0.1, 0.01, 0.2), strict=True)],
    "q_dpsgd_2, own model": [QDPSGD2(sigma=s, own="exact") for s in SIGMAS],
    "dsgd": [DSGD(alpha=a) for a in (0.1, 0.2)],
    "dsgd, private": [DSGD(alpha=0.1, gradients="private", sigma=s) for s in SIGMAS],
    "sdm_dsgd": [SDMDSGD(alpha=0.1, c=c, sigma=s)
                 for s, c in zip(SIGMAS, (0.3, 0.9, 1.0), strict=True)],
}  # fmt: skip


def scene(inputs: int, hidden: int):
    images = prepared_images(350, 50, inputs)
    problem = perceptron.build(STREAMS, AGENTS, prepared=images, hidden=hidden, records=350)
    return problem, networks.build(STREAMS, "erdos_renyi", AGENTS, probability=0.6, scale=1.0)


def recorded_observables(batch, problem, network):
    recorded = []

    def observe(t, active, observables):
        arrays = {name: np.array(values) for name, values in observables.items()}
        recorded.append((t, arrays))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutsideRange)
        stack(batch).run(problem, network, STREAMS, np.full(len(batch), HORIZON), observe)
    return recorded


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", BATCHES)
def test_a_compiled_round_agrees_with_the_plain_step(name, shape, monkeypatch):
    """After the first round, 32-bit rounding errors may round a model to another grid point."""
    problem, network = scene(*SHAPES[shape])
    compiled = recorded_observables(BATCHES[name], problem, network)
    monkeypatch.setattr(sampled_rounds, "compiled_step", None)
    plain = recorded_observables(BATCHES[name], problem, network)
    for (t, compiled_arrays), (_, plain_arrays) in zip(compiled, plain, strict=True):
        assert compiled_arrays.keys() == plain_arrays.keys()
        for quantity, values in compiled_arrays.items():
            equal = np.isclose(values, plain_arrays[quantity], rtol=1e-6, atol=1e-5 * 10 ** (t - 1))
            assert equal.all() if t == 1 else equal.mean() > 0.999, (t, quantity)


class StoppedDSGD(DSGD):
    """DSGD whose models do not change."""

    def step(self, state, problem, network, release, t):
        return state


@pytest.mark.parametrize("kind", [StoppedDSGD, QDPSGD1])
def test_a_step_that_a_subclass_overrides_is_not_replaced_by_a_compiled_round(kind, monkeypatch):
    calls = []
    compiled = sampled_rounds.compiled_step
    monkeypatch.setattr(sampled_rounds, "compiled_step", lambda *a: calls.append(1) or compiled(*a))
    recorded_observables([kind(sigma=0.0)], *scene(20, 3))
    assert len(calls) == (0 if kind is StoppedDSGD else HORIZON)
