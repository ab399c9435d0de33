"""Test the names of random streams, which determine the seeds of all published numbers."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from private_consensus.core.algorithms.base import stack
from private_consensus.core.randomness import Streams, generator
from worlds import world

START, NOISE = "data start", "noise "
ROUNDS = {"data initial", "noise noise", "sampling records", "sampling speeds"}
POLYNOMIAL = {"noise fairness", "noise linear", "noise quadratic"}
NAMES = {
    "admm": {START},
    "canary_audit": ROUNDS | {"noise rounding", "data canaries"},
    "coordinate_descent": {START, NOISE, "sampling coordinate"},
    "d_zoa": {NOISE},
    "decor": {NOISE},
    "dgd": {START},
    "dp_admm": {NOISE},
    "dp_ci": {NOISE, "noise initial message", "data observations"},
    "dp_ci_moments": set(),
    "dsgd": ROUNDS,
    "dvp": {START, NOISE},
    "exact_admm": {NOISE},
    "fair_classification": POLYNOMIAL,
    "gradient_descent": {NOISE},
    "ipp_admm": {START, "noise output", "noise query", "noise threshold"},
    "inca": {NOISE, "noise cancelling"},
    "ldp_admm": {START, NOISE, "sampling weights"},
    "ldp_gradient_descent": {START, NOISE, "sampling weights"},
    "ldp_subgradient": {START, NOISE, "sampling weights"},
    "local_random_walk": {NOISE, "data first", "sampling walk"},
    "local_training": {NOISE},
    "logistic": set(),
    "m_admm": {START, NOISE},
    "mafalda_sgd": {NOISE},
    "muffliato": {NOISE},
    "muffliato_gd": {NOISE},
    "one_shot_averaging": {NOISE},
    "p_admm": {START, NOISE},
    "pdop": {START, NOISE},
    "pflr": POLYNOMIAL,
    "pp_admm": {START, "noise output"},
    "pp_admm_renyi": {START, NOISE, "noise output"},
    "pr_admm": {START, NOISE},
    "q_dpsgd_1": ROUNDS | {"noise rounding"},
    "q_dpsgd_2": ROUNDS | {"noise rounding", "noise discrete"},
    "r_admm": {START, NOISE},
    "random_walk_sgd": {NOISE, "data first", "sampling walk"},
    "random_aggregation": {NOISE, "sampling weights"},
    "release_audit": {NOISE},
    "sdm_dsgd": ROUNDS | {"noise mask"},
    "secure_aggregation": {NOISE},
    "whisper_dsgd": {NOISE},
    "zip_dl": {NOISE},
}  # fmt: skip
"""Purpose and name of each random stream that an algorithm uses in its small example."""


@dataclass(frozen=True)
class Recording(Streams):
    """Streams that record the names of all requested streams."""

    requested: set[str] = field(default_factory=set)

    def generators(self, purpose: str, name: str = "") -> list[np.random.Generator]:
        self.requested.add(f"{purpose} {name}")
        return super().generators(purpose, name)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_an_algorithm_uses_exactly_its_listed_random_streams(name):
    algorithm, problem, network, horizon = world(name)
    streams = Recording(0, (0,))
    arguments = problem.repeated(1), network, streams, np.array([horizon])
    stack([algorithm]).run(*arguments, lambda t, active, observables: None)
    assert streams.requested == NAMES[name]


def test_the_stream_name_is_part_of_the_seed_key():
    output_stream, output_noise_stream = (
        Streams(0, (3,), {"noise": "figure method"}).generators("noise", name)[0]
        for name in ("output", "output_noise")
    )
    assert output_stream.random() == generator(0, "noise", "figure method", 3, "output").random()
    assert output_stream.random() != output_noise_stream.random()
