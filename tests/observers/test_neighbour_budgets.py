"""Test that claim observers_c07 compares two methods at equal privacy against neighbours."""

from pathlib import Path

import pytest

from private_consensus import networks
from private_consensus.audits.views.linear import observed_system
from private_consensus.core.algorithms.muffliato_gd import MuffliatoGD
from private_consensus.core.algorithms.zip_dl import ZipDL
from private_consensus.core.problems import mean_estimation
from private_consensus.core.randomness import Streams
from private_consensus.privacy import Budget, gaussian_mu
from private_consensus.privacy.observers import agent, all_victims
from private_consensus.reproduction.experiments.files import read_paper

EXPERIMENTS = read_paper(Path(__file__).parents[2] / "config" / "papers" / "observers.yaml")[
    "experiments"
]
EXPERIMENT = EXPERIMENTS["observers_extra_descent"]


@pytest.mark.parametrize(("name", "algorithm"), [("zip_dl", ZipDL), ("muffliato_gd", MuffliatoGD)])
def test_the_largest_loss_to_one_neighbour_is_epsilon_1(name, algorithm):
    variant = EXPERIMENT["algorithms"][name]["neighbour"]
    size = {key: EXPERIMENT["problem"][key] for key in ("records", "dim", "box")}
    streams = Streams(1, (0,))
    problem = mean_estimation.build(streams, EXPERIMENT["network"]["agents"], **size)
    network = networks.build(streams, **EXPERIMENT["network"])
    budget = Budget(variant["set"]["budget.epsilon"], EXPERIMENT["budget"]["delta"])
    horizon = EXPERIMENT["horizon"]
    calibrated = algorithm(eta=variant["set"]["algorithm.eta"]).calibrate(
        budget, problem, network, horizon
    )
    system = observed_system(calibrated, problem, network, horizon)
    # All agents of a ring are equivalent, so one observing agent suffices.
    [channel] = system.channels
    losses = all_victims(channel, agent(0), system.changes).values()
    assert max(loss.upper for loss in losses) == pytest.approx(
        float(gaussian_mu(1.0, budget.delta)), rel=1e-5
    )
