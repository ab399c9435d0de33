"""Test recorded executions, likelihood ratios and the data sets of attacks."""

from types import SimpleNamespace

import numpy as np
import pytest

from private_consensus import algorithms, networks
from private_consensus.audits import evidence
from private_consensus.audits.evidence import observed
from private_consensus.audits.execution import Execution, execute
from private_consensus.audits.known_minimisers import KnownMinimisers
from private_consensus.audits.neighbours import around, attacks
from private_consensus.audits.noise_recovery import (
    Hypothesis,
    recovers_noise_itself,
    recovery_of,
)
from private_consensus.audits.probing import strongest
from private_consensus.audits.recording import RecordingNetwork
from private_consensus.audits.streams import AuditStreams
from private_consensus.core.algorithms.base import stack
from private_consensus.core.problems import lasso
from private_consensus.core.problems.logistic_regression import LogisticRegression
from private_consensus.core.problems.mean_estimation import MeanEstimation
from private_consensus.core.randomness import Streams
from private_consensus.privacy import Budget, account, gaussian_dp

RUNS = 3000


def regression(records=6, dim=3, weight=0.5):
    rng = np.random.default_rng(1)
    features = rng.standard_normal((4, records, dim))
    features /= np.linalg.norm(features, axis=-1, keepdims=True)
    labels = np.where(rng.random((4, records)) < 0.5, -1.0, 1.0)
    return LogisticRegression(features, labels, features[0], labels[0], weight, 0.3)


def ring():
    return networks.build(Streams(0, (0,)), "ring", 4)


def mean_estimation():
    return MeanEstimation(0.1 * np.random.default_rng(2).standard_normal((1, 4, 2)), 10, 1.0)


def worlds(name, budget=None, horizon=3, problem=None, runs=RUNS, **parameters):
    """Return the evidence of both data sets, and the calibrated algorithm."""
    problem = problem or regression()
    budget = budget or Budget(np.inf, 0.0)
    algorithm = algorithms.load(name)(**parameters).calibrate(budget, problem, ring(), horizon)
    attack = strongest(algorithm, attacks(problem, ring(), None, nearby=False), horizon)
    both = [observed(algorithm, attack, horizon, 0, runs, world, 5) for world in (0, 1)]
    return both, algorithm, attack


GIVEN = {"calibration": "given", "noise": 0.5}
KNOWN = {
    "output": ("p_admm", {**GIVEN, "law": "laplace"}),
    "output of a gradient step": ("pdop", GIVEN),
    "dual": ("dvp", GIVEN),
    "centre": ("m_admm", GIVEN),
    "odd iterations": ("r_admm", {**GIVEN, "law": "gamma_norm", "eta": 1.0}),
    "random weights": ("ldp_admm", {**GIVEN, "noise": 0.1}),
    "random weights of a range": ("ldp_gradient_descent", {**GIVEN, "aggregator": "range"}),
    "random weights of a pair": ("ldp_gradient_descent", GIVEN),
    "fixed weights": ("ldp_admm", {**GIVEN, "noise": 0.1, "weights": "fixed"}),
    "some coordinates": ("coordinate_descent", {**GIVEN, "noise": 0.3}),
    "a threshold on neighbours": ("pr_admm", {"calibration": "given", "noise": 0.5, "U": 2.0}),
}


@pytest.mark.filterwarnings("ignore::private_consensus.common.errors.OutsideRange")
@pytest.mark.parametrize(("name", "parameters"), KNOWN.values(), ids=KNOWN)
def test_likelihood_ratios_have_mean_one(name, parameters):
    r"""A log-likelihood ratio L satisfies :math:`E_{D'}[e^L] = E_D[e^{-L}] = 1`.

    The test uses neighbours that differ in a label, whose Jacobians are equal.
    """
    problem = regression()
    algorithm = algorithms.load(name)(**parameters)
    algorithm = algorithm.calibrate(Budget(np.inf, 0.0), problem, ring(), 3)
    attack = next(attacks(problem, ring(), None, nearby=True))
    ratios = [observed(algorithm, attack, 3, 0, RUNS, world, 5).ratio for world in (0, 1)]
    for weights in (np.exp(ratios[1]), np.exp(-ratios[0])):
        error = weights.std() / np.sqrt(RUNS)
        assert 0.004 < error < 0.3, error
        assert abs(weights.mean() - 1.0) < 4 * error
    assert ratios[0].mean() > 0 > ratios[1].mean()


