"""Test audits of partial observers: guarantees are not exceeded, and faults are refuted."""

import numpy as np
import pytest

from private_consensus import algorithms, networks
from private_consensus.audits.audit import audit
from private_consensus.audits.neighbours import attacks
from private_consensus.audits.partial import drawn_by, seen_links, seen_rows
from private_consensus.common.errors import InvalidInput
from private_consensus.core.algorithms.decor import DECORDraw
from private_consensus.core.problems.mean_estimation import MeanEstimation
from private_consensus.core.randomness import Streams
from private_consensus.privacy import Budget, gaussian_epsilon
from private_consensus.privacy.observers import (
    Coalition,
    Eavesdropper,
    FinalModels,
    SecureSums,
    agent,
    secure_agent,
)
from private_consensus.privacy.observers.single_losses import gossip_sum

BUDGET = Budget(5.0, 1e-2)
RING = networks.build(Streams(0, (0,)), "ring", 8, weights="metropolis")
PATH = networks.build(Streams(0, (0,)), "path", 3, weights="metropolis")


def means(agents: int, dim: int = 1) -> MeanEstimation:
    return MeanEstimation(np.zeros((1, agents, dim)), 10, 1.0)


def audited(name, observer, network=PATH, horizon=3, runs=3000, **options):
    algorithm = algorithms.load(name)(**options)
    world = algorithm, means(network.n_agents), network, BUDGET, horizon
    return audit(*world, runs=runs, confidence=0.99, delta=1e-2, observer=observer)


def test_an_audit_refutes_the_sum_of_single_losses_for_three_rounds_of_gossip():
    """On a ring of eight, the audit by agent 3 refutes the sum and not the guarantee."""
    audit_result = audited("muffliato", agent(3), RING, runs=1500)
    assert not audit_result.flagged and audit_result.claimed == pytest.approx(5.0, rel=1e-3)
    once = algorithms.load("muffliato")().calibrate(BUDGET, means(8), RING, 3)
    sensitivity = means(8).record_change("l2") / 10 / once.noise.scale
    summed_mu = sensitivity * np.sqrt(gossip_sum(RING.mixing, 3, 3)[0])
    assert audit_result.lower > 2 * gaussian_epsilon(summed_mu, 1e-2)


@pytest.mark.parametrize(
    "observer", [Eavesdropper(), agent(1), agent(2), secure_agent(1), Coalition((1, 2))]
)
def test_audited_loss_of_muffliato_gd_is_within_a_factor_3_of_the_guarantee(observer):
    """With fresh noise per round, the audited loss is at most the guarantee.

    If the guarantee is above 1, the audited loss exceeds a third of it.
    """
    audit_result = audited("muffliato_gd", observer, eta=0.05)
    assert not audit_result.flagged
    assert (
        audit_result.lower <= audit_result.claimed == pytest.approx(audit_result.declared, rel=1e-6)
    )
    if audit_result.claimed > 1:
        assert audit_result.lower > audit_result.claimed / 3


@pytest.mark.parametrize(
    ("name", "share", "network", "budget"),
    [("muffliato_gd", 3, PATH, Budget(2.0, 1e-2)), ("zip_dl", 4, RING, BUDGET)],
)
def test_an_audit_by_a_neighbour_detects_reduced_noise(name, share, network, budget):
    """The audit refutes a variant that adds less noise but claims the same guarantee."""
    parent = algorithms.load(name)

    class Hasty(parent):
        @property
        def message_scale(self):
            return parent.message_scale.fget(self) / share

    Hasty.__module__ = parent.__module__  # as if defined in that module
    world = Hasty(eta=0.05), means(network.n_agents), network, budget, 3
    audit_result = audit(*world, runs=2000, confidence=0.99, delta=1e-2, observer=agent(1))
    assert audit_result.contradicted


EVERYBODY = [
    Eavesdropper(), Eavesdropper((1,)), agent(1), agent(2), secure_agent(1), Coalition((1, 2)),
    FinalModels(), FinalModels(mean=True), FinalModels((2,), of=(2,)),
    Coalition((2,), last_states=True),
]  # fmt: skip


@pytest.mark.parametrize("observer", EVERYBODY, ids=str)
@pytest.mark.parametrize("name", ["decor", "mafalda_sgd"])
def test_audited_loss_under_correlated_noise_is_within_a_factor_3_of_the_formula(name, observer):
    """For every observer, the audited loss is at most the value of the formula.

    If the formula gives more than 1, the audited loss exceeds a third of its value.
    """
    audit_result = audited(name, observer, runs=2000, eta=0.05)
    assert not audit_result.flagged
    assert (
        audit_result.lower <= audit_result.claimed == pytest.approx(audit_result.declared, rel=1e-6)
    )
    if audit_result.claimed > 1:
        assert audit_result.lower > audit_result.claimed / 3


