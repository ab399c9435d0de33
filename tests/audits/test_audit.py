"""Test that the audit accepts correct algorithms and finds faults in broken ones."""

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
import pytest

import private_consensus
from private_consensus import algorithms, networks
from private_consensus.audits.audit import EARLY
from private_consensus.audits.checks import messages_declared, noise_found, sites_and_releases
from private_consensus.audits.evidence import Evidence
from private_consensus.audits.examples import examples
from private_consensus.audits.neighbours import attacks
from private_consensus.audits.result import AuditResult, Coverage, Finding, Untested
from private_consensus.common.errors import InvalidInput
from private_consensus.core.algorithms.base import Iterative, NoiseSite, column
from private_consensus.core.problems.logistic_regression import LogisticRegression
from private_consensus.core.problems.mean_estimation import MeanEstimation
from private_consensus.core.randomness import Streams, generator
from private_consensus.privacy import DIFFERS, Budget, Release, account, gaussian_mu
from private_consensus.privacy.audit.families import claim_p_value
from private_consensus.privacy.audit.sequential import planned_looks

RUNS, CONFIDENCE, HORIZON = 1600, 0.99, 4


class State(NamedTuple):
    """Iterates that the agents release as messages."""

    y: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Gossip(Algorithm):
    """Gossip averaging of values with noise added once, as in the page on adding an algorithm."""

    sigma: float = 0.0

    def sensitivity(self, problem):
        return problem.record_change("l2") / problem.records

    def calibrate(self, budget, problem, network, horizon):
        return replace(self, sigma=self.sensitivity(problem) / gaussian_mu(*astuple(budget)))

    def releases(self, problem, network, horizon):
        return [Release("gaussian", sensitivity=self.sensitivity(problem), scale=self.sigma)]

    def start(self, problem, network, streams, settings):
        unit = streams.draw("noise", "normal", (problem.n_agents, problem.dim))
        return State(
            problem.means + column(self.sigma) * np.broadcast_to(unit, (settings, *unit.shape))
        )

    def step(self, state, problem, network, draw, t):
        return State(network.mix(state.y))

    def observables(self, state, problem, t):
        return {"released": state.y}


def astuple(budget):
    return budget.epsilon, budget.delta


@dataclass(frozen=True, kw_only=True)
class HalfNoise(Gossip):
    """Fault: gossip with half of the declared noise."""

    def start(self, problem, network, streams, settings):
        return Gossip.start(
            replace(self, sigma=self.sigma / 2), problem, network, streams, settings
        )


@dataclass(frozen=True, kw_only=True)
class Whispering(Gossip):
    """Fault: gossip that also mixes the exact values."""

    def step(self, state, problem, network, draw, t):
        network.mix(np.array(problem.means)[None])
        return super().step(state, problem, network, draw, t)


@dataclass(frozen=True, kw_only=True)
class Seeded(Gossip):
    """Fault: gossip with equal noise in all runs and on both data sets."""

    def start(self, problem, network, streams, settings):
        unit = np.random.default_rng(0).standard_normal((problem.n_agents, problem.dim))
        noise = np.broadcast_to(column(self.sigma) * unit, (settings, *problem.means.shape))
        return State(problem.means + noise)


@dataclass(frozen=True, kw_only=True)
class EventTriggered(Algorithm):
    """Descent whose agents repeat their message if its change, noise included, is small."""

    sigma: float = 0.0
    threshold: float = 1.0
    eta: ClassVar[float] = 1e-6

    def calibrate(self, budget, problem, network, horizon):
        change = problem.record_change("l2") * np.sqrt(horizon)
        return replace(self, sigma=change / gaussian_mu(*astuple(budget)))

    def releases(self, problem, network, horizon):
        return [Release("gaussian", problem.record_change("l2"), self.sigma, count=horizon)]

    def start(self, problem, network, streams, settings):
        return State(np.zeros((settings, len(streams.runs), problem.n_agents, problem.dim)))

    def draws(self, problem, streams):
        return streams.sequence("noise", "normal", (problem.n_agents, problem.dim))

    def step(self, state, problem, network, draw, t):
        noisy_gradient = problem.gradient(network.mix(state.y)) + column(self.sigma) * draw
        change = -self.eta * noisy_gradient
        threshold = self.threshold * self.eta * column(self.sigma)
        is_large = np.linalg.norm(change, axis=-1, keepdims=True) > threshold
        return State(state.y + np.where(is_large, change, 0.0))

    def observables(self, state, problem, t):
        return {"released": state.y}


