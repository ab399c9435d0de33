"""Test cases in which the linear formula underestimates mu, and the bounds that still hold."""

import numpy as np
import pytest
from dense_views import complete, floats, lopsided, metropolis, path, ring, star
from scipy.stats import norm

from private_consensus.common.errors import InvalidInput
from private_consensus.privacy.audit.families import claim_p_value
from private_consensus.privacy.audit.statistics import audit_statistics
from private_consensus.privacy.observers import (
    Constant,
    Cyclic,
    Eavesdropper,
    FinalModels,
    Free,
    Inputs,
    Once,
    agent,
    contraction_bound,
    light_cone_bound,
    mu,
    muffliato_gd,
    noised_descent,
    secure_agent,
    statement,
)

PATH = floats(metropolis(path(3)))


def test_mu_exceeds_the_formula_if_a_hidden_agent_amplifies_its_state():
    """The hidden step multiplies the state by 1 + h.

    Then mu^2 = a^2/(1 + a^2) with a = (1 + h)/3, whereas the formula gives 1/10.
    """
    open_loop = noised_descent(PATH, 2)
    formula = statement(open_loop, agent(2), 0, Constant(), Inputs())
    for h in (1.0, 5.0, 50.0):
        a = (1 + h) / 3
        truth = a / np.sqrt(1 + a**2)
        closed = noised_descent(PATH, 2, transition=np.diag([1.0, 1 + h, 1.0]) @ PATH)
        assert mu(closed, agent(2), 0, Constant()).upper == pytest.approx(truth, rel=1e-9)
        assert formula.open_loop.upper < truth <= formula.mu
    assert formula.rule == "light_cone"
    assert formula.release().proven


def test_mu_with_sign_gradients_lies_between_the_formula_and_the_causal_bound():
    """True mu is 1.62 by numerical integration, the formula 0.63, the causal bound 2.

    The hidden agent of the path adds sign(z) to z = y_u/3 + n/3 + ..., so that its second message
    is z + sign(z) + n'. The gradient of the target agent is +1 or -1, a change of 2, at noise 1.
    """
    system = noised_descent(PATH, 2)
    guarantee = statement(system, agent(2), 0, Free(2.0), Inputs())
    truth = sign_example()
    assert guarantee.open_loop.upper == pytest.approx(2 / np.sqrt(10), rel=1e-9)
    assert truth == pytest.approx(1.618, abs=2e-3)
    assert guarantee.open_loop.upper < truth < guarantee.mu
    assert guarantee.mu == pytest.approx(2.0, rel=1e-6)


def sign_example(step=np.sign, noise: float = 1.0) -> float:
    """Return the mu of the Gaussian pair with the total variation of the view at the path's end.

    Given the first message of the middle agent (0 here: it is symmetric), z has mean +-1/3 and
    standard deviation ``noise``/3; the end receives z + step(z) + N(0, noise^2).
    """
    z = np.linspace(-2.5, 2.5, 1001)
    out = np.linspace(-8, 8, 501)
    kernel = norm.pdf(out[:, None] - (z + step(z)), scale=noise)
    densities = [
        kernel @ norm.pdf(z, centre, noise / 3) * (z[1] - z[0]) for centre in (1 / 3, -1 / 3)
    ]
    distance = np.abs(densities[0] - densities[1]).sum() * (out[1] - out[0]) / 2
    return 2 * norm.ppf((1 + distance) / 2)


@pytest.mark.parametrize(
    ("step", "noise", "truth"),
    [(lambda z: np.clip(5 * z, -1, 1), 1.0, 1.564), (np.sign, 0.5, 3.84)],
    ids=["steep", "less noise"],
)
def test_mu_with_other_clipped_gradients_lies_between_formula_and_causal_bound(step, noise, truth):
    """The formula gives mu = 0.632/noise, and the causal bound is mu = 2/noise."""
    guarantee = statement(noised_descent(PATH, 2, noise=noise), agent(2), 0, Free(2.0), Inputs())
    assert guarantee.open_loop.upper == pytest.approx(2 / np.sqrt(10) / noise, rel=1e-9)
    assert sign_example(step, noise) == pytest.approx(truth, rel=3e-3)
    assert guarantee.open_loop.upper < truth < guarantee.mu


