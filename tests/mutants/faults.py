"""Faults, and the algorithms to which each of them applies.

A broken copy is a subclass of an algorithm with its parameters, its calibration and, except for two
faults, its declaration.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from private_consensus.core.algorithms.base import Algorithm, Iterative
from private_consensus.core.algorithms.coordinate_descent import CoordinateDescent
from private_consensus.core.algorithms.decor import DECOR
from private_consensus.core.algorithms.dp_ci import DPCI
from private_consensus.core.algorithms.families.admm import ADMMFamily
from private_consensus.core.algorithms.families.approximate_admm import ApproximateADMM
from private_consensus.core.algorithms.families.consensus_admm import ConsensusADMM
from private_consensus.core.algorithms.families.decentralized_sgd import DecentralizedSGD
from private_consensus.core.algorithms.families.functional_mechanism import FunctionalMechanism
from private_consensus.core.algorithms.muffliato import Muffliato
from private_consensus.core.algorithms.one_shot_averaging import OneShotAveraging
from private_consensus.core.algorithms.p_admm import OutputPerturbation
from private_consensus.core.algorithms.pr_admm import PeriodicallyReducedADMM
from private_consensus.core.algorithms.q_dpsgd_1 import QDPSGD
from private_consensus.core.algorithms.q_dpsgd_2 import QDPSGD2
from private_consensus.core.algorithms.secure_aggregation import SecureAggregation
from private_consensus.core.algorithms.zip_dl import ZipDL

from . import draws, leaks, messages, steps, truth
from .cases import Case
from .tampering import Change, changed_draws, dressed, other_answers, other_noise, own_noise


@dataclass(frozen=True)
class Fault:
    """Fault that a subclass of an algorithm contains.

    Parameters
    ----------
    mixin : type
        Base class that precedes the class of the algorithm.
    applies : callable
        Function of a case; True if the fault applies to it.
    leak : float or callable
        Lower bound of the true epsilon over the claimed one: a number, ``inf`` for exact releases,
        or a function of :mod:`.truth`.
    inside : bool
        Whether the fault is within ``step``, which then needs noise that it can change.
    needs : str
        The algorithms to which the fault applies, for the list of those to which it does not.
    """

    name: str
    text: str
    mixin: type
    applies: Callable[[Case], bool] = lambda case: True
    leak: Any = np.inf
    inside: bool = False
    needs: str = ""

    def ratio(self, case: Case, delta: float) -> float:
        """Return a lower bound of the true epsilon of the broken copy over the claimed one."""
        return self.leak(self, case, delta) if callable(self.leak) else float(self.leak)

    def broken(self, algorithm: Algorithm) -> Algorithm:
        """Return a copy with equal parameters that contains the fault."""
        noise = own_noise(algorithm, in_step=True) if self.inside else ()
        return dressed(algorithm, type(algorithm), self.mixin, *noise)


def always(case: Case) -> bool:
    """Return True for every private algorithm."""
    return True


def iterates(case: Case) -> bool:
    """Return True for at least three iterations of an iterative algorithm."""
    return isinstance(case.algorithm, Iterative) and case.horizon >= 3


def each_round(case: Case) -> bool:
    """Return True if every iteration has noise."""
    return iterates(case) and case.noise_period == 1


def every_coordinate(case: Case) -> bool:
    """Return True if an iteration adds noise to all coordinates."""
    return not isinstance(case.algorithm, CoordinateDescent)


def shared_out(case: Case) -> bool:
    """Return True for several agents."""
    return case.problem.n_agents > 1


def takes_batches(case: Case) -> bool:
    """Return True if the algorithm clips the gradients of sampled records."""
    return isinstance(case.algorithm, DecentralizedSGD)


def clips(case: Case) -> bool:
    """Return True if the algorithm clips the gradient of an agent.

    The effect of a fault before the clipping then depends on the clipping norm of the example.
    """
    return getattr(case.algorithm, "clip", None) is not None


def takes_gradients(case: Case) -> bool:
    """Return True if steps use gradients of all records of an agent."""
    minimiser_families = (
        ADMMFamily,
        ConsensusADMM,
        FunctionalMechanism,
        Muffliato,
        OneShotAveraging,
    )
    first_order = getattr(case.algorithm, "minimisation", "") == "first_order"
    plain = not isinstance(case.algorithm, minimiser_families) or first_order
    return plain and np.isfinite(case.problem.record_gradient_change)


def minimises(case: Case) -> bool:
    """Return True if steps use a minimiser."""
    exact = getattr(case.algorithm, "minimisation", "exact") == "exact"
    return isinstance(case.algorithm, ADMMFamily | ConsensusADMM | OneShotAveraging) and exact


def samples(case: Case) -> bool:
    """Return True if the guarantee relies on the sampling of records."""
    releases = case.calibrated.releases(case.problem, case.network, case.horizon)
    return any(release.sampling is not None for release in releases)


def samples_each_apart(case: Case) -> bool:
    """Return True if records are declared to be sampled independently (Poisson)."""
    releases = case.calibrated.releases(case.problem, case.network, case.horizon)
    return any(r.sampling is not None and r.sampling.kind == "poisson" for r in releases)


def exact_within(case: Case) -> bool:
    """Return True if a message is an exact minimiser plus noise."""
    kinds = OutputPerturbation | PeriodicallyReducedADMM | ApproximateADMM
    minimises = isinstance(case.algorithm, kinds)
    return minimises and getattr(case.algorithm, "perturbed", "output") == "output"


def told_by_exchange(case: Case) -> bool:
    """Return True for several iterations and several agents."""
    return iterates(case) and shared_out(case)


def lets_out_once(case: Case) -> bool:
    """Return True if noisy coefficients of an objective are released once."""
    return isinstance(case.algorithm, FunctionalMechanism)


def quantises(case: Case) -> bool:
    """Return True if messages are rounded."""
    return isinstance(case.algorithm, QDPSGD)


def quantises_before_noise(case: Case) -> bool:
    """Return True if values are rounded at random before the noise."""
    return isinstance(case.algorithm, QDPSGD2)


def spends_delta(case: Case) -> bool:
    """Return True if the budget has a positive delta."""
    return case.budget.delta > 0


def iterates_once(case: Case) -> bool:
    """Return True for an iterative algorithm."""
    return isinstance(case.algorithm, Iterative)


def sums_securely(case: Case) -> bool:
    """Return True if the summed noise of all agents hides each agent."""
    return isinstance(case.algorithm, SecureAggregation)


def cancels_noise_at_sender(case: Case) -> bool:
    """Return True if the sum of an agent's draws reveals little about its noise.

    ZIP-DL subtracts the weighted mean of an agent's draws. In the example, the sum of the draws
    raises mu by a factor of at most 1.07.
    """
    return isinstance(case.algorithm, ZipDL)


def own_noise_alone(case: Case) -> bool:
    """Return True if the noise of an agent alone hides its data."""
    correlated = SecureAggregation | DECOR | ZipDL | Muffliato | DPCI
    return shared_out(case) and not isinstance(case.algorithm, correlated)


def compares_gradients(case: Case) -> bool:
    """Return True if a record changes gradients by a bounded amount."""
    return np.isfinite(case.problem.record_gradient_change)


def _both(*conditions):
    return lambda case: all(condition(case) for condition in conditions)


def _neither(*conditions):
    return lambda case: not any(condition(case) for condition in conditions)


def _noise(change: Change) -> type:
    return changed_draws("noise", change)


NOISE = [
    Fault("noise x 0.8", "a fifth of all noise is missing", _noise(draws.times(0.8)),
          leak=truth.scaled(0.8)),
    Fault("noise x 0.5", "half of all noise is missing", _noise(draws.times(0.5)),
          leak=truth.scaled(0.5)),
    Fault("half the coordinates", "every second coordinate has no noise", _noise(draws.half)),
    Fault("one for all coordinates", "one draw serves all coordinates",
          _noise(draws.one_for_all_coordinates), every_coordinate),
    Fault("in nine runs of ten", "every tenth run has no noise",
          _noise(draws.in_nine_runs_of_ten)),
    Fault("none in the first round", "the first message has no noise",
          _noise(draws.without(lambda t, T: t == 1)), iterates),
    Fault("none in the last round", "the last message has no noise",
          _noise(draws.without(lambda t, T: t == T)), iterates),
    Fault("none every third round", "messages 3, 6, ... have no noise",
          _noise(draws.without(lambda t, T: t % 3 == 0)), iterates),
    Fault("same in two rounds", "round 3 has the noise of round 1", _noise(draws.third_is_first),
          iterates),
    Fault("same for two agents", "agent 1 has the noise of agent 0",
          _noise(draws.second_agent_is_first), _both(iterates, shared_out)),
    Fault("in another order", "agent 1 has the noise of agent 0 backwards, with other signs",
          _noise(draws.another_order), _both(iterates, shared_out, every_coordinate)),
    Fault("tails cut", "noise beyond twice its scale is halved", _noise(draws.folded), leak=1.0),
    Fault("taken back", "the noise of a round is subtracted in the next", _noise(draws.taken_back),
          _both(each_round, every_coordinate, _neither(takes_batches)), truth.taken_back),
    Fault("same in both worlds", "seeds of runs are written in the code", other_noise(draws.fixed)),
    Fault("one seed", "all runs have one seed", other_noise(draws.one_seed)),
    Fault("seeded from data", "the seed is a hash of the data", other_noise(draws.of_data)),
]  # fmt: skip

STEPS = [
    Fault("step from data", "steps have one length, whatever the gradient's",
          other_answers(steps.own_step), _both(takes_gradients, _neither(clips)),
          truth.attained),
    Fault("stride from data", "the way to the minimiser has one length",
          other_answers(steps.own_stride), exact_within, truth.attained),
    Fault("weight not counted", "records weigh twice what the sensitivity says",
          other_answers(steps.weighed), _both(iterates, _neither(takes_batches, clips)),
          truth.weighed),
    Fault("weight of 6 in a step", "steps multiply the gradients of all records by 6",
          steps.weighted_in_step(6.0), _both(iterates_once, takes_gradients, _neither(clips)),
          truth.weighed_by(6.0),
          needs="an iterative algorithm with gradients of all records"),
    Fault("weights after clipping", "clipped gradients are multiplied by a weight of 2",
          other_answers(steps.doubled), takes_batches, truth.scaled(0.5)),
    Fault("no clipping", "gradients are as long as they are",
          other_answers(steps.clipped_otherwise(steps.not_at_all)), takes_batches,
          truth.attained),
    Fault("clipped in another norm", "coordinate by coordinate instead of in l2",
          other_answers(steps.clipped_otherwise(steps.by_largest_coordinate)), takes_batches,
          truth.attained),
    Fault("clipped to the own median", "the clipping norm is the median length of the batch",
          other_answers(steps.clipped_otherwise(steps.by_own_median)), takes_batches,
          truth.attained),
    Fault("batch size from data", "the mean is over the long gradients only",
          other_answers(steps.clipped_otherwise(steps.only_long_ones)), takes_batches,
          truth.attained),
    Fault("clipped mean", "the mean is clipped, not the records", steps.ClippedMean,
          takes_batches, truth.attained),
    Fault("clipped after the noise", "the noised mean is clipped, not the records",
          steps.ClippedAfterNoise, _both(takes_batches, _neither(quantises_before_noise)),
          truth.attained),
    Fault("batch kept", "one batch for all rounds", changed_draws("sampling", draws.kept), samples,
          truth.kept),
    Fault("fixed size for Poisson", "always as many records as expected",
          changed_draws("sampling", draws.as_many_as_expected), samples_each_apart, 1.0),
]  # fmt: skip

MESSAGES = [
    Fault("starts from data", "the first iterate is a step along one's own gradient",
          messages.StartsFromData, told_by_exchange, truth.started),
    Fault("a second message", "each round ends with the exact gradient",
          messages.tells(lambda t: True, messages.gradient), told_by_exchange),
    Fault("the gradient once", "round 2 ends with the exact gradient",
          messages.tells(lambda t: t == 2, messages.gradient), told_by_exchange),
    Fault("the minimiser once", "round 2 ends with the exact minimiser",
          messages.tells(lambda t: t == 2, messages.minimiser), exact_within),
    Fault("the exact dual", "the dual moves by the minimiser before its noise",
          messages.MovesTheDualExactly, exact_within, truth.told_again),
    Fault("coefficients told", "the noised minimiser is followed by exact coefficients",
          messages.TellsTheCoefficients, lets_out_once),
    Fault("stops by data", "how often the last message is repeated depends on the data",
          messages.StopsByData, told_by_exchange),
    Fault("runs on", "twice as many iterations as are declared", messages.RunsOn, iterates,
          truth.run_on),
    Fault("no dither", "messages are rounded to the nearest point of the grid",
          messages.RoundsToTheNearest, quantises, 1.0),
    Fault("account of the first", "only the first iteration is in the account",
          messages.AccountOfTheFirst, iterates, truth.first),
    Fault("delta twice", "delta is given to each of two halves of the account",
          messages.DeltaTwice, spends_delta, 1.0),
]  # fmt: skip


def _added(
    name: str, text: str, addition, applies=iterates_once, leak: Any = np.inf, needs: str = ""
) -> Fault:
    return Fault(name, text, steps.noise_added(addition), applies, leak, inside=True, needs=needs)


ADDED = [
    _added("added x 0.5", "steps add half of the noise", steps.added_half,
           leak=truth.scaled(0.5), needs="an iterative algorithm, which adds noise in steps"),
    _added("added x 0.5 by agent 1", "agent 1 adds half of its noise",
           steps.added_half_by_agent_1, _both(iterates_once, own_noise_alone),
           truth.scaled(0.5)),
    _added("not added by the last agent", "the last agent adds no noise",
           steps.added_by_all_but_the_last, _both(iterates_once, _neither(sums_securely))),
    _added("not added to the last coordinate", "the last coordinate has no noise",
           steps.added_to_all_but_the_last_coordinate),
    _added("not added in round 2", "round 2 adds no noise",
           steps.added_in_all_rounds_but_the_second, each_round),
    _added("shared by two agents", "agent 1 adds the noise of agent 0",
           steps.added_by_agent_1_as_by_agent_0, _both(iterates_once, own_noise_alone)),
    _added("constant seed of the last agent", "the last agent's noise has a constant seed",
           steps.added_by_the_last_from_a_constant_seed,
           _both(iterates_once, own_noise_alone)),
    _added("falling scale", "noise falls with the round, and the account says that it does not",
           steps.added_with_a_falling_scale, each_round, truth.falling),
    Fault("noise told", "the noise of each step is exchanged", steps.NoiseTold,
          _both(told_by_exchange, _neither(sums_securely, cancels_noise_at_sender)), inside=True,
          needs="several iterations, and noise that the exchanged sums reveal"),
]  # fmt: skip

BRANCHES = [
    _added("quiet on short gradients", "no noise if the gradient at 0 is short",
           steps.added_unless_gradients_vanish, _both(iterates_once, compares_gradients)),
    _added("quiet on long gradients", "no noise if records agree",
           steps.added_unless_gradients_are_long, _both(iterates_once, compares_gradients)),
    Fault("stops on vanishing gradients", "an agent without a gradient repeats its message",
          leaks.StopsOnVanishingGradients, _both(told_by_exchange, compares_gradients)),
]  # fmt: skip

OUTPUTS = [
    Fault("exact outcome", "the outcome holds an exact gradient", leaks.ExactOutcome,
          iterates_once),
    Fault("exact measure", "an observable holds the length of an exact gradient",
          leaks.ExactMeasure, iterates_once),
    Fault("cost from data", "a cost depends on the data", leaks.CostFromData, iterates_once),
]  # fmt: skip

BYPASSES = [
    Fault("bypass by index", "agents read the exact gradient of another by index",
          leaks.bypasses(leaks.indexed), told_by_exchange),
    Fault("bypass by np.roll", "agents read the exact gradient of another by np.roll",
          leaks.bypasses(leaks.rolled), told_by_exchange),
    Fault("bypass by own product", "agents receive exact gradients by a product of their own",
          # 0.1 times the mean gradient cancels the step of 0.1 along the mean of a secure sum.
          leaks.bypasses(leaks.multiplied), _both(told_by_exchange, _neither(sums_securely)),
          needs="several iterations, and agents that do not receive the mean of gradients"),
    Fault("bypass of one edge", "agent 0 alone reads the last agent's exact gradient",
          leaks.bypasses(leaks.one_edge), told_by_exchange),
]  # fmt: skip

CLASSES: dict[str, list[Fault]] = {
    "random streams": NOISE,
    "gradients, clipping, batches": STEPS,
    "messages and account": MESSAGES,
    "noise as added in a step": ADDED,
    "branches on data": BRANCHES,
    "returned outputs": OUTPUTS,
    "bypass of network.mix": BYPASSES,
}
"""Faults by class, in the order of the table."""

FAULTS = [known_fault for faults in CLASSES.values() for known_fault in faults]
"""All faults. A leak of 1 marks a fault whose privacy loss is below 1.5 times the claim."""


def class_of(name: str) -> str:
    """Return the class of the fault of a name."""
    return next(kind for kind, faults in CLASSES.items() if any(f.name == name for f in faults))


HARMLESS = _added("signed by data", "noise has a sign of the data, and its distribution",
                  steps.signed_by_data, leak=1.0)  # fmt: skip
"""A correct copy of an algorithm with symmetric noise."""

UNCHANGED = Fault("none", "the same by the same machinery", _noise(draws.unchanged), leak=1.0)
"""The correct copy beside the broken ones."""


def fault(name: str) -> Fault:
    """Return the fault of a name."""
    return next(known_fault for known_fault in (*FAULTS, HARMLESS) if known_fault.name == name)