@dataclass(frozen=True, kw_only=True)
class Failing(Gossip):
    """Gossip that cannot be executed."""

    def step(self, state, problem, network, draw, t):
        raise ZeroDivisionError("an error of the user")


def mean_estimation():
    return MeanEstimation(0.1 * np.random.default_rng(2).standard_normal((1, 4, 2)), 10, 1.0)


def ring():
    return networks.build(Streams(0, (0,)), "ring", 4)


def audited(algorithm, budget=None, **changes):
    options = {"runs": RUNS, "confidence": CONFIDENCE, "delta": 1e-5, **changes}
    budget = budget or Budget(3.0, 1e-5)
    return private_consensus.audit(algorithm, mean_estimation(), ring(), budget, HORIZON, **options)


def test_a_correct_user_defined_algorithm_is_not_contradicted():
    audit_result = audited(Gossip())
    assert not audit_result.flagged and audit_result.verdict == "not contradicted"
    assert audit_result.lower <= audit_result.claimed == pytest.approx(audit_result.declared)
    assert audit_result.runs == RUNS


@pytest.mark.parametrize("broken", [HalfNoise, Whispering, Seeded])
def test_faulty_variants_of_gossip_are_flagged(broken):
    audit_result = audited(broken())
    assert audit_result.flagged, audit_result.lines()


def test_a_noiseless_message_stops_the_audit_early_and_its_correction_passes():
    for stage_two, flagged in (("literal", True), ("repaired", False)):
        algorithm = algorithms.load("gradient_descent")(stage_two=stage_two)
        audit_result = audited(algorithm, Budget(2.0, 1e-3), delta=1e-3)
        assert audit_result.contradicted == flagged
        if flagged:
            assert audit_result.lower > 2.0 and audit_result.runs < RUNS  # the audit stops early
        else:
            assert audit_result.sensitivity == pytest.approx(1.0)
            assert all(not noise.findings for noise in audit_result.noise)


def test_the_p_value_is_corrected_for_interim_looks_and_attacked_agents():
    audit_result = audited(Whispering(), runs=400)
    share = {look.runs: look.share for look in planned_looks(400, first=400 // EARLY)}[
        audit_result.runs
    ]
    assert audit_result.runs < 400 and share < 0.5
    p_value = claim_p_value(audit_result.bounds, {"epsilon": audit_result.claimed})
    stated = min(1.0, p_value / share * len(audit_result.coverage.attacked))
    assert audit_result.pvalue == pytest.approx(stated) and stated > 0
    assert sum(bound.share for bound in audit_result.bounds) == pytest.approx(1.0)


@pytest.mark.parametrize("algorithm", [Gossip, HalfNoise])
def test_the_result_does_not_depend_on_the_number_of_processes(algorithm):
    progress = []
    alone = audited(algorithm(), runs=200, processes=1)
    forked = audited(algorithm(), runs=200, processes=3, progress=lambda *now: progress.append(now))
    assert forked.lines() == alone.lines()
    assert forked.findings == alone.findings and forked.coverage == alone.coverage
    assert progress[-1] == (200, 200) and len(progress) == len(forked.coverage.attacked)


@pytest.mark.parametrize("threshold", [0.2, 1.0])
def test_agents_that_repeat_a_message_after_a_small_noisy_change_are_not_accused(threshold):
    """The decision is a function of the noisy gradient."""
    result = audited(EventTriggered(threshold=threshold), Budget(1e-6, 1e-8), delta=1e-8)
    assert not result.flagged, result.findings


def test_an_error_of_a_check_in_a_forked_process_reaches_the_caller():
    with pytest.raises(ZeroDivisionError, match="of the user"):
        audited(Failing(), runs=200, processes=2)


def test_equal_calls_give_equal_results():
    first, second = (audited(Gossip(), runs=200, seed=3) for _ in range(2))
    assert first.lower == second.lower and first.pvalue == second.pvalue


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"runs": 3}, "runs"), ({"confidence": 1.0}, "confidence"), ({"delta": 1.0}, "delta"),
        ({"delta": 1e-6}, "delta"),
        ({"budget": Budget(float("inf"), 1e-5)}, "budget.epsilon"),
    ],
)  # fmt: skip
def test_invalid_audit_arguments_raise_an_error_with_their_name(changes, key):
    algorithm = algorithms.load("gradient_descent")()
    with pytest.raises(InvalidInput, match=f"^{key}: found"):
        audited(algorithm, **changes)