@pytest.mark.parametrize("name", ["p_admm", "dvp", "ldp_admm"])
@pytest.mark.filterwarnings("ignore::private_consensus.common.errors.OutsideRange")
def test_privacy_losses_are_at_most_the_accounted_epsilon(name):
    both, algorithm, _ = worlds(name, **GIVEN, law="laplace")
    bound = account(algorithm.releases(regression(), ring(), 3), 0.0).epsilon
    assert np.abs([world.ratio for world in both]).max() <= bound * (1 + 1e-6)


def test_the_privacy_loss_of_the_extreme_pair_matches_the_accounted_mu():
    r"""The ratio is normal with mean :math:`\pm\mu^2/2` and variance :math:`\mu^2`."""
    options = {"calibration": "gaussian_dp", "spending": "whole"}
    problem = mean_estimation()
    (first_evidence, second_evidence), algorithm, _ = worlds(
        "gradient_descent", Budget(2.0, 1e-3), 6, problem, **options
    )
    mu = gaussian_dp(algorithm.releases(problem, ring(), 6))
    for sign, values in ((1, first_evidence.ratio), (-1, second_evidence.ratio)):
        assert values.mean() == pytest.approx(sign * mu**2 / 2, abs=4 * mu / np.sqrt(RUNS))
        assert values.std() == pytest.approx(mu, rel=4 / np.sqrt(2 * RUNS))
    sites = algorithm.noise_sites(problem, ring(), 6)
    assert first_evidence.moved == pytest.approx(sites[0].moved)


PERTURBED = ("p_admm", "dvp", "m_admm", "r_admm", "ldp_admm", "pdop", "pp_admm", "pr_admm")


@pytest.mark.parametrize("name", PERTURBED)
@pytest.mark.filterwarnings("ignore::private_consensus.common.errors.OutsideRange")
def test_recovered_noise_and_sensitivities_agree_with_the_declaration(name):
    parameters = {"calibration": "accountant"} if name in ("pp_admm", "pr_admm") else {}
    budget = Budget(4.0, 1e-3)
    (first_evidence, second_evidence), algorithm, attack = worlds(
        name, budget, runs=400, **parameters
    )
    sites = {s.name: s for s in algorithm.noise_sites(attack.pair[0], attack.network, 3)}
    power = {"gaussian": 2, "laplace": 1, "gamma_norm": 1}
    for site, unit in first_evidence.noise.items():
        if sites[site].law == "gamma_norm":
            values = np.linalg.norm(unit[np.isfinite(unit).all(-1)], axis=-1) / unit.shape[-1]
        else:
            values = np.abs(unit[np.isfinite(unit)]) ** power[sites[site].law]
        assert values.mean() == pytest.approx(1.0, abs=5 * values.std() / np.sqrt(values.size))
    if first_evidence.moved is not None:
        (site,) = sites.values()
        assert (
            np.maximum(first_evidence.moved, second_evidence.moved) <= site.moved * (1 + 1e-6)
        ).all()


def test_exchanges_are_recorded_for_every_form_of_multiplication():
    network = ring()
    recording = RecordingNetwork.on(network)
    x = np.random.default_rng(0).standard_normal((1, 5, 4, 2))
    self_weights = np.diag(np.diagonal(network.mixing))
    ways = {
        "mix": recording.mix(x),
        "product": recording.mixing @ x,
        "neighbours": recording.neighbour_sum(x),
        "rescaled": (0.5 * (recording.mixing - self_weights)).astype(float) @ x,
        "einsum": np.einsum("ij,srjd->srid", recording.mixing, x),
        "gathered": recording.gather(x, recording.closed_neighbourhoods),
    }
    exchanged = recording.taken(x.shape[1])
    assert len(exchanged) == len(ways)
    assert all(np.array_equal(values, x[0]) for values in exchanged)
    assert np.allclose(ways["mix"], network.mix(x))
    assert np.allclose(ways["rescaled"], 0.5 * (network.mixing - self_weights) @ x)
    assert np.allclose(ways["gathered"], network.gather(x, network.closed_neighbourhoods))
    assert not hasattr(recording.degrees, "exchanged") or recording.degrees.ndim == 1


