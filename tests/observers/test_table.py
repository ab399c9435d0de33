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
def asked():
    found = read_observed(yamls.read(CONFIG)).at("paper")
    path = {"title": "path", "network": {"name": "path", "agents": N, "weights": "metropolis"}}
    small = {"graphs": {"path": path}, "epsilons": [4.0], "horizon": T}
    chosen = ("descent", "muffliato", "decor", "ldp_admm")
    return {**found, **small, "algorithms": {name: found["algorithms"][name] for name in chosen}}


@pytest.fixture(scope="module")
def rows(asked):
    return pair_rows(asked)


def test_rows_are_the_same_whoever_computes_them(asked, rows):
    assert repr(pair_rows(asked, processes=2)) == repr(rows)


def test_every_algorithm_of_the_configuration_can_be_observed():
    found = read_observed(yamls.read(CONFIG)).at("paper")
    for name in found["algorithms"]:
        seen = observed_in(found, "ring", name, 4.0)
        assert seen.system is not None or seen.reason


def test_every_algorithm_is_in_the_table_or_says_why_it_does_not_fit():
    found = read_observed(yamls.read(CONFIG))
    shown = {method.algorithm["name"] for method in found.algorithms.values()}
    assert set(MAPPED) <= shown
    assert set(algorithms.names()) <= shown | set(NOT_LINEAR)


@pytest.mark.parametrize("epsilon", [1.0, 10.0])
def test_a_paper_that_budgets_single_iterations_is_given_noise_for_the_whole_run(asked, epsilon):
    whole = read_observed(yamls.read(CONFIG)).at("paper")["algorithms"]
    seen = observed_in({**asked, "algorithms": whole}, "path", "exact_admm", epsilon)
    found = account(seen.algorithm.releases(seen.problem, seen.network, T), 1e-5)
    assert found.epsilon == pytest.approx(epsilon, rel=1e-9) and found.proven


def test_measurements_of_dp_ci_are_hidden_by_laplace_noise(asked):
    """No observer learns more than the eavesdropper, and late measurements do not arrive.

    One measurement belongs to an agent at the other end of a path.
    """
    whole = read_observed(yamls.read(CONFIG)).at("paper")["algorithms"]
    seen = observed_in({**asked, "algorithms": whole}, "path", "dp_ci", 4.0)
    near, far = (epsilon_for(seen, agent(0), u, 1e-5) for u in (1, N - 1))
    everything = epsilon_for(seen, Eavesdropper(), N - 1, 1e-5)
    assert 0 < far.formula <= everything.formula * (1 + 1e-9)
    assert near.formula <= 4.0 * (1 + 1e-9) and everything.formula <= 4.0 * (1 + 1e-9)


def test_every_ordered_pair_has_a_row_and_no_certificate_is_apart(rows):
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


def test_what_is_amplified_and_what_is_not(rows):
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


def test_what_cannot_be_observed_is_named(asked):
    broken = {**asked, "algorithms": {"mine": {"title": "", "algorithm": {"name": "dgd"}}}}
    with pytest.raises(InvalidInput, match=r"inf|no noise"):
        observed_in(broken, "path", "mine", 4.0)
    with pytest.raises(InvalidInput, match="epsilons"):
        read_observed({**asked, "epsilons": []})


def test_a_smaller_scale_asks_for_a_part_of_what_the_paper_scale_asks_for():
    observed = read_observed(yamls.read(CONFIG))
    whole, part = observed.at("paper"), observed.at("smoke")
    assert part["algorithms"] == whole["algorithms"]
    assert set(part["epsilons"]) < set(whole["epsilons"])
    assert part["graphs"].items() < whole["graphs"].items()
    assert part["horizon"] < whole["horizon"]


@pytest.mark.parametrize(
    ("key", "value", "found"),
    [("graphs", ["torus"], "'torus'"), ("epsilons", [3.0], "3.0"), ("horizon", 9, "9")],
)
def test_a_smaller_scale_asks_for_nothing_else(key, value, found):
    raw = yamls.read(CONFIG)
    raw["scales"]["smoke"][key] = value
    with pytest.raises(InvalidInput, match=f"scales.smoke.{key}: found {found}"):
        read_observed(raw)
