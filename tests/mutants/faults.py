"""Faults, and the algorithm to whose example each of them is applied.

A broken copy is a subclass of an algorithm with its parameters, its calibration and, except for one
fault, its declaration.
"""

from __future__ import annotations

from dataclasses import dataclass

from private_consensus.core.algorithms.base import Algorithm

from . import draws, leaks, messages, steps
from .tampering import Change, changed_draws, dressed, other_answers, other_noise, own_noise


@dataclass(frozen=True)
class Fault:
    """Fault that a subclass of an algorithm contains.

    Parameters
    ----------
    algorithm : str
        Name of the algorithm whose example is audited.
    name, text : str
    mixin : type
        Base class that precedes the class of the algorithm.
    inside : bool
        Whether the fault is within ``step``, which then needs noise that it can change.
    """

    algorithm: str
    name: str
    text: str
    mixin: type
    inside: bool = False

    def broken(self, algorithm: Algorithm) -> Algorithm:
        """Return a copy with equal parameters that contains the fault."""
        noise = own_noise(algorithm, in_step=True) if self.inside else ()
        return dressed(algorithm, type(algorithm), self.mixin, *noise)


def _noise(change: Change) -> type:
    return changed_draws("noise", change)


def _added(algorithm: str, name: str, text: str, addition: steps.Addition) -> Fault:
    return Fault(algorithm, name, text, steps.noise_added(addition), inside=True)


NOISE = [
    Fault("fair_classification", "noise x 0.8", "a fifth of all noise is missing",
          _noise(draws.times(0.8))),
    Fault("gradient_descent", "noise x 0.5", "half of all noise is missing",
          _noise(draws.times(0.5))),
    Fault("dp_ci", "half the coordinates", "every second coordinate has no noise",
          _noise(draws.half)),
    Fault("pflr", "one for all coordinates", "one draw serves all coordinates",
          _noise(draws.one_for_all_coordinates)),
    Fault("pflr", "in nine runs of ten", "every tenth run has no noise",
          _noise(draws.in_nine_runs_of_ten)),
    Fault("m_admm", "none in the first round", "the first message has no noise",
          _noise(draws.without(lambda t, T: t == 1))),
    Fault("gradient_descent", "none in the last round", "the last message has no noise",
          _noise(draws.without(lambda t, T: t == T))),
    Fault("decor", "none every third round", "messages 3, 6, ... have no noise",
          _noise(draws.without(lambda t, T: t % 3 == 0))),
    Fault("dvp", "same in two rounds", "round 3 has the noise of round 1",
          _noise(draws.third_is_first)),
    Fault("exact_admm", "same for two agents", "agent 1 has the noise of agent 0",
          _noise(draws.second_agent_is_first)),
    Fault("local_training", "in another order",
          "agent 1 has the noise of agent 0 backwards, with other signs",
          _noise(draws.another_order)),
    Fault("fair_classification", "tails cut", "noise beyond twice its scale is halved",
          _noise(draws.folded)),
    Fault("decor", "taken back", "the noise of a round is subtracted in the next",
          _noise(draws.taken_back)),
    Fault("secure_aggregation", "same in both worlds", "seeds of runs are written in the code",
          other_noise(draws.fixed)),
    Fault("pr_admm", "one seed", "all runs have one seed",
          other_noise(draws.one_seed)),
    Fault("dp_admm", "seeded from data", "the seed is a hash of the data",
          other_noise(draws.of_data)),
]  # fmt: skip

STEPS = [
    Fault("pdop", "step from data", "the step length does not depend on the gradient",
          other_answers(steps.own_step)),
    Fault("pp_admm", "stride from data", "the way to the minimiser has a constant length",
          other_answers(steps.own_stride)),
    Fault("dp_admm", "weight not counted", "records weigh twice what the sensitivity states",
          other_answers(steps.weighed)),
    Fault("mafalda_sgd", "weight of 6 in a step",
          "steps multiply the gradients of all records by 6", steps.weighted_in_step(6.0)),
    Fault("sdm_dsgd", "weights after clipping", "clipped gradients are multiplied by 2",
          other_answers(steps.doubled)),
    Fault("dsgd", "clipped mean", "the mean is clipped, not the records", steps.ClippedMean),
    Fault("dsgd", "clipped after the noise", "the noisy mean is clipped, not the records",
          steps.ClippedAfterNoise),
    Fault("dsgd", "batch kept", "one batch for all rounds",
          changed_draws("sampling", draws.kept)),
]  # fmt: skip