def test_unannounced_exchanges_are_recorded():
    class Leaking(algorithms.load("p_admm")):
        def step(self, state, problem, network, draw, t):
            after = super().step(state, problem, network, draw, t)
            network.mix(after.minimiser)
            return after

    problem = regression()
    algorithm = Leaking(calibration="given", noise=0.5)
    streams = AuditStreams.labelled("leak", 7)
    execution = execute(algorithm, problem, ring(), streams, 2)
    assert execution.sent.shape == (7, 2, 4, 3)
    leaked = [
        np.array_equal(execution.unannounced[:, k], execution.internal[:, t])
        for t in range(2)
        for k in range(execution.unannounced.shape[1])
    ]
    assert sum(leaked) == 2


def test_noise_streams_are_independent_between_data_sets_and_reproducible():
    streams = [AuditStreams.labelled(label, 50) for label in ("world 0", "world 1")]
    first_noise, second_noise = (s.draw("noise", "normal", (3, 2)) for s in streams)
    assert abs(np.corrcoef(first_noise.ravel(), second_noise.ravel())[0, 1]) < 0.2
    again = AuditStreams.labelled("world 0", 50).draw("noise", "normal", (3, 2))
    assert np.array_equal(first_noise, again)
    quiet = streams[0].without("noise")
    assert not quiet.draw("noise", "normal", (3, 2)).any()
    assert np.array_equal(
        quiet.draw("data", "normal", (2,)), streams[0].draw("data", "normal", (2,))
    )


@pytest.mark.parametrize("records", [6, 7000])
@pytest.mark.parametrize("push", [False, True])
def test_a_compressed_problem_equals_the_problem_with_all_records(push, records):
    """The minimisers, gradients and losses of both problems are equal."""
    problem = regression(records)
    candidates = list(attacks(problem, ring(), None, nearby=True))
    few = candidates[-1 if push else 0].pair[1]
    counts = few.counts.astype(int)
    rows = np.zeros((few.n_agents, few.total, few.dim))
    labels = np.ones(rows.shape[:2])
    rows[:, : counts.sum()] = np.repeat(few.features, counts, axis=1)
    labels[:, : counts.sum()] = np.repeat(few.labels, counts, axis=1)
    full = LogisticRegression(rows, labels, rows[0], labels[0], few.weight, few.ridge)
    rng = np.random.default_rng(2)
    linear, centre = rng.standard_normal((2, 1, 5, few.n_agents, few.dim))
    penalty = rng.uniform(0.1, 2.0, (few.n_agents, 1))
    start = np.zeros_like(linear)
    computed = few.proximal(linear, penalty, centre, start)
    assert np.allclose(computed, full.proximal(linear, penalty, centre, start), atol=1e-8)
    x = 3 * rng.standard_normal((2, 5, few.n_agents, few.dim))
    for value in ("gradient", "objective", "hessian"):
        assert np.allclose(getattr(few, value)(x), getattr(full, value)(x)), value
    for bound in (np.inf, 0.5, np.array([0.4, 2.0]).reshape(2, 1, 1, 1)):
        losses = full.clipped_loss(x, bound)
        assert np.allclose(few.clipped_loss(x, bound), losses)
        per_agent = np.broadcast_to(bound, (*x.shape[:-1], 1))
        for version in (few, full):
            computed = version.clipped_loss(x, per_agent, np.ones(x.shape[:-1], bool))
            assert np.allclose(computed, losses)
    assert few.records == full.records == problem.records
    assert few.smoothness == pytest.approx(full.smoothness)


