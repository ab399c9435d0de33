"""Test that the private ADMM of the documentation works as the page states."""

import importlib.util
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import conformance
from private_consensus import algorithms, networks
from private_consensus.audits.auditing import audit
from private_consensus.audits.examples import examples, mean_estimation
from private_consensus.core.algorithms.base import stack
from private_consensus.privacy import Budget, account

ROOT = Path(__file__).parents[2]
BLOCKS = dict(
    re.findall(
        r"^`(\S+)`:\n\n```\w+\n(.*?)^```",
        "\n".join(
            (ROOT / "docs/how-to" / name).read_text()
            for name in ("add_an_algorithm.md", "add_a_paper.md")
        ),
        re.MULTILINE | re.DOTALL,
    )
)
FILE = "src/private_consensus/core/algorithms/relaxed_admm.py"
BUDGET = Budget(2.0, 1e-5)


@pytest.fixture
def relaxed(tmp_path, monkeypatch):
    """Return the algorithm of the documentation page, loaded through the registry."""
    module = "private_consensus.core.algorithms.relaxed_admm"
    path = tmp_path / "relaxed_admm.py"
    path.write_text(BLOCKS[FILE])
    spec = importlib.util.spec_from_file_location(module, path)
    monkeypatch.setitem(sys.modules, module, importlib.util.module_from_spec(spec))
    spec.loader.exec_module(sys.modules[module])
    elsewhere = algorithms._elsewhere()
    monkeypatch.setattr(algorithms, "_elsewhere", lambda: {**elsewhere, "relaxed_admm": module})
    return algorithms.load("relaxed_admm")


def test_calibrated_noise_uses_the_full_budget_and_scales_with_theta(relaxed):
    _, problem, network, *_ = examples("relaxed_admm")[0].world
    done = relaxed(theta=0.25).calibrate(BUDGET, problem, network, 6)
    guarantee = account(done.releases(problem, network, 6), BUDGET.delta)
    assert guarantee.proven and guarantee.epsilon == pytest.approx(BUDGET.epsilon, rel=1e-6)
    unrelaxed = relaxed(theta=1.0).calibrate(BUDGET, problem, network, 6)
    assert unrelaxed.noise == pytest.approx(4 * done.noise, rel=1e-6)


def test_without_noise_relaxed_admm_converges_to_the_mean_of_all_agents(relaxed, streams):
    problem = mean_estimation()
    network = networks.build(streams, "ring", problem.n_agents, weights="metropolis")
    last = {}
    stack([relaxed(theta=0.5)]).run(
        problem,
        network,
        streams,
        np.array([300]),
        lambda t, active, observables: last.update(observables),
    )
    expected = np.broadcast_to(problem.target[..., None, :], last["released"].shape)
    assert last["released"] == pytest.approx(expected, abs=1e-8)


def test_relaxed_admm_passes_the_conformance_checks(relaxed):
    conformance.check("relaxed_admm")


def test_an_audit_flags_a_copy_with_a_quarter_of_the_noise_but_not_relaxed_admm(relaxed):
    class Hasty(relaxed):
        def mechanisms(self, problem, network, horizon):
            (message,) = super().mechanisms(problem, network, horizon).values()
            return {"message": replace(message, sensitivity=[s / 4 for s in message.sensitivity])}

    instance = examples("relaxed_admm")[0].world
    verdicts = [
        audit(algorithm_class(), *instance[1:4], 2, pairs=6).verdict
        for algorithm_class in (relaxed, Hasty)
    ]
    assert verdicts == ["not contradicted", "understated"]