def choosy_messages(scale):
    """Return noise, [data sets, ...]; a message is not sent if its noise sums to -0.5 or less."""
    random = generator(4, "choosy")
    noise = random.standard_normal((2, 300, 3, 3, 2))
    kind = noise.sum(-1, keepdims=True) > -0.5
    return np.where(kind, scale * noise, np.nan)


@pytest.mark.parametrize(("scale", "kind"), [(1.0, None), (0.5, "too small"), (2.0, "too large")])
def test_the_noise_test_accounts_for_selection_of_messages_by_their_noise(scale, kind):
    """Noise of selected messages has another distribution; the selection is no finding."""
    site = NoiseSite("message", "gaussian", np.ones(()), "l2", np.ones(3), selected=True)
    none = np.zeros((300, 0))
    worlds = [
        Evidence(None, none, none, {}, {"message": n}, None, None, 3, 3, (1,), none, none)
        for n in choosy_messages(scale)
    ]
    (noise_report,) = noise_found([site], *worlds, confidence=0.999)
    assert [text.split(",")[0] for text in noise_report.findings] == (
        [] if kind is None else [kind]
    )
    (believed,) = noise_found([site._replace(selected=False)], *worlds, confidence=0.999)
    assert believed.findings  # without the flag, the selection is a finding


def test_ipp_admm_declares_selection_by_noise_unless_it_tests_the_minimiser():
    (example,) = examples("ipp_admm")
    world = example.problem, example.network, example.horizon
    noisy = example.algorithm.calibrate(example.budget, *world)
    assert [site.selected for site in noisy.noise_sites(*world)][-1]
    plain = replace(noisy, tested="minimiser")
    assert not any(site.selected for site in plain.noise_sites(*world))


def result(*findings, **changes):
    values = {
        "claimed": 1.0, "delta": 1e-5, "declared": 0.9, "lower": 0.1, "ceiling": 4.0,
        "confidence": 0.99, "relation": "", "runs": 100, "power": 1.0,
        "executed": "", "proven": True, "findings": findings,
    }  # fmt: skip
    return AuditResult(**(values | changes))


