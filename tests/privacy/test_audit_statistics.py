"""Test cross-fitted statistics: family-wise error level, power and invariance."""

import numpy as np
import pytest
from scipy import stats

from private_consensus.privacy import gaussian_epsilon
from private_consensus.privacy.audit import distinguishers
from private_consensus.privacy.audit.atoms import atom_statistics, fit_atoms
from private_consensus.privacy.audit.families import claim_p_value
from private_consensus.privacy.audit.statistics import audit_statistics, best_bound

DELTA = 0.01


def audited(sample, neighbour_sample, statistics=None, *, confidence=0.999, seed=0, **options):
    return audit_statistics(
        sample, neighbour_sample, statistics=statistics or {}, delta=DELTA,
        confidence=confidence, seed=seed, **options,
    )  # fmt: skip


def gaussians(rng, mu, runs, dim=1):
    sample, neighbour_sample = rng.standard_normal((2, runs, dim))
    return sample + mu / np.sqrt(dim), neighbour_sample


MAPS = {"itself": lambda x: x, "tanh": np.tanh, "cube": lambda x: x**3, "exp": lambda x: np.exp(-x)}


@pytest.mark.parametrize("shape", MAPS)
@pytest.mark.parametrize("mu", [1.0, 3.0])
def test_false_contradictions_of_a_transformed_gaussian_pair_stay_within_the_level(shape, mu):
    """The pair is exactly mu-GDP; a fit of normal distributions would flag 196 of 200."""
    rng, wrong = np.random.default_rng(1), 0
    for _ in range(60):
        sample, neighbour_sample = (MAPS[shape](x[:, 0]) for x in gaussians(rng, mu, 300))
        bounds = audited(
            None, None, {"seen": (sample, neighbour_sample)}, confidence=0.7, orderings=("mu",)
        )
        wrong += bounds[0].contradicts(mu=mu)
    assert wrong <= stats.binom.ppf(0.999, 60, 0.3)


@pytest.mark.parametrize("ordering", ["epsilon", "mu"])
def test_bounds_are_invariant_under_increasing_maps(ordering):
    rng = np.random.default_rng(2)
    sample, neighbour_sample = (x[:, 0] for x in gaussians(rng, 1.0, 1000))
    bounds = [
        audited(
            None, None, {"seen": (shape(sample), shape(neighbour_sample))}, orderings=(ordering,)
        )[0]
        for shape in (MAPS["itself"], MAPS["tanh"], MAPS["cube"])
    ]
    assert len({bound.counts for bound in bounds}) == 1
    assert len({bound.epsilon for bound in bounds}) == len({bound.mu for bound in bounds}) == 1


def test_likelihood_ratio_detects_twice_the_claimed_mu_in_4000_runs():
    rng, by_mu, by_epsilon = np.random.default_rng(3), 0, 0
    epsilon = gaussian_epsilon(0.25, DELTA)
    for _ in range(25):
        sample, neighbour_sample = (x[:, 0] for x in gaussians(rng, 0.5, 4000))
        ratio = {"ratio": (sample, neighbour_sample)}
        by_mu += audited(None, None, ratio, orderings=("mu",))[0].contradicts(mu=0.25)
        by_epsilon += audited(None, None, ratio)[0].contradicts(epsilon=epsilon)
    assert by_mu >= 23 and by_epsilon >= 19


def test_linear_discriminant_detects_a_larger_mu_in_twenty_coordinates():
    rng, detections = np.random.default_rng(4), 0
    for seed in range(2):
        bounds = audited(*gaussians(rng, 0.6, 4000, 20), seed=seed, orderings=("mu",))
        detections += claim_p_value(bounds, {"mu": 0.25}) <= 0.001
        assert bounds[0].statistic.startswith("linear")
    assert detections == 2


def test_family_wise_error_of_all_statistics_is_at_most_its_level():
    """Given and learned statistics are tested on a pair that equals its claim."""
    rng, wrong = np.random.default_rng(5), 0
    for seed in range(10):
        sample, neighbour_sample = gaussians(rng, 0.8, 120, 2)
        statistics = {
            "sum": (sample.sum(axis=1), neighbour_sample.sum(axis=1)),
            "first": (sample[:, 0], neighbour_sample[:, 0]),
        }
        bounds = audited(sample, neighbour_sample, statistics, confidence=0.6, seed=seed)
        assert len(bounds) >= 4 and sum(bound.share for bound in bounds) == pytest.approx(1.0)
        epsilon = gaussian_epsilon(0.8, DELTA)
        contradicted = claim_p_value(bounds, {"epsilon": epsilon}) <= 0.4
        assert contradicted == any(bound.contradicts(epsilon=epsilon) for bound in bounds)
        wrong += contradicted
    assert wrong <= stats.binom.ppf(0.999, 10, 0.4)


def test_bound_for_a_biased_coin_is_close_to_its_true_epsilon():
    rng = np.random.default_rng(6)
    truth = 1 / (1 + np.exp(-2.0))
    sample, neighbour_sample = (
        (rng.random(4000) < share).astype(float) for share in (truth, 1 - truth)
    )
    epsilons = [
        best_bound(
            audit_statistics(
                None, None, statistics={"coin": pair}, delta=0.0, confidence=0.999, seed=0
            )
        ).epsilon
        for pair in (
            (sample, neighbour_sample),
            (neighbour_sample, sample),
            (-sample, -neighbour_sample),
        )
    ]
    assert all(1.6 < epsilon < 2.0 for epsilon in epsilons)