def test_the_loss_to_a_neighbour_with_shared_secrets_exceeds_the_eavesdroppers():
    """The neighbour of a path's end knows all pair noise of the end.

    The loss to this neighbour exceeds the budget, which is the loss to the eavesdropper. It is
    within the guarantee stated for the neighbour.
    """
    path = networks.build(Streams(0, (0,)), "path", 8, weights="metropolis")
    algorithm = algorithms.load("decor")(eta=0.05, ratio=30.0)
    world = algorithm, means(8), path, Budget(2.0, 1e-2), 3
    candidates = attacks(means(8), path, None, nearby=False)
    at_the_end = next(candidate for candidate in candidates if candidate.agent == 0)
    audit_result = audit(
        *world, runs=2000, confidence=0.99, delta=1e-2, observer=agent(1), attack=at_the_end
    )
    assert 2.0 * (1 + 1e-3) < audit_result.lower <= audit_result.claimed


def test_members_know_their_local_noise_and_their_pair_noise():
    local_noise, pairs = np.arange(3.0)[None, :, None], np.arange(9.0).reshape(1, 3, 3, 1)
    drawn = drawn_by(agent(0), DECORDraw((local_noise, pairs)), PATH)
    assert [array.ravel().tolist() for array in drawn] == [[0.0], [1.0]]
    drawn = drawn_by(agent(1), DECORDraw((local_noise, pairs)), PATH)
    assert [array.ravel().tolist() for array in drawn] == [[1.0], [1.0, 5.0]]
    assert [array.ravel().tolist() for array in drawn_by(agent(2), local_noise, PATH)] == [[2.0]]


@pytest.mark.parametrize("observer", [Eavesdropper(), agent(1), Coalition((1, 2))])
def test_the_audited_loss_of_secure_aggregation_is_within_its_guarantee(observer):
    """Messages exclude the observer's terms, and two of three agents know two noise shares."""
    audit_result = audited("secure_aggregation", observer, eta=0.05)
    assert not audit_result.flagged and audit_result.lower <= audit_result.claimed
    assert audit_result.lower > BUDGET.epsilon / 3


def test_an_observer_that_receives_no_messages_is_refused():
    with pytest.raises(InvalidInput, match="who receives messages"):
        audited("local_training", agent(1), eta=0.05, runs=40)


def test_observed_message_rows_match_a_path_by_hand():
    links, weights = PATH.adjacency, PATH.mixing
    assert seen_rows(Eavesdropper(), links).tolist() == np.eye(3).tolist()
    assert seen_rows(agent(0), links).tolist() == [[1, 0, 0], [0, 1, 0]]
    third = pytest.approx(1 / 3)
    assert seen_rows(SecureSums((1,)), links, weights).tolist() == [[0, 1, 0], [third, 0, third]]
    assert seen_rows(Coalition((0, 1)), links).tolist() == np.eye(3).tolist()


@pytest.mark.parametrize(
    ("observer", "key"),
    [(agent(0), "observer.members"), (agent(9), "observer.members"), ("everybody", "observer")],
)
def test_invalid_observers_are_refused_by_key(observer, key):
    with pytest.raises(InvalidInput) as error:
        audited("muffliato_gd", observer, eta=0.05, runs=40)
    assert error.value.key == key


@pytest.mark.parametrize("observer", [Eavesdropper(), agent(1), secure_agent(1), Coalition((1, 2))])
def test_the_audited_loss_of_zip_dl_is_within_its_guarantee(observer):
    """The noise cancels at its sender, and each neighbour receives a different message."""
    audit_result = audited("zip_dl", observer, RING, runs=1500, eta=0.05)
    assert not audit_result.flagged
    assert (
        audit_result.lower <= audit_result.claimed == pytest.approx(audit_result.declared, rel=1e-6)
    )


def test_observed_edge_messages_match_a_path_by_hand():
    links, weights = PATH.adjacency, PATH.mixing
    assert len(seen_links(Eavesdropper(), links, weights)) == 4
    messages = seen_links(agent(0), links, weights)
    assert sorted(zip(*np.nonzero(messages)[1:], strict=True)) == [(0, 1), (1, 0)]
    *sent, summed = seen_links(SecureSums((1,)), links, weights)
    assert len(sent) == 2 and summed[[0, 2], 1] == pytest.approx(1 / 3)
    assert np.count_nonzero(summed) == 2


def test_secure_sums_of_an_algorithm_with_random_weights_are_not_audited():
    with pytest.raises(InvalidInput, match="random"):
        audited("ldp_admm", secure_agent(1), D=40.0, init_std=0.0, runs=40)
