"""Test the ADMM methods of Ding, section 3: PR-ADMM, R-ADMM, PP-ADMM and IPP-ADMM."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from observed import executed, logistic_problem, run
from private_consensus import networks
from private_consensus.common.errors import InvalidInput
from private_consensus.core.algorithms.admm import ADMM
from private_consensus.core.algorithms.dvp import DualVariablePerturbation
from private_consensus.core.algorithms.ipp_admm import ImprovedPlausiblyPrivateADMM as IPP
from private_consensus.core.algorithms.m_admm import PenaltyPerturbation
from private_consensus.core.algorithms.p_admm import OutputPerturbation
from private_consensus.core.algorithms.pp_admm import PlausiblyPrivateADMM as PP
from private_consensus.core.algorithms.pr_admm import PeriodicallyReducedADMM as PR
from private_consensus.core.algorithms.r_admm import RecycledADMM as Recycled
from private_consensus.core.solvers import Unsolved
from private_consensus.privacy import Budget, account, gaussian_noise_multiplier, zcdp_rho
from private_consensus.privacy.mechanisms import ADDITIVE

AGENTS, DIM, RECORDS = 5, 4, 60
ETA = 0.5
BUDGET = Budget(2.0, 1e-4)
FREE = Budget(np.inf, 0.0)
C_LOSS = IPP.C_loss
NEW = (PR, Recycled, PP, IPP)


def build(streams, **changes):
    options = {"records": RECORDS, "ridge": 1e-3} | changes
    return logistic_problem(streams, AGENTS, DIM, **options)


@pytest.fixture
def problem(streams):
    """Return a problem with loss scale 20, for which the logistic curvature is not negligible."""
    return build(streams, weight=20.0 / RECORDS)


@pytest.fixture
def network(streams):
    return networks.build(streams, "ring", AGENTS)


@pytest.fixture
def uneven(streams):
    """Return a network whose degrees differ between agents and between runs."""
    return networks.build(streams, "random_edges", AGENTS, edges=6)


def pull_towards(problem, network, new, dual, before, received_sum, ridge=0.0):
    """Return grad f + a + 2 eta v x - eta (v x_before + received): 0 or minus the noise."""
    degrees = network.degrees[..., None]
    slope = problem.gradient(new) + ridge * new + dual + 2 * ETA * degrees * new
    return slope - ETA * (degrees * before + received_sum)


# --- Properties of all methods ----------------------------------------------------------------


def exact_versions():
    return [
        PR(eta=ETA, threshold="none"),
        PR(eta=ETA, U=np.inf),
        PR(eta=ETA, U=np.inf, threshold="consistent"),
        PP(eta=ETA, beta=1e-10),
    ]


@pytest.mark.parametrize("version", exact_versions(), ids=lambda v: f"{type(v).__name__}")
def test_variants_without_a_budget_equal_plain_admm(problem, uneven, streams, version):
    plain = run(ADMM(eta=ETA), problem, uneven, streams, 25)
    free = version.calibrate(FREE, problem, uneven, 25)
    trajectory = run(free, problem, uneven, streams, 25)
    for t in (1, 8, 25):
        assert np.allclose(trajectory[t]["released"], plain[t]["released"], atol=1e-8)


@pytest.mark.parametrize("version", [PR(threshold="none"), Recycled(gamma=60.0), PP(beta=1e-9)])
def test_variants_without_a_budget_reach_the_pooled_optimum(problem, network, streams, version):
    free = version.calibrate(FREE, problem, network, 1200)
    last = run(free, problem, network, streams, 1200)[1200]["released"]
    assert np.abs(last - problem.optimum[:, None]).max() < 1e-5


@pytest.mark.parametrize("conversion", ["shortcut", "safe", "cks"])
@pytest.mark.parametrize(
    "kind", [*NEW, DualVariablePerturbation, PenaltyPerturbation, OutputPerturbation]
)
def test_methods_calibrated_by_formula_have_the_same_total_rho(problem, uneven, kind, conversion):
    """P-ADMM is excluded, since its paper states no total."""
    law = {} if kind in (PR, PP, IPP, OutputPerturbation) else {"law": "gamma_norm"}
    algorithm = kind(eta=ETA, calibration="formula", rho_conversion=conversion, **law)
    if kind is OutputPerturbation:
        with pytest.raises(InvalidInput, match=r"a budget that a noise scale from .* meets"):
            algorithm.calibrate(BUDGET, problem, uneven, 30)
        return
    epsilon = 60.0  # exceeds the privacy cost of the Jacobian terms at this loss scale
    done = algorithm.calibrate(Budget(epsilon, 1e-4), problem, uneven, 30)
    assert done.claimed_epsilon(1e-4, problem, uneven, 30) == pytest.approx(epsilon, rel=1e-9)
    allowed = zcdp_rho(epsilon, 1e-4, conversion=conversion)
    assert done.rho_by_formula(problem, uneven, 30) == pytest.approx(allowed, rel=1e-9)


def test_objective_perturbation_splits_its_budget_evenly(problem, network):
    """Each of K iterations has eps = sqrt(2 rho / K); the noise is 2C / (n (eps - J))."""
    kappa = problem.weight / 4 / (problem.ridge + 4 * ETA)
    for kind, charged in ((DualVariablePerturbation, 30), (Recycled, 15)):
        algorithm = kind(eta=ETA, law="gamma_norm", calibration="formula", rho_conversion="safe")
        done = algorithm.calibrate(Budget(20.0, 1e-4), problem, network, 30)
        rho = zcdp_rho(20.0, 1e-4, conversion="safe")
        noise_epsilon = np.sqrt(2 * rho / charged) - 2.8 * kappa
        assert done.noise == pytest.approx(2 * problem.weight / noise_epsilon, rel=1e-9)


# --- Measurements -----------------------------------------------------------------------------


def test_local_metrics_evaluate_each_agent_by_its_local_model(problem):
    """Compare with loops over settings, runs and agents; margin 0 counts as negative."""
    x = np.random.default_rng(3).normal(size=(2, len(problem.labels), AGENTS, DIM))
    x[0, 1, 2] = 0.0
    measures = {name: problem.measure(name, x) for name in problem.metrics if "own" in name}
    for indices in np.ndindex(2, 3):  # the first three runs
        run, losses, train, test = indices[1], [], [], []
        for i in range(AGENTS):
            margins = problem.features[run, i] @ x[*indices, i]
            signed = margins * problem.labels[run, i]
            losses.append(np.log1p(np.exp(-signed)).mean())
            train.append(np.mean(np.where(margins > 0, 1, -1) != problem.labels[run, i]))
            predictions = np.where(problem.test_features[run] @ x[*indices, i] > 0, 1, -1)
            test.append(np.mean(predictions != problem.test_labels[run]))
        assert measures["own_loss"][indices] == pytest.approx(np.mean(losses))
        assert measures["own_train_accuracy"][indices] == pytest.approx(1 - np.mean(train))
        assert measures["own_test_error"][indices] == pytest.approx(np.mean(test))
        assert measures["own_test_accuracy"][indices] == pytest.approx(1 - np.mean(test))


def test_the_majority_rate_is_that_of_a_constant_prediction(problem):
    """The majority rate is the accuracy of the better constant prediction."""
    x = np.zeros((1, len(problem.labels), AGENTS, DIM))
    for kind, labels in (("train", problem.labels), ("test", problem.test_labels)):
        flat = labels.reshape(len(labels), -1)
        best = np.maximum((flat > 0).mean(1), (flat < 0).mean(1))
        assert np.allclose(problem.measure(f"majority_{kind}_accuracy", x), best)


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_the_loss_scale_multiplies_gradients_and_no_measurement(streams, scale):
    once, scaled = build(streams), build(streams, loss_scale=scale)
    x = np.random.default_rng(0).normal(size=(1, len(once.labels), AGENTS, DIM))
    assert np.allclose(scaled.gradient(x), scale * once.gradient(x))
    assert scaled.record_change("l2") == pytest.approx(scale * once.record_change("l2"))
    assert np.allclose(scaled.measure("own_loss", x), once.measure("own_loss", x))
    with pytest.raises(InvalidInput, match="loss_scale"):
        build(streams, loss_scale=2.0, weight=1.0)


# --- Budgets below the Jacobian terms ---------------------------------------------------------

BASELINES = (DualVariablePerturbation, PenaltyPerturbation, Recycled)


def perturbed(kind, **changes):
    common = {"law": "gamma_norm", "rho_conversion": "safe", "calibration": "formula"}
    return kind(eta=ETA, **(common | changes))


@pytest.mark.parametrize("jacobian", ["paper", "tight"])
@pytest.mark.parametrize("kind", BASELINES)
def test_added_curvature_makes_a_small_budget_attainable(problem, network, kind, jacobian):
    horizon, scarce = 10, Budget(0.05, 1e-4)
    with pytest.raises(InvalidInput, match=r"a noise scale from .* meets"):
        perturbed(kind, jacobian=jacobian).calibrate(scarce, problem, network, horizon)
    done = perturbed(kind, jacobian=jacobian, curvature="half").calibrate(
        scarce, problem, network, horizon
    )
    rho = zcdp_rho(scarce.epsilon, scarce.delta, conversion="safe")
    assert done.rho_by_formula(problem, network, horizon) == pytest.approx(rho, rel=1e-9)
    moved, scales, paid = done.losses(problem, network, horizon)
    share = np.sqrt(2 * rho / len(paid))
    assert np.allclose(paid, share / 2)
    assert np.allclose(moved / scales, share / 2, rtol=1e-9)


def test_added_curvature_meets_a_small_budget_by_the_accountant(problem, network):
    scarce = Budget(0.05, 1e-4)
    done = perturbed(DualVariablePerturbation, calibration="accountant", curvature="half")
    done = done.calibrate(scarce, problem, network, 10)
    assert done.Phi > 0
    guarantee = account(done.releases(problem, network, 10), scarce.delta)
    assert guarantee.proven
    assert guarantee.epsilon == pytest.approx(scarce.epsilon, rel=1e-3)
    assert guarantee.epsilon <= scarce.epsilon * (1 + 1e-9)


@pytest.mark.parametrize("kind", BASELINES)
def test_the_added_curvature_is_in_the_objective(problem, uneven, streams, kind):
    """The optimality condition with Phi holds in all iterations, for R-ADMM in odd ones."""
    silent = kind(eta=ETA, Phi=3.0)
    trajectory = run(silent, problem, uneven, streams, 3)
    x = {t: trajectory[t]["released"] for t in (1, 2, 3)}
    dual, before = np.zeros_like(x[1]), np.zeros_like(x[1])
    for t in (1, 2, 3):
        received_sum = uneven.neighbour_sum(before)
        if kind is not Recycled or t % 2:
            slope = pull_towards(problem, uneven, x[t], dual, before, received_sum, ridge=3.0)
            assert np.abs(slope).max() < 1e-8
        dual = dual + ETA * (uneven.degrees[..., None] * x[t] - uneven.neighbour_sum(x[t]))
        before = x[t]


@pytest.mark.parametrize("growth, steps", [(1.02, 1.0), (1.0, 1.02)])
def test_the_loss_of_m_admm_per_iteration_depends_on_penalty_and_noise_growth(
    problem, network, streams, growth, steps
):
    r"""M-ADMM: the gradient at a message is :math:`D_t b_t`.

    Its scale is constant if the noise decreases as :math:`1.02^{-t}`, and otherwise grows by 1.02
    per iteration. The loss is :math:`\Delta` over this scale, plus the Jacobian term."""
    T = 12
    kind = perturbed(PenaltyPerturbation, penalty_growth=1.02, t_0=1, growth=growth)
    done = kind.calibrate(Budget(10.0, 1e-4), problem, network, T)
    trajectory = run(done, problem, network, streams, T)
    received_sum, dual, before = 0.0, 0.0, np.zeros((1, 12, AGENTS, DIM))
    sides = []
    units = streams.sequence("noise", ADDITIVE["gamma_norm"].unit, (AGENTS, DIM), "")
    for t, unit in zip(range(1, T + 1), units, strict=False):
        x, D = trajectory[t]["released"], 2 * ETA * 2 * 1.02 ** (t - 1)
        received_sum = network.neighbour_sum(before)
        slope = problem.gradient(x) + dual + D * (x - (before + received_sum / 2) / 2)
        ratio = slope / unit
        assert np.allclose(ratio, ratio.flat[0], rtol=1e-5)
        sides.append(ratio.flat[0])
        dual = dual + ETA * (2 * x - network.neighbour_sum(x))
        before = x
    sides = np.array(sides)
    assert np.allclose(sides[1:] / sides[:-1], steps, rtol=1e-6)
    _, scales, paid = done.losses(problem, network, T)
    assert np.allclose(scales, sides, rtol=1e-6)
    kappa = problem.record_curvature / (problem.least_convexity + 2.0 * 1.02 ** np.arange(T))
    assert np.allclose(paid, 2.8 * kappa)
    (release,) = done.releases(problem, network, T)
    assert np.allclose(release.losses(), 2 * problem.weight / np.abs(sides) + paid, rtol=1e-6)


# --- PR-ADMM ----------------------------------------------------------------------------------


@pytest.mark.parametrize("period", [1, 5, 10])
def test_rho_of_the_periodic_schedule_is_the_sum_of_theorem_2(problem, network, period):
    """The sum is T_p (1 - R^K) / (R^(K-1) - R^K); the published one omits a message."""
    horizon, decay = 50, 0.925
    done = PR(T_p=period, R_P=decay, noise=3.0)
    moved = 2 * problem.weight / (4 * ETA)
    times = horizon // period
    closed = period * (1 - decay**times) / (decay ** (times - 1) - decay**times)
    direct = done.rho_by_formula(problem, network, horizon) / (moved**2 / (2 * 9.0))
    assert direct == pytest.approx(closed, rel=1e-12)
    short = replace(done, sums="printed").rho_by_formula(problem, network, horizon)
    assert short / (moved**2 / 18.0) == pytest.approx(closed - 1, rel=1e-12)
    if period == 1:
        assert (round(closed, 1), round(closed - 1, 1)) == (595.8, 594.8)


def test_rho_of_the_iteration_schedule_is_the_sum_of_theorem_3(problem, network):
    horizon, decay = 50, 0.015
    done = PR(schedule="iteration", R_T=decay, noise=3.0)
    moved = 2 * problem.weight / (4 * ETA)
    direct = done.rho_by_formula(problem, network, horizon) / (moved**2 / (2 * 9.0))
    assert direct == pytest.approx(1 + decay * horizon * (horizon**2 - 1) / 3, rel=1e-12)
    variances = np.array([done.scale(t) for t in range(1, horizon + 1)]) ** 2 / 9
    assert variances[1] == pytest.approx(1 / (2 * decay))
    assert np.flatnonzero(variances[1:] < 1)[0] + 1 == 8  # errata E4.2


def test_the_sensitivities_of_pr_admm_agree_with_their_formulas(problem, uneven):
    moved = {
        s: PR(sensitivity=s).message_change(problem, PR().penalty(uneven, 1))
        for s in ("lemma10", "per_sample")
    }
    degrees = uneven.degrees[..., None]
    assert np.allclose(moved["lemma10"], 1 / (ETA * degrees))
    assert np.allclose(moved["per_sample"], 20 / (ETA * degrees * RECORDS))
    sharp = PR(sensitivity="sharp").message_change(problem, PR().penalty(uneven, 1))
    assert np.allclose(sharp, 2 * 20 / RECORDS / (problem.ridge + 2 * ETA * degrees))
    assert (sharp < moved["per_sample"]).all()


@pytest.mark.parametrize("threshold", ["literal", "consistent"])
def test_the_threshold_replaces_values_as_in_a_loop_over_edges(problem, uneven, streams, threshold):
    """The minimiser uses replaced values; the dual uses raw or replaced values, per variant."""
    limit = 1.2
    at = run(PR(threshold=threshold, U=limit, noise=0.3, R_P=0.6), problem, uneven, streams, 8)
    shares = []
    for r in range(0, 12, 5):
        data = replace(problem, features=problem.features[r], labels=problem.labels[r])
        links = uneven.adjacency[r]
        graph = SimpleNamespace(degrees=uneven.degrees[r])
        x, dual, far = (np.zeros(s) for s in ((AGENTS, DIM), (AGENTS, DIM), (AGENTS, AGENTS)))
        received_sum = np.zeros_like(x)
        for t in range(1, 9):
            slope = pull_towards(data, graph, at[t]["internal"][0, r], dual, x, received_sum)
            assert np.abs(slope).max() < 1e-8
            x = at[t]["released"][0, r]
            received_sum, dual_change, cut = np.zeros_like(x), np.zeros_like(x), 0
            for i in range(AGENTS):
                for j in np.flatnonzero(links[i]):
                    distance = np.linalg.norm(x[i] - x[j])
                    accepted = far[i, j] + distance <= limit
                    if accepted or threshold == "literal":
                        far[i, j] += distance
                    used = x[j] if accepted else x[i]
                    cut += not accepted
                    received_sum[i] += used
                    dual_change[i] += x[i] - (x[j] if threshold == "literal" else used)
            dual = dual + ETA * dual_change
            shares.append(cut / links.sum())
    assert 0 < np.mean(shares) < 1  # both cases happen


def test_the_accountant_uses_the_proven_sensitivity(problem, network):
    """The noise of Lemma 10 exceeds what is needed; that of per-sample calibration suffices."""
    epsilons = {}
    for sensitivity in ("lemma10", "per_sample", "sharp"):
        algorithm = PR(sensitivity=sensitivity, calibration="formula")
        done = algorithm.calibrate(BUDGET, problem, network, 50)
        epsilons[sensitivity] = account(done.releases(problem, network, 50), 1e-4).epsilon
    assert epsilons["lemma10"] < epsilons["per_sample"] < epsilons["sharp"] < 2.0
    tight = PR(calibration="accountant").calibrate(BUDGET, problem, network, 50)
    assert account(tight.releases(problem, network, 50), 1e-4).epsilon == pytest.approx(2, rel=1e-4)


# --- R-ADMM -----------------------------------------------------------------------------------


def test_even_iterations_of_r_admm_follow_from_broadcast_messages(problem, uneven, streams):
    """Even iterations use the gradient that follows from messages and duals."""
    gamma = 3.0
    at = run(Recycled(eta=ETA, gamma=gamma, noise=0.05), problem, uneven, streams, 10)
    degrees, links = uneven.degrees[..., None], uneven.adjacency.astype(float)
    x, dual = np.zeros((12, AGENTS, DIM)), np.zeros((12, AGENTS, DIM))
    for t in range(1, 11):
        new = at[t]["released"][0]
        disagreement = degrees * new - links @ new
        if t % 2:
            recycled = -2 * dual - ETA * (2 * degrees * new - degrees * x - links @ x)
        else:
            expected = ETA * (degrees * x - links @ x) + recycled + 2 * dual
            expected = x - expected / (2 * ETA * degrees + gamma)
            assert np.allclose(new, expected, atol=1e-12)
        dual = dual + ETA / 2 * disagreement
        x = new


def test_the_recycled_gradient_is_the_gradient_plus_the_noise(problem, network, streams):
    algorithm = Recycled(eta=ETA, noise=0.05)
    (_, state), handler = executed(algorithm, problem, network, streams, 1)
    noisy = problem.gradient(state.x) + 0.05 * handler.releases[0].unit
    assert np.allclose(state.extra["recycled"], noisy, atol=1e-9)


def test_r_admm_accounts_for_every_second_iteration(problem, network):
    done = Recycled(eta=ETA, noise=2.0, rho_conversion=None)
    for horizon, charged in ((1, 1), (2, 1), (9, 5), (10, 5)):
        losses = np.concatenate([r.losses() for r in done.releases(problem, network, horizon)])
        assert len(losses) == charged
        total = done.claimed_epsilon(0.0, problem, network, horizon)
        assert total == pytest.approx(losses.sum(), rel=1e-12)
    kappa = problem.weight / 4 / (problem.ridge + 2.0)
    assert losses[0] == pytest.approx(2 * problem.weight / 2.0 + 2.8 * kappa)


# --- PP-ADMM ----------------------------------------------------------------------------------


@pytest.mark.parametrize("beta", [1e-1, 1e-3, 1e-8])
def test_the_gradient_norm_of_pp_admm_is_within_the_tolerance(problem, network, streams, beta):
    """A loose tolerance leaves a larger gradient than a tight one."""
    algorithm = PP(eta=ETA, beta=beta).calibrate(Budget(8.0, 1e-4), problem, network, 6)
    states, handler = executed(algorithm, problem, network, streams, 6)
    max_gradient_norm = 0.0
    minimisations = [r for r in handler.releases if r.name == "minimiser"]
    for state, after, released in zip(states[:-1], states[1:], minimisations, strict=True):
        linear = state.dual + algorithm.noise * released.unit
        residual = pull_towards(
            problem, network, after.minimiser, linear, state.x, state.received,
            max(algorithm.ridge - problem.ridge, 0.0),
        )  # fmt: skip
        max_gradient_norm = max(max_gradient_norm, np.linalg.norm(residual, axis=-1).max())
    assert 1e-3 * beta < max_gradient_norm <= beta * (1 + 1e-6) + 1e-12


def test_an_unattainable_tolerance_is_an_error(problem, network, streams):
    algorithm = PP(eta=ETA, beta=1e-18, noise=0.1, output_noise=0.1)
    with pytest.raises(Unsolved, match="gradient norm"):
        run(algorithm, problem, network, streams, 2)


def test_the_noise_scales_of_pp_admm_agree_with_the_published_formulas(problem, network):
    """Compare sigma_1, sigma_2 and the condition on lambda with the published formulas."""
    budget, horizon, delta = Budget(1.0, 1e-4), 30, 1e-4
    loss_scale, n = 20.0, RECORDS
    rho = 1.0 / (4 * np.log(1 / delta)) / horizon
    rho_1, rho_2 = 0.999 * rho, 0.001 * rho
    e1 = rho_1 + 2 * np.sqrt(rho_1 * np.log(1 / delta))
    for e3, rule in ((0.99, "literal"), (0.9, "literal"), (0.9, "sharp"), (0.5, "sharp")):
        algorithm = PP(eta=ETA, e3=e3, lam_rule=rule).calibrate(budget, problem, network, horizon)
        sigma_1 = 2 * loss_scale * np.sqrt(2 * np.log(1.25 / delta)) / (n * e3 * e1)
        needed = 2.8 * loss_scale / 4 / ((1 - e3) * e1 * n)
        if rule == "sharp":
            needed = max(needed - 4 * ETA, problem.ridge)
        assert algorithm.noise == pytest.approx(sigma_1, rel=1e-9)
        assert algorithm.ridge == pytest.approx(needed, rel=1e-9)
        sigma_2 = 10**-3.5 / np.sqrt(2 * rho_2)
        assert algorithm.output_noise == pytest.approx(sigma_2, rel=1e-9)
        minimiser = algorithm.mechanisms(problem, network, horizon)["minimiser"]
        paid = np.max(minimiser.jacobian)
        assert paid <= (1 - e3) * e1 * (1 + 1e-9)


def test_approximate_minimisers_are_accounted_with_twice_the_published_distance(problem, network):
    """Both solutions are within beta / m of exact minimisers (errata E4.4)."""
    done = PP(eta=ETA).calibrate(BUDGET, problem, network, 30)
    *perturbed, fuzzed = done.releases(problem, network, 30)
    printed = done.beta / done.output_noise
    assert fuzzed.losses() == pytest.approx(2 * printed) and fuzzed.count == 30
    assert not any(release.proven for release in perturbed)
    assert not account([*perturbed, fuzzed], 1e-4).proven
    tight = replace(done, calibration="accountant").calibrate(BUDGET, problem, network, 30)
    assert account(tight.releases(problem, network, 30), 1e-4).epsilon == pytest.approx(2, rel=1e-3)


def repaired(kind, **changes):
    return kind(eta=ETA, perturbed="output", calibration="accountant", **changes)


def test_output_noise_covers_the_record_change_and_the_approximation_error(problem, network):
    """The output noise is that of one Gaussian mechanism, and the releases are proven."""
    done = repaired(PP, beta=0.01).calibrate(BUDGET, problem, network, 30)
    (release,) = done.releases(problem, network, 30)
    assert (done.noise, release.proven) == (0.0, True)
    moved = problem.record_change("l2") + 2 * 0.01
    least = moved * gaussian_noise_multiplier(BUDGET, 30)
    assert done.output_noise == pytest.approx(least, rel=1e-3)
    assert done.ridge == problem.strong_convexity
    assert account([release], BUDGET.delta).epsilon <= BUDGET.epsilon


def test_corrected_ipp_admm_is_proven_and_its_formula_counts_all_messages(problem, network):
    once = {"tested": "noised", "threshold_drawn": "once", "threshold_scale": "standard"}
    done = repaired(IPP, c=3, **once).calibrate(BUDGET, problem, network, 6)
    releases = done.releases(problem, network, 6)
    assert all(release.proven for release in releases)
    assert [release.mechanism for release in releases] == ["gaussian", "pure"]
    assert account(releases, BUDGET.delta).epsilon == pytest.approx(BUDGET.epsilon, rel=1e-3)
    rho = done.svt_epsilon**2 / 2 + 6 * sum(done.rhos(problem))
    assert done.rho_by_formula(problem, network, 6) == pytest.approx(float(rho), rel=1e-9)


# --- IPP-ADMM ---------------------------------------------------------------------------------


@pytest.mark.parametrize("sensitivity", ["printed", "per_sample"])
def test_the_noise_scales_of_ipp_admm_agree_with_their_formulas(problem, network, sensitivity):
    share, c = 0.1, 7
    rho = zcdp_rho(2.0, 1e-4, conversion="shortcut")
    done = IPP(eta=ETA, c=c, share=share, svt_sensitivity=sensitivity)
    done = done.calibrate(BUDGET, problem, network, 30)
    total = np.sqrt(2 * share * rho)
    first = total / (1 + (2 * c) ** (2 / 3))
    unit = 2.0 if sensitivity == "printed" else 2.0 / RECORDS
    assert done.query_noise == pytest.approx(4 * c * unit / (total - first), rel=1e-12)
    assert done.threshold_noise == pytest.approx(2 * c * unit / first, rel=1e-12)
    standard = replace(done, threshold_scale="standard").calibrate(BUDGET, problem, network, 30)
    assert standard.threshold_noise == pytest.approx(2 * unit / first, rel=1e-12)
    messages = PP(eta=ETA, rho_conversion="shortcut").for_message(0.9 * rho / c, problem, network)
    for noise, message_noise in (
        (done.noise, messages.noise),
        (done.output_noise, messages.output_noise),
    ):
        assert noise == pytest.approx(message_noise)


def decisions(algorithm, problem, network, streams, horizon):
    """Return the state before each iteration, the noise of its releases and the state after it."""
    states, handler = executed(algorithm, problem, network, streams, horizon)
    for t in range(1, horizon + 1):
        units = {r.name: r.unit for r in handler.releases if r.t == t}
        yield states[t - 1], units, states[t]


@pytest.mark.parametrize("redraw", ["each", "after_release", "once"])
def test_ipp_admm_sends_messages_as_in_algorithm_3(problem, uneven, streams, redraw):
    """Compare with Algorithm 3, computed agent by agent."""
    algorithm = IPP(eta=ETA, c=5, threshold_drawn=redraw, noise=0.1, output_noise=0.2, ridge=0.1,
                    query_noise=0.02, threshold_noise=0.05, alpha=0.01, C_loss=0.8)  # fmt: skip
    links, unit = uneven.adjacency.astype(float), None
    again = np.ones((12, AGENTS), bool)
    sent, dual = np.zeros((12, AGENTS)), 0.0
    signed = problem.features * problem.labels[..., None]

    def loss(x):
        return np.minimum(np.log1p(np.exp(-(signed @ x[..., None])[..., 0])), 0.8).mean(-1)

    for before, units, after in decisions(algorithm, problem, uneven, streams, 12):
        query, threshold = (noise[..., 0] for noise in units["test"][0])
        unit = threshold if unit is None else np.where(again, threshold, unit)
        gain = loss(before.x[0]) - loss(after.minimiser[0]) + 0.02 * query
        sends = (gain >= 0.01 + 0.05 * unit) & (sent < 5)
        again = {"each": np.ones_like(sends), "after_release": sends, "once": 0 * sends > 0}[redraw]
        sent = sent + sends
        output_noise = 0.2 / (0.1 + 2 * ETA * uneven.degrees[..., None]) * units["message"]
        x = np.where(sends[..., None], after.minimiser[0] + output_noise, before.x[0])
        assert np.allclose(after.x[0], x, atol=1e-12) and np.array_equal(
            after.extra["sent"][0], sent
        )
        dual = dual + ETA * (uneven.degrees[..., None] * x - links @ x)
        assert np.allclose(after.dual[0], dual, atol=1e-10)
    assert 0 < sent.sum() < 12 * sent.size
    assert sent.max() == 5


def test_with_tests_on_noisy_iterates_all_iterations_are_accounted(problem, network, streams):
    horizon = 12
    algorithm = IPP(
        eta=ETA, c=3, tested="noised", threshold_drawn="once", threshold_scale="standard"
    )
    done = algorithm.calibrate(Budget(10.0, 1e-4), problem, network, horizon)
    rho = zcdp_rho(10.0, 1e-4, conversion="shortcut")
    assert done.rho_by_formula(problem, network, horizon) == pytest.approx(rho)
    assert sum(done.rhos(problem)) == pytest.approx((1 - done.share) * rho / horizon)
    assert done.svt_epsilon**2 / 2 == pytest.approx(done.share * rho)
    tests = [r for r in done.releases(problem, network, horizon) if r.epsilon is not None][-1]
    assert tests.proven
    sent = run(done, problem, network, streams, horizon)
    assert sent[horizon]["messages"].max() <= 3


@pytest.mark.parametrize("scale", ["printed", "standard"])
@pytest.mark.parametrize("sensitivity", ["printed", "per_sample"])
@pytest.mark.parametrize("tested", ["minimiser", "noised"])
def test_the_accounted_loss_of_the_tests_follows_from_their_noise_scales(
    problem, network, scale, sensitivity, tested
):
    """The loss depends on how often the threshold noise is sampled.

    It is epsilon_1 + epsilon_2 for one sample, c epsilon_1 + epsilon_2 for one sample per release,
    and the sum over tests for one sample per test, each scaled by the ratio of the sensitivity to
    the published one."""
    c, horizon = 4, 30
    options = {"threshold_scale": scale, "svt_sensitivity": sensitivity, "tested": tested}
    releases_by_sampling = {}
    for redrawn in ("once", "after_release", "each"):
        algorithm = IPP(eta=ETA, c=c, perturbed="output", threshold_drawn=redrawn, **options)
        done = algorithm.calibrate(BUDGET, problem, network, horizon)
        releases_by_sampling[redrawn] = done.releases(problem, network, horizon)[-1]
        assert releases_by_sampling[redrawn].proven
    first = done.svt_epsilon / (1 + (2 * c) ** (2 / 3))
    second = done.svt_epsilon - first
    first /= c if scale == "printed" else 1
    moved = 2 * C_LOSS / RECORDS if tested == "noised" else C_LOSS * (1 + 1 / RECORDS)
    share = moved / (2 * C_LOSS / (1 if sensitivity == "printed" else RECORDS))
    single_sample, per_release, per_test = (
        releases_by_sampling[redrawn] for redrawn in ("once", "after_release", "each")
    )
    assert single_sample.epsilon == pytest.approx(share * (first + second))
    assert per_release.epsilon == pytest.approx(share * (c * first + second))
    assert per_test.epsilon == pytest.approx(share * min(first, second / (2 * c)))
    assert (single_sample.count, per_release.count, per_test.count) == (1, 1, horizon)


# --- Bad input --------------------------------------------------------------------------------


def test_invalid_budgets_and_horizons_are_refused(problem, network, streams):
    with pytest.raises(InvalidInput, match=r"algorithm.c: found 15, expected at most the 10"):
        IPP(eta=ETA).calibrate(BUDGET, problem, network, 10)
    with pytest.raises(InvalidInput, match=r"budget.delta: found 0.0, expected above 0"):
        PP(eta=ETA).calibrate(Budget(1.0, 0.0), problem, network, 10)
    with pytest.raises(InvalidInput, match=r"horizon: found 1, expected at least 2"):
        PR(sums="printed", calibration="formula").calibrate(BUDGET, problem, network, 1)
    steep = build(streams, weight=10.0, ridge=1e-6)
    for algorithm in (
        PP(eta=ETA, e3=0.01),
        Recycled(calibration="formula"),
        Recycled(calibration="formula", rho_conversion=None),
        Recycled(),
    ):
        with pytest.raises(InvalidInput, match=r"kappa: found .*at most 1/2"):
            algorithm.calibrate(Budget(1e4, 1e-4), steep, network, 10)