def path_views(step, runs: int, noise: float = 1.0):
    """Yield the two messages that the end of a path receives; (runs, 2) per gradient sign."""
    for sign, seed in ((1.0, 11), (-1.0, 12)):
        random = np.random.default_rng(seed)
        drawn = noise * random.standard_normal((2, runs, 3))
        first = drawn[0] + [sign, 0.0, 0.0]
        mixed = first @ PATH.T
        second = mixed[:, 1] + step(mixed[:, 1]) + drawn[1][:, 1]
        # The end of the path subtracts its own message.
        yield np.stack([first[:, 1], second - first[:, 2] / 3], axis=1)


def audited(views, **claims) -> float:
    """Return the p-value of a claim, by the library's audit of two samples."""
    bounds = audit_statistics(
        *views, statistics={}, delta=1e-2, confidence=0.99, seed=3, orderings=("mu",)
    )
    return claim_p_value(bounds, claims)


def test_an_audit_rejects_the_formula_but_not_the_guarantees():
    """Simulated views exceed the formula, but not the causal and contraction bounds.

    For gradients with jumps, the audit rejects the formula but not the causal bound. For
    contracting steps, z - clip(z), the audit does not reject the contraction bound.
    """
    system = noised_descent(PATH, 2)
    guarantee = statement(system, agent(2), 0, Free(2.0), Inputs())
    jumps = list(path_views(np.sign, 6000))
    assert audited(jumps, mu=guarantee.open_loop.upper) < 1e-3
    assert audited(jumps, mu=guarantee.mu) > 0.05
    convex = statement(system, agent(2), 0, Free(2.0), Inputs(expansion=1.0))
    assert convex.rule == "contraction"
    smooth = list(path_views(lambda z: -np.clip(z, -1, 1), 6000))
    assert audited(smooth, mu=convex.mu) > 0.05


def test_mu_with_convex_losses_lies_between_the_formula_and_the_contraction_bound():
    """On a star of six agents, convex losses of hidden agents increase mu from leaf to leaf."""
    W = floats(metropolis(star(6)))
    horizon = 8
    system = noised_descent(W, horizon)
    guarantee = statement(system, agent(1), 2, Constant(), Inputs(expansion=1.0))
    generator = np.random.default_rng(0)
    worst = 0.0
    for _ in range(30):
        curvature = generator.choice([0.0, 1.0, 2.0], size=6)
        closed = noised_descent(W, horizon, transition=np.diag(1 - curvature) @ W)
        worst = max(worst, mu(closed, agent(1), 2, Constant()).lower)
    assert guarantee.rule == "contraction"
    assert guarantee.open_loop.upper < worst <= guarantee.mu
    assert guarantee.mu < light_cone_bound(system, agent(1), 2, Constant())


@pytest.mark.parametrize("graph", [ring(6), lopsided()], ids=["ring", "lopsided"])
def test_random_transitions_stay_below_the_contraction_and_causal_bounds(graph):
    W = floats(metropolis(graph))
    horizon, n = 5, len(graph)
    system = noised_descent(W, horizon)
    generator = np.random.default_rng(1)
    for victim in range(1, n):
        convex = contraction_bound(system, agent(0), victim, Constant(), 1.0)
        cone = light_cone_bound(system, agent(0), victim, Constant())
        assert mu(system, agent(0), victim, Free()).upper <= convex * (1 + 1e-6)
        for _ in range(2):
            signs = np.diag(generator.uniform(-1, 1, n))
            steep = np.diag(generator.uniform(-6, 6, n))
            inside = mu(noised_descent(W, horizon, transition=signs @ W), agent(0), victim, Free())
            outside = mu(noised_descent(W, horizon, transition=steep @ W), agent(0), victim, Free())
            assert inside.lower <= convex
            assert outside.lower <= cone