@pytest.mark.parametrize(
    ("kinds", "changes", "verdict", "stated"),
    [
        ([], {}, "not contradicted", "holds"),
        (["note", "floating-point finding"], {}, "not contradicted", "holds"),
        ([], {"proven": False}, "not contradicted", "not proven"),
        ([], {"proven": None}, "not contradicted", None),
        ([], {"declared": 1.1}, "not contradicted", "not proven"),
        ([], {"computed_lower": 1.1}, "not contradicted", "violated"),
        (["not proven"], {"declared": 1.1}, "not proven", "not proven"),
        (["not proven"], {"declared": 1.1, "computed_lower": 1.1}, "not proven", "violated"),
        (["note", "differs from its declaration"], {}, DIFFERS, DIFFERS),
        (["contradicted", "differs from its declaration"], {}, "violated", "violated"),
        ([], {"coverage": Coverage(untested=(Untested("agent 1", "why"),))},
         "inconclusive", "inconclusive"),
        ([], {"coverage": Coverage(untested=(Untested("a cap", "why", decisive=False),))},
         "not contradicted", "holds"),
        ([], {"ceiling": 0.5}, "no test", "holds"),
    ],
)  # fmt: skip
def test_an_audit_result_states_the_audit_verdict_and_the_privacy_verdict(
    kinds, changes, verdict, stated
):
    audit_result = result(*(Finding(kind, "text") for kind in kinds), **changes)
    assert (audit_result.verdict, audit_result.privacy_verdict) == (verdict, stated)
    assert audit_result.flagged == (verdict in ("violated", DIFFERS, "not proven"))
    labelled_lines = dict(audit_result.lines())
    assert (labelled_lines["verdict"], labelled_lines.get("privacy")) == (verdict, stated)


@pytest.mark.parametrize("name", ["m_admm", "pr_admm"])
def test_fewer_edges_in_the_attacked_subgraph_are_no_finding(name):
    """The attacked subgraph of a ring of five has fewer edges, which halves the penalty.

    A smaller penalty doubles the effect of records that are not replaced, which is no fault.
    """
    (example,) = examples(name)
    problem = LogisticRegression(*rows(5), 1 / 20, 1e-2)
    network = networks.build(Streams(1, (0,)), "ring", 5)
    noisy = example.algorithm.calibrate(example.budget, problem, network, 3)
    attack = next(attacks(problem, network, None, nearby=True))
    assert attack.network.degrees.tolist() == [2, 1, 1]
    audit_result = private_consensus.audit(
        example.algorithm, problem, network, example.budget, 3, runs=60, confidence=0.999,
        delta=example.budget.delta, calibrated=noisy, attack=attack,
    )  # fmt: skip
    assert audit_result.findings == () and audit_result.verdict == "not contradicted"
    assert 0.4 < audit_result.sensitivity <= 1.0  # relative to the declared sensitivity
    wrong = noisy.noise_sites(attack.pair[0], attack.network, 3)
    assert sites_and_releases(noisy, wrong, audit_result.declared, audit_result.delta)


def rows(agents):
    random = generator(8, "rows")
    features = random.standard_normal((agents, 20, 2))
    features /= np.linalg.norm(features, axis=-1, keepdims=True)
    labels = np.where(features[..., 0] > 0, 1.0, -1.0)
    return features, labels, features[0], labels[0]


@pytest.mark.parametrize(("sent", "flagged"), [(2, False), (3, True)])
def test_more_messages_than_declared_are_a_finding(sent, flagged):
    """Two of four iterations are observed, and only these are compared with the releases."""
    noise = np.ones((30, 4, 2, 3))
    noise[:, sent:] = np.nan
    none = np.zeros((30, 0))
    world = Evidence(None, none, none, {}, {"message": noise}, None, None, 4, 4, (1,), none, none)
    moved = np.array([0.1, 0.4, 0.2, 0.3])
    site = NoiseSite("message", "gaussian", np.ones(()), "l2", moved, max_observed=2)
    findings = messages_declared([site], [world])
    assert [finding.kind for finding in findings] == [DIFFERS] * flagged
    (example,) = examples("gradient_descent")
    largest = account([Release("gaussian", 0.5, 1.0)], 1e-3).epsilon  # 0.3^2 + 0.4^2 = 0.5^2
    assert not sites_and_releases(example.algorithm, [site], largest * 1.0001, 1e-3)
    assert sites_and_releases(example.algorithm, [site], largest * 0.99, 1e-3)