@pytest.mark.parametrize("gradient_bound", [1.0, np.inf])
def test_a_lasso_with_one_record_equals_the_lasso_padded_with_empty_records(gradient_bound):
    problem = lasso.build(Streams(0, (0,)), 4, records=6, dim=3, gradient_bound=gradient_bound)
    (attack,) = attacks(problem, ring(), None, nearby=False)
    compressed = attack.pair[0]
    shape = 1, compressed.n_agents, problem.records
    features, responses = np.zeros((*shape, compressed.dim)), np.zeros(shape)
    features[:, :, :1], responses[:, :, :1] = compressed.features, compressed.responses
    constants = (
        compressed.weight,
        compressed.penalty,
        compressed.gradient_bound,
        compressed.row_bound,
    )
    full = lasso.Lasso(features, responses, *constants)
    rng = np.random.default_rng(3)
    linear, centre = rng.standard_normal((2, 1, 5, compressed.n_agents, compressed.dim))
    for penalty in (rng.uniform(0.1, 2.0, (compressed.n_agents, 1)), np.full((1, 1, 1, 1), 0.5)):
        minima = [
            version.proximal(linear, penalty, centre, centre) for version in (compressed, full)
        ]
        assert np.array_equal(*minima)
    assert compressed.records == full.records
    for record_slice in (slice(0, 6), slice(0, 2), slice(2, 6)):
        subsets = compressed.part(record_slice), full.part(record_slice)
        assert np.array_equal(*(subset.gradient(centre) for subset in subsets))
        assert subsets[0].records == subsets[1].records


def test_neighbours_change_the_gradient_of_one_agent_by_at_most_the_sensitivity():
    problem = regression()
    for nearby in (False, True):
        for attack in attacks(problem, ring(), None, nearby=nearby):
            dataset, neighbour = attack.pair
            assert dataset.records == neighbour.records == problem.records
            x = 4 * np.random.default_rng(3).standard_normal((500, dataset.n_agents, dataset.dim))
            gradient_change = np.linalg.norm(dataset.gradient(x) - neighbour.gradient(x), axis=-1)
            assert np.allclose(np.delete(gradient_change, attack.agent, axis=1), 0.0)
            assert 0 < gradient_change.max() <= problem.record_change("l2") * (1 + 1e-9)


def test_replaced_rows_change_the_gradient_more_than_a_replaced_label():
    r"""A label changes the gradient by w at every point; two rows change it by up to 2w."""
    problem = regression()
    changes = []
    for attack in attacks(problem, ring(), None, nearby=True):
        dataset, neighbour = attack.pair
        x = np.zeros((1, dataset.n_agents, dataset.dim))
        x[..., 0] = 20.0
        changes.append(np.linalg.norm((dataset.gradient(x) - neighbour.gradient(x))[0, 0]))
    assert changes[0] == pytest.approx(problem.weight)
    assert max(changes) > 1.8 * problem.weight


def test_attacks_on_zero_one_labels_use_zero_one_labels():
    plain = regression()
    coded = LogisticRegression(
        np.abs(plain.features), np.maximum(plain.labels, 0.0), plain.features[0],
        plain.labels[0], plain.weight, plain.ridge, coding="zero_one",
    )  # fmt: skip
    candidates = list(attacks(coded, ring(), None, nearby=True))
    assert len(candidates) == 1
    assert {v for problem in candidates[0].pair for v in problem.labels.ravel()} == {0.0, 1.0}


def test_the_attacked_subgraph_is_a_minimum_degree_agent_with_its_neighbours():
    star = networks.build(Streams(0, (0,)), "star", 6)
    assert around(star).n_agents == 2
    drawn = networks.build(Streams(0, (0, 1)), "random_edges", 10, edges=20)
    subnetwork = around(drawn)
    assert subnetwork.degrees[0] == drawn.degrees[0].min() == subnetwork.n_agents - 1


@pytest.mark.parametrize("bound", [1.0, np.inf])
def test_a_replaced_response_changes_the_gradient_by_twice_the_weight(bound):
    problem = lasso.build(Streams(0, (0,)), 4, records=5, dim=3, gradient_bound=bound)
    (attack,) = attacks(problem, ring(), None, nearby=True)
    dataset, neighbour = attack.pair
    origin = np.zeros((1, dataset.n_agents, 3))
    moved = dataset.gradient(origin) - neighbour.gradient(origin)
    assert np.linalg.norm(moved[0], axis=-1) == pytest.approx([2 * dataset.weight, 0, 0])