MESSAGES = [
    Fault("pdop", "starts from data", "the first iterate is a step along the local gradient",
          messages.StartsFromData),
    Fault("coordinate_descent", "a second message", "each round ends with the exact gradient",
          messages.tells(lambda t: True, messages.gradient)),
    Fault("p_admm", "the gradient once", "round 2 ends with the exact gradient",
          messages.tells(lambda t: t == 2, messages.gradient)),
    Fault("p_admm", "the minimiser once", "round 2 ends with the exact minimiser",
          messages.tells(lambda t: t == 2, messages.minimiser)),
    Fault("pflr", "coefficients told", "exact coefficients follow the noisy minimiser",
          messages.TellsTheCoefficients),
    Fault("dp_ci", "stops by data", "the data decide how often the last message is repeated",
          messages.StopsByData),
    Fault("zip_dl", "runs on", "twice as many iterations as are declared", messages.RunsOn),
    Fault("m_admm", "account of the first", "only the first iteration is in the account",
          messages.AccountOfTheFirst),
]  # fmt: skip

ADDED = [
    _added("mafalda_sgd", "added x 0.5", "steps add half of the noise", steps.added_half),
    _added("one_shot_averaging", "added x 0.5 by agent 1", "agent 1 adds half of its noise",
           steps.added_half_by_agent_1),
    _added("muffliato", "not added by the last agent", "the last agent adds no noise",
           steps.added_by_all_but_the_last),
    _added("ldp_admm", "not added to the last coordinate", "the last coordinate has no noise",
           steps.added_to_all_but_the_last_coordinate),
    _added("ldp_admm", "not added in round 2", "round 2 adds no noise",
           steps.added_in_all_rounds_but_the_second),
    _added("muffliato_gd", "shared by two agents", "agent 1 adds the noise of agent 0",
           steps.added_by_agent_1_as_by_agent_0),
    _added("pdop", "constant seed of the last agent",
           "the noise of the last agent has a constant seed",
           steps.added_by_the_last_from_a_constant_seed),
    _added("dp_ci", "falling scale", "noise falls with the round, and its account does not",
           steps.added_with_a_falling_scale),
    Fault("local_training", "noise told", "the noise of each step is exchanged",
          steps.NoiseTold, inside=True),
]  # fmt: skip

BRANCHES = [
    _added("r_admm", "quiet on short gradients", "no noise if the gradient at 0 is short",
           steps.added_unless_gradients_vanish),
    _added("zip_dl", "quiet on long gradients", "no noise if records agree",
           steps.added_unless_gradients_are_long),
    Fault("secure_aggregation", "stops on vanishing gradients",
          "an agent without a gradient repeats its message", leaks.StopsOnVanishingGradients),
]  # fmt: skip

OUTPUTS = [
    Fault("muffliato", "exact outcome", "the outcome contains an exact gradient",
          leaks.ExactOutcome),
    Fault("ldp_gradient_descent", "exact measure",
          "an observable contains the norm of an exact gradient", leaks.ExactMeasure),
    Fault("dvp", "cost from data", "a cost depends on the data", leaks.CostFromData),
]  # fmt: skip

BYPASSES = [
    Fault("secure_aggregation", "bypass by index",
          "agents read the exact gradient of another agent by index",
          leaks.bypasses(leaks.indexed)),
    Fault("muffliato_gd", "bypass by np.roll",
          "agents read the exact gradient of another agent by np.roll",
          leaks.bypasses(leaks.rolled)),
    Fault("coordinate_descent", "bypass by own product",
          "agents receive exact gradients by a product of their own",
          leaks.bypasses(leaks.multiplied)),
    Fault("dp_admm", "bypass of one edge",
          "agent 0 alone reads the exact gradient of the last agent",
          leaks.bypasses(leaks.one_edge)),
]  # fmt: skip

FAULTS = [*NOISE, *STEPS, *MESSAGES, *ADDED, *BRANCHES, *OUTPUTS, *BYPASSES]
"""All faults, two or more of each class."""

SIGNED = _added("gradient_descent", "signed by data",
                "noise has a sign that depends on data, and its distribution stays",
                steps.signed_by_data)  # fmt: skip
"""Change that keeps an algorithm with symmetric noise correct."""