def test_best_bound_is_the_largest_in_any_order():
    rng = np.random.default_rng(10)
    noise = rng.standard_normal(1000)
    statistics = {f"{shift} apart": (noise + shift, noise[::-1]) for shift in (0.0, 1.0, 2.0, 1.5)}
    bounds = audited(None, None, statistics)
    for order in (bounds, bounds[::-1]):
        assert best_bound(order).epsilon == max(bound.epsilon for bound in bounds) > 0
    assert all(bound.refutes(0.999 * bound.epsilon) for bound in bounds if bound.epsilon)
    assert not any(bound.refutes(bound.epsilon + 0.01) for bound in bounds)


def test_infinite_statistics_are_counted_as_ordinary_outcomes():
    sample, neighbour_sample = np.full(2000, np.inf), np.full(2000, -np.inf)
    bound = audited(None, None, {"told": (sample, neighbour_sample)})[0]
    assert bound.epsilon == bound.ceiling > 5
    mixed = np.where(np.arange(2000) < 20, np.inf, 0.0)
    # an event with a rate of 1 % is within delta
    assert audited(None, None, {"told": (mixed, np.zeros(2000))})[0].epsilon == 0
    strict = audit_statistics(
        None, None, statistics={"told": (mixed, np.zeros(2000))}, delta=0.0, confidence=0.9, seed=0
    )
    assert strict[0].epsilon > 0.5


def test_rounding_errors_do_not_change_discriminant_scores():
    """Relative errors of 1e-12 must not determine the direction of the discriminant."""
    rng = np.random.default_rng(15)
    mixed = rng.standard_normal((90, 90))
    sample, neighbour_sample = (x @ mixed for x in gaussians(rng, 1.0, 300, dim=90))
    rounded = [x * (1 + 1e-12 * rng.standard_normal(x.shape)) for x in (sample, neighbour_sample)]
    exact, moved = (
        distinguishers.fit_distinguishers(*pair, 0)
        for pair in ((sample, neighbour_sample), rounded)
    )
    for ridge in distinguishers.RIDGES:
        name = f"linear discriminant, ridge {ridge:g}"
        scores = exact[name](sample)
        assert np.allclose(moved[name](sample), scores, rtol=0, atol=1e-7 * scores.std()), name


def test_discriminant_cancels_noise_shared_by_several_messages():
    rng = np.random.default_rng(7)
    shift = np.array([1.0, 0.5, 0.25])[:, None] * np.ones(2)
    sample, neighbour_sample = (
        np.repeat(rng.standard_normal((600, 1, 2)), 3, axis=1) + world * shift for world in (1, 0)
    )
    bounds = audited(sample, neighbour_sample)
    assert bounds[0].epsilon > 0.95 * bounds[0].ceiling


def test_classifiers_detect_distributions_with_equal_means():
    """The distributions have equal means and sign probabilities, but different variances."""
    rng = np.random.default_rng(8)
    sample = rng.choice([-3.0, 3.0], size=(1500, 2)) + rng.standard_normal((1500, 2))
    bounds = {b.statistic: b for b in audited(sample, rng.standard_normal((1500, 2)))}
    assert bounds["logistic regression"].epsilon > 2 and bounds["boosted trees"].epsilon > 2


def test_more_coordinates_than_runs_are_handled():
    rng = np.random.default_rng(9)
    noise = rng.standard_normal((2, 200, 600))
    assert best_bound(audited(*noise)).epsilon == 0
    assert best_bound(audited(noise[0] + 0.5, noise[1])).epsilon > 1.5


def test_a_noiseless_message_gives_a_bound_close_to_its_maximum():
    rng = np.random.default_rng(10)
    sample, neighbour_sample = rng.standard_normal((2, 400, 3, 2))
    sample[:, 1], neighbour_sample[:, 1] = 0.25, 0.25000001
    bounds = audited(sample, neighbour_sample)
    assert bounds[0].epsilon > 0.9 * bounds[0].ceiling


def test_repeated_values_and_messages_of_a_run_are_counted_as_statistics():
    rng = np.random.default_rng(11)
    sample, neighbour_sample = rng.standard_normal((2, 500, 4, 2, 3))
    stopped = rng.random(500) < 0.5
    sample[stopped, 3] = sample[stopped, 2]  # about half of the runs on D repeat a message
    counted = atom_statistics(sample, neighbour_sample)
    assert set(counted) == {"repeated values", "equal messages"}
    np.testing.assert_array_equal(counted["equal messages"][0], np.where(stopped, 2, 0))
    np.testing.assert_array_equal(counted["repeated values"][0], np.where(stopped, 6, 0))
    assert not np.any(counted["equal messages"][1])
    bounds = {bound.statistic: bound for bound in audited(sample, neighbour_sample)}
    assert bounds["equal messages"].epsilon > 2 or bounds["repeated values"].epsilon > 2


def test_atom_score_is_the_log_ratio_of_frequencies():
    rng = np.random.default_rng(13)
    levels = np.array([0.0, 1.0, 2.0])
    sample, neighbour_sample = (
        rng.choice(levels, (4000, 1), p=p) for p in ((0.6, 0.3, 0.1), (0.2, 0.3, 0.5))
    )
    score = fit_atoms(sample, neighbour_sample)(levels[:, None])
    np.testing.assert_allclose(score, np.log([3.0, 1.0, 0.2]), atol=0.15)
    assert (
        fit_atoms(*rng.standard_normal((2, 100, 3)))(sample[:5].repeat(3, axis=1)).tolist()
        == [0] * 5
    )


def test_nan_values_distinguish_the_data_sets():
    rng = np.random.default_rng(14)
    sample, neighbour_sample = rng.standard_normal((2, 400, 3))
    sample[:200, 1] = np.nan
    assert best_bound(audited(sample, neighbour_sample)).epsilon > 1.5