def test_known_minimisers_are_reused_and_wrong_ones_are_solved_again():
    problem = regression()
    rng = np.random.default_rng(8)
    linear, centre = rng.standard_normal((2, 1, 5, 4, 3))
    penalty = np.full((4, 1), 1.5)
    start = np.zeros_like(linear)
    exact = problem.proximal(linear, penalty, centre, start)
    cached_problem = KnownMinimisers(problem, np.stack([exact[0]], axis=1))
    assert np.array_equal(cached_problem.proximal(linear, penalty, centre, start), exact)
    wrong = KnownMinimisers(problem, np.stack([exact[0] + 0.1], axis=1))
    assert np.allclose(wrong.proximal(linear, penalty, centre, start), exact, atol=1e-9)
    assert wrong.records == problem.records


def test_cached_gradients_are_reused_for_equal_points_only():
    problem = regression()
    points = np.random.default_rng(9).standard_normal((2, 5, 4, 3))
    cached_problem = KnownMinimisers(problem, points[:, None])
    for x in (*points, points[1].copy(), points[0]):
        assert np.array_equal(cached_problem.gradient(x), problem.gradient(x))
    assert cached_problem.gradient(points[0].copy()) is cached_problem.gradient(points[0])


def test_replaying_recovered_noise_in_a_batch_reproduces_the_messages():
    problem = regression()
    algorithm = algorithms.load("p_admm")(calibration="given", noise=0.5)
    streams = AuditStreams.labelled("again", 6)
    execution = execute(algorithm, problem, ring(), streams, 3)
    units = [
        r["message"]
        for r in recovery_of(algorithm).residuals(Hypothesis(problem, ring(), streams, execution))
    ]
    batch = stack([algorithm])
    state, draws = batch.start(problem, ring(), streams, 1), batch.draws(problem, streams)
    for t, unit in enumerate(units, 1):
        draw = recovery_of(batch).with_residual(next(draws), {"message": unit})
        state = batch.step(state, problem, ring(), draw, t)
        assert np.allclose(state.x[0], execution.sent[:, t - 1], atol=1e-9)


@pytest.mark.parametrize("name", ["a threshold on neighbours", "some coordinates"])
def test_noise_recovered_for_the_first_runs_equals_that_of_all_runs(name):
    """The noise of the first runs is recovered with the draws of these runs."""
    algorithm, parameters = KNOWN[name]
    problem, runs = regression(), 120
    algorithm = algorithms.load(algorithm)(**parameters)
    algorithm = algorithm.calibrate(Budget(np.inf, 0.0), problem, ring(), 3)
    streams = AuditStreams.labelled("first", runs)
    execution = execute(algorithm, problem, ring(), streams, 3)
    noise_of_all_runs = evidence.recovered(algorithm, problem, ring(), streams, execution)
    first = evidence.recovered(algorithm, problem, ring(), streams, execution, noise_numbers=0)
    assert first.keys() == noise_of_all_runs.keys() and first
    for site, noise in first.items():
        assert len(noise_of_all_runs[site]) == runs > len(noise)
        np.testing.assert_array_equal(noise, noise_of_all_runs[site][: len(noise)])


def test_values_shared_with_other_agents_are_counted():
    sent = np.random.default_rng(4).integers(0, 3, (6, 4, 3, 2)).astype(float)
    sent[0, 0, 1] = np.nan
    attack = SimpleNamespace(agent=1)
    shared_counts = evidence.repeats(Execution(sent, sent[:, :0], None), attack)["shared"]
    expected = (sent[:, :, [0, 2]] == sent[:, :, [1]]).sum((1, 2, 3))
    assert np.array_equal(shared_counts, expected)


@pytest.mark.parametrize("name", ["local_training", "mafalda_sgd", "q_dpsgd_1", "dvp"])
def test_noise_recovery_of_built_in_classes_excludes_external_subclasses(name):
    kind = algorithms.load(name)
    outside = type("Changed", (kind,), {"__module__": "another_package.changed"})
    assert recovers_noise_itself(kind()) and not recovers_noise_itself(outside())
