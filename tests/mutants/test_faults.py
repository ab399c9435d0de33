"""Test that each fault changes what it states, and nothing of what the algorithm declares."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from private_consensus.audits.evidence import recovered
from private_consensus.audits.exact_costs import _Pairs
from private_consensus.audits.execution import execute
from private_consensus.audits.finders import universe_of
from private_consensus.audits.judging import DeclaredSetting, declaration
from private_consensus.audits.neighbours import Attack, attacks
from private_consensus.audits.sampled_batches import sampled_record_change
from private_consensus.audits.streams import AuditStreams
from private_consensus.core.algorithms import module_of, names
from private_consensus.core.algorithms.base import draws_of, stack
from private_consensus.core.algorithms.zip_dl import cancelling, hiding_energy
from private_consensus.core.networks import Network
from private_consensus.core.randomness import Streams
from private_consensus.privacy import Release, account, gaussian_epsilon, gaussian_mu

from . import draws, leaks, messages, steps, truth
from .cases import CASES, batched, case_of, cases, claimless
from .faults import BYPASSES, FAULTS, HARMLESS, OUTPUTS, UNCHANGED, class_of, fault
from .tampering import Answered, Drawn, dressed, fingerprint, own_noise

RUNS = 11
STREAMS = Streams(11, tuple(range(RUNS)))
DECLARATIONS = {"account of the first", "delta twice"}
ELSEWHERE = {"branches on data", "returned outputs", "bypass of network.mix"}
"""Classes of faults that tests of their own cover: messages on the data of a case stay."""


class Heard(Network):
    """Network that records values that are mixed or summed over neighbours."""

    def __init__(self, network):
        super().__init__(network.adjacency, network.mixing)
        object.__setattr__(self, "exchanged", [])

    def mix(self, x):
        self.exchanged.append(np.array(x))
        return super().mix(x)

    def neighbour_sum(self, x):
        self.exchanged.append(np.array(x))
        return super().neighbour_sum(x)


def ran(algorithm, case, problem=None, streams=STREAMS):
    """Run an algorithm and return its observables per iteration and the exchanged values."""
    network, released = Heard(case.network), []

    def record(t, active, observables):
        values = observables.get("released", observables.get("internal"))
        if values is not None:
            released.append(np.array(values[0]))

    problem = batched(problem or case.problem, len(streams.runs))
    stack([algorithm]).run(problem, network, streams, np.array([case.horizon]), record)
    return released, network.exchanged


def sequence(change, count=6, horizon=6, shape=(3, 4), purpose="noise"):
    """Return unit draws before and after a change."""
    plain = islice(STREAMS.sequence(purpose, "normal", shape), count)
    changed = Drawn(STREAMS, purpose, change, horizon).sequence(purpose, "normal", shape)
    return list(plain), list(islice(changed, count))


def test_every_algorithm_that_claims_something_has_a_case():
    for name in sorted(set(names()) - set(CASES) - claimless()):
        module = module_of(name).replace(".", "/")
        pytest.fail(
            f"src/{module}.py: add a line such as EXAMPLE = 'mean_estimation'. For an algorithm "
            f"without a guarantee, add {name!r} to claimless() in tests/mutants/cases.py."
        )
    assert set(CASES) | claimless() == set(names())
    assert not set(CASES) & claimless()


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_a_broken_copy_does_something_else_and_declares_the_same(case):
    world = case.problem, case.network, case.horizon
    honest = ran(case.calibrated, case)
    costs = account(case.calibrated.releases(*world), 1e-2).epsilon
    for known_fault in FAULTS:
        if not known_fault.applies(case) or class_of(known_fault.name) in ELSEWHERE:
            continue
        copy = known_fault.broken(case.algorithm).calibrate(case.budget, *world)
        assert known_fault.ratio(case, 1e-2) > 0, known_fault.name
        if known_fault.name == "account of the first":
            continue
        advice = f"{known_fault.name}: no effect; change EXAMPLE of {case.name}, or Fault.applies"
        assert not alike(honest, ran(copy, case)), advice
        if known_fault.name not in DECLARATIONS:
            assert account(copy.releases(*world), 1e-2).epsilon == costs, known_fault.name


def alike(first_run, second_run) -> bool:
    """Return True if two executions released and exchanged equal values."""
    same = [len(a) == len(b) for a, b in zip(first_run, second_run, strict=True)]
    equal = [
        np.array_equal(a, b)
        for first, second in zip(first_run, second_run, strict=True)
        for a, b in zip(first, second, strict=False)
    ]
    return all(same) and all(equal)


@pytest.mark.parametrize("clip", [0.02, 0.2])
def test_faults_of_an_example_with_clipping_have_an_effect(clip):
    """A fault before a clipping norm that binds would change nothing."""
    case = case_of("local_training")
    clipping = replace(case, algorithm=replace(case.algorithm, clip=clip))
    test_a_broken_copy_does_something_else_and_declares_the_same(clipping)


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_the_machinery_alone_changes_nothing(case):
    """Noise that the base classes of faults draw again has the same distribution."""
    honest, copy = case.calibrated, UNCHANGED.broken(case.calibrated)
    if not case.name.endswith(("dsgd", "dpsgd_1", "dpsgd_2")):
        assert alike(ran(honest, case), ran(copy, case))
        return
    streams = Streams(12, tuple(range(400)))
    first, second = (ran(algorithm, case, streams=streams)[0] for algorithm in (honest, copy))
    for honest_message, copy_message in zip(first, second, strict=True):
        ratio = honest_message.std(0).mean() / copy_message.std(0).mean()
        assert ratio == pytest.approx(1.0, abs=0.03)  # 400 runs of 69 coordinates: 0.5 %
        assert np.abs(honest_message.mean(0) - copy_message.mean(0)).max() < 6 * honest_message.std(
            0
        ).max() / np.sqrt(200)


@pytest.mark.parametrize("factor", [0.8, 0.5])
def test_less_noise_is_less_noise_by_the_factor(factor):
    plain, changed = sequence(draws.times(factor))
    assert np.array_equal(np.array(changed), factor * np.array(plain))


@pytest.mark.parametrize(
    ("broken", "quiet"),
    [
        ("none in the first round", [1]),
        ("none in the last round", [3]),
        ("none every third round", [3]),
    ],
)
def test_the_noise_of_some_rounds_is_missing(broken, quiet):
    case = case_of("p_admm")
    algorithm = fault(broken).broken(case.calibrated)
    both = [ran(algorithm, case, streams=Streams(seed, (0, 1)))[0] for seed in (1, 2)]
    first = min(quiet)
    same = [np.array_equal(a, b) for a, b in zip(*both, strict=True)]
    # noiseless messages depend on earlier messages, which are equal at the start only
    assert same[0] == (first == 1)
    silent = [
        np.abs(sent - np.array(bare)).max() == 0.0
        for sent, bare in zip(ran(algorithm, case)[0], inner(algorithm, case), strict=True)
    ]
    assert [t for t, without in enumerate(silent, 1) if without] == quiet


def inner(algorithm, case):
    """Return the minimisers before their noise."""
    minimisers = []
    stack([algorithm]).run(
        case.problem, case.network, STREAMS, np.array([case.horizon]),
        lambda t, active, observables: minimisers.append(np.array(observables["internal"][0]))
        if "internal" in observables else None,
    )  # fmt: skip
    return minimisers


def test_half_of_the_coordinates_have_no_noise():
    plain, changed = sequence(draws.half)
    assert (np.array(changed)[..., ::2] == 0).all()
    assert np.array_equal(np.array(changed)[..., 1::2], np.array(plain)[..., 1::2])


def test_noise_comes_again_in_round_three_and_for_the_second_agent():
    plain, changed = sequence(draws.third_is_first)
    assert np.array_equal(changed[2], plain[0])
    assert all(np.array_equal(changed[t], plain[t]) for t in (0, 1, 3, 4, 5))
    _, changed = sequence(draws.second_agent_is_first)
    assert np.array_equal(np.array(changed)[:, :, 1], np.array(changed)[:, :, 0])


def test_noise_in_another_order_has_the_same_length_and_folded_noise_no_tail():
    plain, changed = (np.array(units) for units in sequence(draws.another_order))
    assert np.array_equal(changed[:, :, 1], -changed[:, :, 0, ::-1])
    other_indices = np.delete(np.arange(plain.shape[2]), 1)
    assert np.array_equal(changed[:, :, other_indices], plain[:, :, other_indices])
    plain, changed = (np.array(units) for units in sequence(draws.folded, count=60))
    short = np.abs(plain) <= 2.0
    assert np.array_equal(changed[short], plain[short]) and not short.all()
    assert np.abs(changed).max() <= 2.0 and (np.abs(changed[~short]) > 1.0).all()


def test_noise_that_is_taken_back_adds_up_to_one_draw():
    plain, changed = sequence(draws.taken_back)
    assert np.sum(changed, axis=0) == pytest.approx(plain[-1])


def test_one_draw_for_all_coordinates_and_none_in_every_tenth_run():
    _, changed = sequence(draws.one_for_all_coordinates)
    assert (np.ptp(changed, axis=-1) == 0).all()
    _, changed = sequence(draws.in_nine_runs_of_ten)
    silent = (np.array(changed) == 0).all((0, 2, 3))
    assert np.flatnonzero(silent).tolist() == [0, 10]


def test_other_purposes_stay_as_they_are():
    drawn = Drawn(STREAMS, "noise", draws.times(0.0), 3)
    for plain in ("draw", "sequence"):
        expected, actual = (
            getattr(streams, plain)("sampling", "uniform", (5,)) for streams in (STREAMS, drawn)
        )
        if plain == "sequence":
            expected, actual = next(expected), next(actual)
        assert np.array_equal(expected, actual)


@pytest.mark.parametrize("name", sorted(CASES))
def test_seeds_in_the_code_and_seeds_from_data(name):
    """The first message ignores the streams; it depends on the data only if the seed does."""
    case = case_of(name)
    worlds = [
        Streams(root, (0, 1, 2), {"noise": str(root), "sampling": "common"}) for root in (1, 2)
    ]
    for broken in ("same in both worlds", "one seed", "seeded from data"):
        algorithm = fault(broken).broken(case.calibrated)
        noises = [noise_of(algorithm, case, case.problem, streams) for streams in worlds]
        assert np.array_equal(*noises)
        runs_are_equal = np.array_equal(noises[0][0], noises[0][1])
        assert runs_are_equal == (broken == "one seed")
    neighbour_noise = noise_of(algorithm, case, case.neighbour, worlds[0])
    assert not np.array_equal(noises[0], neighbour_noise)


def noise_of(algorithm, case, problem, streams):
    """Return the unit noise that an algorithm draws from its streams."""
    drawn_noise = []

    class Caught:
        def __init__(self, streams):
            self.streams = streams

        def run(self, problem, network, streams, horizon, observe):
            drawn_noise.append(streams.draw("noise", "normal", (4,)))

    kind = type(algorithm).__mro__[1]
    caught = type("Caught", (kind, Caught), {})(streams)
    caught.run(problem, case.network, streams, np.array([case.horizon]), None)
    return drawn_noise[0]


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_a_neighbour_has_another_fingerprint(case):
    assert fingerprint(case.problem) != fingerprint(case.neighbour)
    assert fingerprint(case.problem) == fingerprint(case_of.__wrapped__(case.name).problem)


# Clipping and batches.


def gradients(scale=3.0):
    return scale * np.random.default_rng(0).standard_normal((3, 5, 8))


def test_clipping_by_norm_is_the_problems_own():
    case = case_of("dsgd")
    problem, rows = case.problem, case.problem.rows_of(0)[:, :5]
    x = problem.initial("random", STREAMS)[0] + np.zeros((problem.n_agents, 1))
    sizes = np.array([5, 3, 0])
    for K in (0.05, np.inf):
        expected = problem.clipped_gradient(x, rows, sizes, K)
        again = steps.clipped_otherwise(steps.by_norm)(problem)["clipped_gradient"]
        assert again(x, rows, sizes, K) == pytest.approx(expected, abs=1e-15)


def test_other_ways_to_clip_leave_gradients_longer():
    lengths = lambda g: np.linalg.norm(g, axis=-1)  # noqa: E731
    assert lengths(steps.by_norm(gradients(), 1.0)).max() <= 1 + 1e-12
    assert lengths(steps.by_largest_coordinate(gradients(), 1.0)).max() > 1.5
    clipped = steps.by_own_median(gradients(), 1e-3)
    assert lengths(clipped).max() == pytest.approx(np.median(lengths(gradients()), axis=1).max())
    mean_gradients = steps.only_long_ones(gradients(), 1.0)
    is_long = lengths(mean_gradients) > 0
    assert is_long.sum(1).tolist() == [3, 3, 3]
    # the mean over three of five: each of them weighs 1/3
    assert mean_gradients.mean(1) == pytest.approx(
        np.stack(
            [g[k].mean(0) for g, k in zip(steps.by_norm(gradients(), 1.0), is_long, strict=True)]
        )
    )


def test_a_mean_that_is_clipped_is_short_and_its_records_are_not():
    case = case_of("dsgd")
    moved = truth.first_change(fault("clipped mean").broken(case.calibrated), case)
    honest = truth.first_change(case.calibrated, case)
    max_change = case.algorithm.alpha * case.algorithm.K
    assert honest <= 2 * max_change / case.algorithm.B * (1 + 1e-9)
    assert 2 * max_change / case.algorithm.B < moved <= 2 * max_change


def test_a_batch_is_kept_and_a_number_is_fixed():
    plain, changed = sequence(draws.kept, purpose="sampling")
    assert all(np.array_equal(draw, plain[0]) for draw in changed)
    uniform = Drawn(STREAMS, "sampling", draws.as_many_as_expected, 4).sequence(
        "sampling", "uniform", (3, 20)
    )
    batch_sizes = np.array([(unit < 0.25).sum(-1) for unit in islice(uniform, 5)])
    assert (batch_sizes == 5).all()


def test_a_weight_of_two_doubles_gradients_and_the_pull_of_minimisers():
    case = case_of("p_admm")
    weighed = Answered(case.problem, **steps.weighed(case.problem))
    x = np.full((1, 2, 3, 2), 0.3)
    assert weighed.gradient(x) == pytest.approx(2 * case.problem.gradient(x))
    linear, penalty, centre = 0.1 * x, np.full((1, 2, 3, 1), 2.0), 0.2 * x
    minimiser = weighed.proximal(linear, penalty, centre, x)
    slope = weighed.gradient(minimiser) + linear + penalty * (minimiser - centre)
    assert np.abs(slope).max() < 1e-8


# Messages.


def test_what_is_told_is_exact():
    case = case_of("gradient_descent")
    _, exchanged = ran(fault("a second message").broken(case.calibrated), case)
    exact_gradient = case.problem.gradient(np.zeros((1, RUNS, case.problem.n_agents, 2)))
    assert any(np.array_equal(value, exact_gradient) for value in exchanged)
    once = ran(fault("the gradient once").broken(case.calibrated), case)[1]
    assert len(once) == len(ran(case.calibrated, case)[1]) + 1
    assert len(exchanged) == len(once) + case.horizon - 1


def test_an_exact_minimiser_is_told_and_moves_the_dual():
    case = case_of("p_admm")
    algorithm = fault("the minimiser once").broken(case.calibrated)
    exact_minimiser = inner(algorithm, case)[1]
    assert any(
        np.array_equal(exchanged[0], exact_minimiser) for exchanged in ran(algorithm, case)[1]
    )
    honest, copy = (a for a in (case.calibrated, fault("the exact dual").broken(case.calibrated)))
    first, second = inner(honest, case), inner(copy, case)
    assert np.array_equal(first[0], second[0])
    assert not np.array_equal(first[1], second[1])


def test_the_number_of_messages_depends_on_the_data():
    case = case_of("gradient_descent")
    algorithm = fault("stops by data").broken(case.calibrated)
    counts = [len(ran(algorithm, case, problem)[0]) for problem in (case.problem, case.neighbour)]
    repetitions = [fingerprint(p) % messages.MOST_REPEATED for p in (case.problem, case.neighbour)]
    honest = len(ran(case.calibrated, case)[0])
    assert counts == [honest + number for number in repetitions]


def test_a_grid_without_dither_rounds_to_the_nearest_point():
    grid, x = messages.NearestPoint(0.1, 3, False), np.array([[0.04, 0.06, -0.26]])
    out = np.empty_like(x)
    assert grid.quantize(x, None, 0, out) == 0
    assert out == pytest.approx(np.array([[0.0, 0.1, -0.3]]))


# What a fault costs.


@pytest.mark.parametrize("name", ["gradient_descent", "p_admm", "exact_admm", "dp_admm"])
def test_half_of_gaussian_noise_is_twice_mu(name):
    case = case_of(name)
    losses = np.concatenate([
        np.repeat(release.losses(), release.count)
        for release in case.calibrated.releases(case.problem, case.network, case.horizon)
    ])  # fmt: skip
    mu = np.sqrt((losses**2).sum())
    expected = gaussian_epsilon(2 * mu, 1e-2) / gaussian_epsilon(mu, 1e-2)
    assert fault("noise x 0.5").ratio(case, 1e-2) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("name", "fraction"), [("decor", 0.5), ("local_training", 0.5)])
def test_a_record_of_twice_the_weight_costs_twice_the_attained_fraction(name, fraction):
    """The exact shift of all messages is computed for a label of logistic regression."""
    case = case_of(name)
    broken = fault("weight not counted")
    assert truth.attained_fraction(case) == fraction
    declared = case.calibrated.releases(case.problem, case.network, case.horizon)
    attack = next(attacks(case.problem, case.network, None, nearby=False))
    lengths = []
    for algorithm in (case.calibrated, broken.broken(case.calibrated)):
        setting = DeclaredSetting(algorithm, case.problem, case.network, case.horizon, 1e-2)
        pairs = _Pairs(setting, 0, None)
        pairs.executed(attack, 0).messages(np.zeros((1, 1)))
        (shift,) = next(pairs.shifts(attack))
        lengths.append(np.linalg.norm(shift.units) / declaration(declared, 1e-2).mu)
    assert lengths == pytest.approx([fraction, 2 * fraction], rel=1e-4)
    assert broken.ratio(case, 1e-2) == pytest.approx(1.0)


def test_noise_that_is_taken_back_costs_what_the_covariance_says():
    case = case_of("gradient_descent")
    (release,) = case.calibrated.releases(case.problem, case.network, case.horizon)
    d = release.losses()
    back = np.eye(len(d)) - np.eye(len(d), k=-1)
    mu = np.sqrt(d @ np.linalg.inv(back @ back.T) @ d)
    expected = gaussian_epsilon(mu, 1e-2) / account([release], 1e-2).epsilon
    assert fault("taken back").ratio(case, 1e-2) == pytest.approx(expected, rel=1e-6)


def test_a_record_that_is_taken_sometimes_costs_the_mixture():
    """The reference is the hockey-stick divergence of (1-q) N(0,1) + q N(mu,1) from N(0,1)."""
    q, mu, delta = 0.5, 2.0, 1e-2
    sampled_epsilon = truth._taken_sometimes(Release("gaussian", mu, 1.0), q, delta)
    x = np.linspace(-12, 14, 400_001)
    normal = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
    mixed = (1 - q) * normal + q * np.exp(-((x - mu) ** 2) / 2) / np.sqrt(2 * np.pi)
    divergence = np.trapezoid(np.maximum(mixed - np.exp(sampled_epsilon) * normal, 0.0), x)
    assert divergence == pytest.approx(delta, rel=1e-4)


def test_an_account_of_the_first_round_alone_sets_less_noise():
    """Three Gaussian messages cost sqrt(3) times the mu of one message.

    Noise that a formula sets, or that covers one message only, is unchanged.
    """
    case = case_of("p_admm")
    mu = gaussian_mu(case.budget.epsilon, case.budget.delta)
    expected = gaussian_epsilon(np.sqrt(3) * mu, 1e-2) / gaussian_epsilon(mu, 1e-2)
    first_only = fault("account of the first")
    assert first_only.ratio(case, 1e-2) == pytest.approx(expected, rel=1e-4)
    assert [first_only.ratio(case_of(name), 1e-2) for name in ("gradient_descent", "dp_ci")] == [
        1,
        1,
    ]


def test_gradients_that_are_twice_as_long_are_attained_twice_as_far():
    case = case_of("dsgd")
    doubled = fault("weights after clipping").broken(case.calibrated)
    moved, honest = (truth.first_change(a, case) for a in (doubled, case.calibrated))
    assert moved == pytest.approx(2 * honest, rel=1e-9)


@pytest.mark.parametrize("broken", [None, "clipped mean", "weights after clipping"])
def test_a_record_in_a_batch_is_held_against_the_noise_that_is_drawn(broken):
    case = case_of("dsgd")
    algorithm = fault(broken).broken(case.calibrated) if broken else case.calibrated
    pair = Attack((case.problem, case.neighbour), case.network, np.ones(case.problem.dim))
    declared = algorithm.releases(case.problem, case.network, case.horizon)
    report = sampled_record_change(
        algorithm, pair, case.horizon, releases=declared, level=1e-3, seed=0
    )
    assert bool(report.findings) == (broken is not None)


@pytest.mark.parametrize("name", ["dsgd", "sdm_dsgd"])
def test_noise_with_a_sign_of_the_data_is_not_the_effect_of_a_record(name):
    """Equal draws give opposite noise on the two data sets; messages differ by twice the noise."""
    case = case_of(name)
    label = case.problem.labels[0]
    signed = steps.noise_added(
        lambda unit, t, problem: unit if problem.labels[0] == label else -unit
    )
    mixins = signed, *own_noise(case.algorithm, in_step=True)
    algorithm = dressed(case.calibrated, type(case.calibrated), *mixins)
    pair = Attack((case.problem, case.neighbour), case.network, np.ones(case.problem.dim))
    declared = algorithm.releases(case.problem, case.network, case.horizon)
    report = sampled_record_change(
        algorithm, pair, case.horizon, releases=declared, level=1e-3, seed=0, runs=20
    )
    assert not report.findings
    assert [gap.item for gap in report.untested] == ["effect of a sampled record of agent 0"]


# Noise as it is added in a step.

ADDITIVE = (
    "p_admm", "gradient_descent", "dsgd", "sdm_dsgd", "decor", "pp_admm", "muffliato",
)  # fmt: skip
"""Algorithms whose first message is affine in the noise."""


def first_with(addition, case):
    """Return the first message if steps add other noise; shape (runs, agents, dim)."""
    mixins = steps.noise_added(addition), *own_noise(case.algorithm, in_step=True)
    algorithm = dressed(case.calibrated, type(case.calibrated), *mixins)
    return ran(algorithm, case)[0][0]


@pytest.mark.parametrize("name", ADDITIVE)
def test_a_step_adds_half_of_the_noise_or_none_of_one_agent(name):
    case = case_of(name)
    honest = first_with(lambda unit, t, problem: unit, case)
    silent = first_with(lambda unit, t, problem: 0.0 * unit, case)
    noise = honest - silent
    sent = np.abs(noise).max(0) > 0  # SDM-DSGD sends some coordinates
    assert sent.any()
    half = first_with(steps.added_half, case)
    assert half - silent == pytest.approx(noise / 2, rel=1e-4, abs=1e-6 * np.abs(noise).max())
    last = first_with(steps.added_by_all_but_the_last, case)[:, -1] - silent[:, -1]
    assert np.abs(last).max() <= 1e-6 * np.abs(noise).max() or name == "muffliato"
    coordinate = first_with(steps.added_to_all_but_the_last_coordinate, case) - silent
    assert np.abs(coordinate[..., -1]).max() <= 1e-6 * np.abs(noise).max()
    assert np.abs(coordinate).max() > 0


def test_a_sign_of_the_data_changes_noise_and_not_its_length():
    case = case_of("p_admm")
    unit = np.random.default_rng(0).standard_normal((4, 3, 2))
    signed = steps.signed_by_data(unit, 1, case.problem)
    assert np.array_equal(abs(signed), abs(unit)) and not np.array_equal(signed, unit)
    assert HARMLESS.ratio(case, 1e-2) == 1.0


def recovered_noise(algorithm, case, runs=40):
    """Return the noise that the audit recovers from the messages, by site."""
    calibrated = algorithm.calibrate(case.budget, case.problem, case.network, case.horizon)
    streams = AuditStreams.labelled("noise", runs, 0)
    execution = execute(calibrated, case.problem, case.network, streams, case.horizon)
    return recovered(calibrated, case.problem, case.network, streams, execution)


@pytest.mark.parametrize("name", ["pdop", "dvp", "p_admm", "pp_admm_renyi", "dp_ci"])
def test_noise_with_a_sign_of_the_data_is_recovered_with_its_length(name):
    """The noise is also recovered in later iterations, which start from earlier messages."""
    case = case_of(name)
    plain, signed = (
        recovered_noise(algorithm, case)
        for algorithm in (case.algorithm, HARMLESS.broken(case.algorithm))
    )
    assert plain.keys() == signed.keys() and plain
    for site, noise in plain.items():
        assert noise.shape[1] == case.horizon
        np.testing.assert_allclose(np.abs(signed[site]), np.abs(noise), atol=2e-3)


@pytest.mark.parametrize("name", ["mafalda_sgd", "local_training"])
def test_noise_of_undeclared_sites_has_the_sign_of_the_message(name):
    """Two data sets with different signs then differ by the effect of a record only."""
    case = case_of(name)
    plain, turned = (
        recovered_noise(
            dressed(case.algorithm, type(case.algorithm), steps.noise_added(change)), case
        )
        for change in (lambda unit, t, problem: unit, lambda unit, t, problem: -unit)
    )
    np.testing.assert_allclose(turned["draw"], -plain["draw"], atol=2e-3)


def test_correlated_noise_with_a_sign_of_the_data_stays_white():
    case = case_of("decor")
    (noise,) = recovered_noise(HARMLESS.broken(case.algorithm), case, runs=400).values()
    assert noise.shape[1] == case.horizon
    # 800 numbers per agent and iteration; their mean square has the deviation 0.05
    assert (noise**2).mean((0, 3)) == pytest.approx(1.0, abs=0.25)


BRANCHING = {
    "p_admm": steps.added_unless_gradients_vanish,
    "gradient_descent": steps.added_unless_gradients_vanish,
    "exact_admm": steps.added_unless_gradients_vanish,
    "pdop": steps.added_unless_gradients_are_long,
    "muffliato": steps.added_unless_gradients_are_long,
}


@pytest.mark.parametrize("name", BRANCHING)
def test_a_branch_leaves_out_noise_on_data_that_finders_propose(name):
    case = case_of(name)
    unit = np.ones((2, case.problem.n_agents, case.problem.dim))

    def noise(problem):
        return BRANCHING[name](unit, 1, problem)[:, 1].any()

    assert noise(case.problem)
    universe = universe_of(case.problem)
    pairs = universe.special_data(case.network, 1, np.random.default_rng(0))
    assert any(not noise(problem) for attack in pairs for problem in attack.pair)


# Values that leave an agent other than by messages.


def shown_by(algorithm, case, problem):
    """Return all observables of an algorithm by name."""
    arrays: dict[str, list] = {}

    def keep(t, active, observables):
        for name, values in observables.items():
            arrays.setdefault(name, []).append(np.array(values[0]))

    problem = batched(problem, RUNS)
    stack([algorithm]).run(problem, case.network, STREAMS, np.array([case.horizon]), keep)
    return arrays


@pytest.mark.parametrize(
    "fault_of_output", OUTPUTS, ids=lambda fault_of_output: fault_of_output.name
)
def test_an_output_is_exact_and_messages_stay(fault_of_output):
    case = case_of("p_admm")
    honest = shown_by(case.calibrated, case, case.problem)
    leaking = shown_by(fault_of_output.broken(case.calibrated), case, case.problem)
    (new,) = leaking.keys() - honest.keys()
    assert all(np.array_equal(honest[name], leaking[name]) for name in honest)
    moved = replace_last(case)
    moved_outputs = shown_by(fault_of_output.broken(case.calibrated), case, moved)
    assert np.ptp(leaking[new], axis=1).max() == 0.0  # the same in all runs: no noise
    assert not np.array_equal(leaking[new], moved_outputs[new])


def replace_last(case):
    """Return the problem with one record of the last agent replaced."""
    rng = np.random.default_rng(0)
    pairs = universe_of(case.problem).special_data(case.network, case.problem.n_agents - 1, rng)
    return next(iter(pairs)).pair[0]


@pytest.mark.parametrize("bypass", BYPASSES, ids=lambda bypass: bypass.name)
def test_a_bypass_moves_an_exact_value_and_exchanges_nothing(bypass):
    case = case_of("p_admm")
    algorithm, honest = stack([bypass.broken(case.calibrated)]), stack([case.calibrated])
    network = Heard(case.network)
    problem = batched(case.problem, RUNS)
    state = honest.start(problem, network, STREAMS, 1)
    draw = next(draws_of(honest, problem, network, STREAMS))
    network.exchanged.clear()
    after = honest.step(state, problem, network, draw, 1)
    count = len(network.exchanged)
    moved = algorithm.step(state, problem, network, draw, 1)
    assert len(network.exchanged) == 2 * count > 0
    exact = problem.gradient(np.zeros((1, 1, problem.n_agents, problem.dim)))
    receivers = abs(moved.x - after.x).max((0, 1, 3)) > 0
    assert receivers.sum() == (1 if bypass.name == "bypass of one edge" else problem.n_agents)
    assert (moved.x - after.x)[0, 0, 0] / leaks.SHARE == pytest.approx(
        exact.mean(-2)[0, 0] if "product" in bypass.name else exact[0, 0, -1]
    )


def test_a_bypassed_mean_gradient_cancels_the_first_step_of_secure_aggregation():
    case, bypass = case_of("secure_aggregation"), fault("bypass by own product")
    assert not bypass.applies(case)
    algorithm = stack([bypass.broken(case.calibrated)])
    states = []
    for data in (case.problem, case.neighbour):
        state = algorithm.start(batched(data, RUNS), case.network, STREAMS, 1)
        draw = next(draws_of(algorithm, data, case.network, STREAMS))
        states.append(algorithm.step(state, batched(data, RUNS), case.network, draw, 1).x)
    np.testing.assert_allclose(*states, atol=1e-12)


def test_sums_of_draws_reveal_little_about_the_noise_of_zip_dl():
    case = case_of("zip_dl")
    assert not fault("noise told").applies(case)
    mixing = case.network.mixing
    agents = len(mixing)
    units = np.eye(agents)[:, None, :, None] * np.ones((agents, 1, 1))
    noise = np.array([cancelling(mixing, unit)[0, 1:, 0] for unit in units]).T
    with_sum = np.vstack([noise, np.ones(agents)])  # messages of agent 0, then the sum of its draws
    shift = np.ones(agents - 1)  # a record moves all messages of an agent by the same vector
    hidden, told = (
        moved @ np.linalg.solve(matrix @ matrix.T, moved)
        for matrix, moved in ((noise, shift), (with_sum, np.append(shift, 0.0)))
    )
    assert hidden == pytest.approx(hiding_energy(mixing))
    assert np.sqrt(told / hidden) == pytest.approx(np.sqrt(9 / 8))  # the ratio of mu