def test_the_causal_bound_sums_only_rounds_that_can_reach_the_observer():
    horizon = 6
    gains, noises = 1 / np.arange(1, 7), np.arange(1, 7) ** -0.5
    system = noised_descent(floats(metropolis(path(6))), horizon, gain=gains, noise=noises)
    for distance in range(1, 6):
        expected = ((gains / noises) ** 2)[: horizon - distance + 1].sum()
        bound = light_cone_bound(system, agent(0), distance, Free(1.5))
        assert bound**2 == pytest.approx(2.25 * expected, rel=1e-6)


def test_contraction_helps_distant_pairs_if_strongly_convex_but_not_neighbours():
    system = noised_descent(floats(metropolis(ring(6))), 6)
    assert contraction_bound(system, agent(0), 1, Free(), 1.0) == pytest.approx(6**0.5, rel=1e-6)
    weak, strong = (contraction_bound(system, agent(0), 3, Free(), c) for c in (1.0, 0.5))
    assert strong < 0.6 * weak


def test_smaller_sets_of_changes_have_smaller_adaptive_bounds():
    system = noised_descent(floats(metropolis(ring(6))), 6)
    for bound in (light_cone_bound, lambda *arguments: contraction_bound(*arguments, 1.0)):
        once, cycle, free = (
            bound(system, agent(0), 2, changes) for changes in (Once(), Cyclic(period=3), Free())
        )
        assert once < cycle < free


def test_the_rule_of_a_guarantee_depends_on_the_observer():
    system = noised_descent(floats(metropolis(star(5))), 3)
    for observer, victim, rule in (
        (Eavesdropper(), 2, "adaptive"),
        (agent(0), 2, "adaptive"),
        (agent(1), 2, "light_cone"),
        (secure_agent(0), 2, "light_cone"),
        (FinalModels(), 2, "light_cone"),
    ):
        assert statement(system, observer, victim, Free(), Inputs()).rule == rule
        without_reaction = statement(system, observer, victim, Free(), Inputs(react=False))
        assert (
            without_reaction.rule == "exact"
            and without_reaction.mu == without_reaction.open_loop.upper
        )


def test_final_models_of_convex_losses_have_privacy_amplification_by_iteration():
    """On the complete graph, earlier noise is hidden, so early inputs add less than 1 to mu^2."""
    system = noised_descent(floats(metropolis(complete(4))), 5)
    guarantee = statement(system, FinalModels(), 1, Free(), Inputs(expansion=1.0))
    assert guarantee.rule == "contraction"
    assert guarantee.open_loop.upper <= guarantee.mu < 0.9 * 5**0.5


def test_the_contraction_bound_refuses_noiseless_rounds_and_negative_expansion():
    system = noised_descent(PATH, 3, noise=[1.0, 0.0, 1.0])
    with pytest.raises(InvalidInput) as error:
        contraction_bound(system, agent(2), 0, Free(), 1.0)
    assert error.value.key == "system"
    with pytest.raises(InvalidInput):
        Inputs(expansion=-1.0)


@pytest.mark.parametrize("expansion", [None, 1.0])
@pytest.mark.parametrize("output", ["model", "message"])
@pytest.mark.parametrize("observer", [FinalModels(of=(0,)), FinalModels(of=(0, 1), mean=True)])
@pytest.mark.parametrize("shape", [path(4), star(4), ring(5)])
def test_guarantees_for_final_models_are_at_least_the_mu_of_fixed_inputs(
    shape, observer, output, expansion
):
    """A model after gossip mixes last states of neighbours; fixed inputs are a special case."""
    mixing = floats(metropolis(shape))
    for steps, rounds in ((1, 1), (3, 1), (2, 2)):
        system = muffliato_gd(mixing, steps, rounds, noise=0.2, output=output)
        for victim in range(len(mixing)):
            for changes in (Once(), Constant()):
                guarantee = statement(
                    system, observer, victim, changes, Inputs(expansion=expansion)
                )
                assert guarantee.mu >= guarantee.open_loop.lower
