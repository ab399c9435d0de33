"""Test the configuration of observers, its pairs and their summary."""

from pathlib import Path

import numpy as np
import pytest

from private_consensus import algorithms
from private_consensus.audits.views import MAPPED, NOT_LINEAR, epsilon_for
from private_consensus.common import yamls
from private_consensus.common.errors import InvalidInput
from private_consensus.privacy import account
from private_consensus.privacy.observers import Eavesdropper, agent
from private_consensus.reproduction.observers.settings import (
    observed_in,
    pair_rows,
    read_observed,
    summary,
)

N, T = 5, 5
CONFIG = Path(__file__).parents[2] / "config" / "observers.yaml"


@pytest.fixture(scope="module")
def path_config():
    paper_config = read_observed(yamls.read(CONFIG)).at("paper")
    path = {"title": "path", "network": {"name": "path", "agents": N, "weights": "metropolis"}}
    small = {"graphs": {"path": path}, "epsilons": [4.0], "horizon": T}
    algorithm_names = ("descent", "muffliato", "decor", "ldp_admm")
    return {
        **paper_config,
        **small,
        "algorithms": {name: paper_config["algorithms"][name] for name in algorithm_names},
    }


@pytest.fixture(scope="module")
def rows(path_config):
    return pair_rows(path_config)


def test_rows_do_not_depend_on_the_number_of_processes(path_config, rows):
    assert repr(pair_rows(path_config, processes=2)) == repr(rows)


def test_every_configured_algorithm_has_a_linear_system_or_a_reason():
    paper_config = read_observed(yamls.read(CONFIG)).at("paper")
    for name in paper_config["algorithms"]:
        observables = observed_in(paper_config, "ring", name, 4.0)
        assert observables.system is not None or observables.reason


def test_every_algorithm_with_a_linear_system_is_configured():
    observer_config = read_observed(yamls.read(CONFIG))
    listed_names = {method.algorithm["name"] for method in observer_config.algorithms.values()}
    missing = sorted(set(MAPPED) - listed_names)
    assert not missing, f"add {', '.join(missing)} to `algorithms` in {CONFIG}"
    assert listed_names <= set(algorithms.names())
    assert set(MAPPED) | set(NOT_LINEAR) <= set(algorithms.names())
    assert not set(MAPPED) & set(NOT_LINEAR)


@pytest.mark.parametrize("epsilon", [1.0, 10.0])
def test_exact_admm_noise_is_calibrated_to_the_budget_of_the_full_run(path_config, epsilon):
    all_algorithms = read_observed(yamls.read(CONFIG)).at("paper")["algorithms"]
    observables = observed_in(
        {**path_config, "algorithms": all_algorithms}, "path", "exact_admm", epsilon
    )
    accounted = account(
        observables.algorithm.releases(observables.problem, observables.network, T), 1e-5
    )
    assert accounted.epsilon == pytest.approx(epsilon, rel=1e-9) and accounted.proven


def test_losses_of_dp_ci_are_within_epsilon_and_the_eavesdroppers_loss(path_config):
    """All losses are at most epsilon = 4.

    The loss of the agent at the other end of a path is positive and at most that to the
    eavesdropper.
    """
    all_algorithms = read_observed(yamls.read(CONFIG)).at("paper")["algorithms"]
    observables = observed_in({**path_config, "algorithms": all_algorithms}, "path", "dp_ci", 4.0)
    near, far = (epsilon_for(observables, agent(0), u, 1e-5) for u in (1, N - 1))
    eavesdropper_loss = epsilon_for(observables, Eavesdropper(), N - 1, 1e-5)
    assert 0 < far.formula <= eavesdropper_loss.formula * (1 + 1e-9)
    assert near.formula <= 4.0 * (1 + 1e-9) and eavesdropper_loss.formula <= 4.0 * (1 + 1e-9)


def test_every_ordered_pair_has_a_row_and_its_bounds_are_tight(rows):
    for name in ("descent", "muffliato", "ldp_admm"):
        agents = [row for row in rows if row["algorithm"] == name and row["kind"] == "agent"]
        pairs = {(int(row["members"]), row["target_agent"]) for row in agents}
        assert len(agents) == len(pairs) == N * (N - 1)
        for row in agents:
            assert row["distance"] == abs(int(row["members"]) - row["target_agent"])
            assert row["guarantee"] <= row["accounted"] * (1 + 1e-6)
    for row in rows:
        if not np.isnan(row["formula"]):
            assert row["lower"] <= row["formula"] <= row["lower"] * (1 + 1e-5) + 1e-12
            assert row["formula"] <= row["guarantee"] * (1 + 1e-6)


def test_privacy_amplification_depends_on_the_noise(rows):
    """Amplification depends on the noise.

    With fresh noise, neighbours gain little and distant agents nearly all. With noise in one round
    only, reachable agents gain nothing. With random weights, only distance helps.
    """
    by = {
        (row["algorithm"], row["kind"], row["distance"], row["pair"]): row["guarantee"]
        for row in summary(rows)
    }
    fresh = [by["descent", "agent", d, "worst"] for d in range(1, N)]
    assert fresh == sorted(fresh, reverse=True)
    assert fresh[0] > 0.9 * 4 and fresh[3] < 0.1 * 4
    once = [by["muffliato", "agent", d, "worst"] for d in range(1, N)]
    assert once == pytest.approx([4.0] * 4, rel=1e-4)
    assert (
        by["descent", "secure sums", None, "median"] < by["descent", "secure sums", None, "worst"]
    )
    random = [by["ldp_admm", "agent", d, "worst"] for d in range(1, N)]
    assert random == pytest.approx([4.0 * (T + 1 - d) / T for d in range(1, N)], rel=1e-2)
    assert max(random) <= 4  # pure privacy, and a little less at delta 1e-5


def test_non_private_algorithms_and_empty_epsilons_are_refused(path_config):
    broken = {**path_config, "algorithms": {"mine": {"title": "", "algorithm": {"name": "dgd"}}}}
    with pytest.raises(InvalidInput, match=r"inf|no noise"):
        observed_in(broken, "path", "mine", 4.0)
    with pytest.raises(InvalidInput, match="epsilons"):
        read_observed({**path_config, "epsilons": []})


def test_the_smoke_scale_is_a_subset_of_the_paper_scale():
    observed = read_observed(yamls.read(CONFIG))
    paper_config, smoke_config = observed.at("paper"), observed.at("smoke")
    assert smoke_config["algorithms"] == paper_config["algorithms"]
    assert set(smoke_config["epsilons"]) < set(paper_config["epsilons"])
    assert smoke_config["graphs"].items() < paper_config["graphs"].items()
    assert smoke_config["horizon"] < paper_config["horizon"]


@pytest.mark.parametrize(
    ("key", "value", "invalid_text"),
    [("graphs", ["torus"], "'torus'"), ("epsilons", [3.0], "3.0"), ("horizon", 9, "9")],
)
def test_a_smaller_scale_outside_of_the_paper_scale_is_refused(key, value, invalid_text):
    raw = yamls.read(CONFIG)
    raw["scales"]["smoke"][key] = value
    with pytest.raises(InvalidInput, match=f"scales.smoke.{key}: found {invalid_text}"):
        read_observed(raw)
