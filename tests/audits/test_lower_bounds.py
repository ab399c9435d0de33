"""Test that a lower bound is published for the class of the proven attack, not for subclasses."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from private_consensus import algorithms
from private_consensus.audits import conformance
from private_consensus.audits.conformance import CalibratedRun
from private_consensus.audits.examples import example_names
from private_consensus.core.algorithms.base import AUDIT
from private_consensus.privacy import Release
from private_consensus.privacy.brackets import lower_bound
from toys import NoisyRounds, calibrated, mean_attack
from worlds import world

NAMES = [name for name in algorithms.names() if algorithms.load(name).kind != AUDIT]
HORIZON = 3


@pytest.mark.parametrize("name", NAMES)
def test_every_registered_class_has_the_lower_bound_of_its_releases(name):
    instance = world(name)
    releases = instance.algorithm.releases(instance.problem, instance.network, instance.horizon)
    for delta in (0.0, 1e-4):
        assert instance.algorithm.lower_bound(releases, delta) == lower_bound(releases, delta)


@pytest.mark.parametrize("name", ["gradient_descent", "local_training", "pp_admm", "dsgd"])
def test_a_subclass_has_no_lower_bound_without_a_stated_reason(name):
    instance = world(name)
    kind = type(instance.algorithm)
    derived = type("Derived", (kind,), {})
    stating = type("Stating", (kind,), {"lower_bound_because": "the same messages"})
    releases = instance.algorithm.releases(instance.problem, instance.network, instance.horizon)
    base_bound = lower_bound(releases, 1e-4)
    assert base_bound.epsilon > 0
    for subclass, epsilon in ((derived, 0.0), (stating, base_bound.epsilon)):
        changed = object.__new__(subclass)
        bound = subclass.lower_bound(changed, releases, 1e-4)
        assert bound.epsilon == epsilon
    assert derived.lower_bound(object.__new__(derived), releases, 1e-4).because == (
        "no attack is proven for Derived"
    )


@pytest.mark.parametrize("name", example_names())
def test_stated_attained_fractions_are_reached_by_executed_attacks(name):
    conformance.attained_shares_are_executed(conformance.world_of(name))


@dataclass(frozen=True, kw_only=True)
class Stating(NoisyRounds):
    """Algorithm that correctly states that its full sensitivity is attained."""

    lower_bound_because = "opposite corners move each mean by the sensitivity"

    def releases(self, problem, network, horizon):
        return [replace(super().releases(problem, network, horizon)[0], attained=1.0)]


@dataclass(frozen=True, kw_only=True)
class Clipping(Stating):
    """Fault: algorithm that states an attained sensitivity but clips means further."""

    lower_bound_because = "inherited without a look"

    def exact(self, state, problem, network, t):
        near = np.clip(problem.means, -0.01, 0.01)
        return 0.5 * network.mix(state.x) + 0.5 * near


def _world(kind):
    attack = mean_attack()
    return CalibratedRun(calibrated(kind, attack, HORIZON), attack.pair[0], attack.network, HORIZON)


def test_an_attained_fraction_passes_the_check():
    instance = _world(Stating)
    conformance.attained_shares_are_executed(instance)
    releases = instance.algorithm.releases(instance.problem, instance.network, HORIZON)
    assert isinstance(releases[0], Release) and releases[0].attained == 1.0
    assert instance.algorithm.lower_bound(releases, 1e-4).epsilon == pytest.approx(2.0, rel=1e-3)


def test_a_fraction_that_no_executed_attack_reaches_fails_the_check():
    with pytest.raises(AssertionError, match="Clipping states that"):
        conformance.attained_shares_are_executed(_world(Clipping))
