"""Lower bounds on the true epsilon of faulty algorithms, relative to the claimed epsilon.

If the noise is too small, the accountant computes epsilon for the smaller noise. If the data change
a message by more than declared, the change is computed from one round without noise, and the attack
on that round alone is a lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np

from private_consensus.core.algorithms.base import parameters, stack
from private_consensus.core.randomness import Streams
from private_consensus.privacy import Release, account
from private_consensus.privacy.objective_perturbation import PerturbedObjective

NOISES = (
    "noise", "sigma", "noise_selected", "noise_rest", "noise_objective", "noise_fairness",
    "output_noise", "query_noise", "threshold_noise",
)  # fmt: skip
"""Parameters of algorithms that are a noise or a noise scale."""

Ratio = Callable[[Any, Any, float], float]
"""Function of a fault, a case and a delta; returns the ratio of the epsilons."""


def scaled(factor: float) -> Ratio:
    """Return the ratio if every noise is multiplied by ``factor``."""

    def ratio(fault, case, delta):
        algorithm = case.calibrated
        scales = parameters(algorithm)
        less = {name: factor * scales[name] for name in NOISES if name in scales}
        return epsilon(replace(algorithm, **less), case, delta) / epsilon(algorithm, case, delta)

    return ratio


def weighed(fault, case, delta) -> float:
    """Return the ratio if records weigh twice as much as declared.

    A record of the copy changes a message by twice the attained fraction of the declared change.
    With a fraction of 1/2, such as that of a label of logistic regression near 0, the copy delivers
    the declared epsilon.
    """
    return weighed_by(2.0)(fault, case, delta)


def weighed_by(weight: float) -> Ratio:
    """Return the ratio if records weigh ``weight`` times as much as declared."""

    def ratio(fault, case, delta):
        return scaled(1.0 / (weight * attained_fraction(case)))(fault, case, delta)

    return ratio


def attained_fraction(case) -> float:
    """Return the fraction of the declared change that a known pair of records attains.

    It is 1 for measurements, whose change is declared, and for problems without a known pair.
    """
    release = case.calibrated.releases(case.problem, case.network, case.horizon)[0]
    if release.attained is not None:
        return float(np.min(release.attained))
    fraction = case.problem.attained_gradient_share(
        getattr(getattr(case.calibrated, "noise", None), "norm", release.norm)
    )
    return 1.0 if fraction is None else float(fraction)


def falling(fault, case, delta) -> float:
    """Return the ratio if the noise of round t is divided by t, so that mu is t times as large.

    With random batches, the last round alone is a lower bound.
    """
    claimed = epsilon(case.calibrated, case, delta)
    rounds = np.arange(1.0, case.horizon + 1)
    stated = case.calibrated.releases(case.problem, case.network, case.horizon)[0]
    if stated.profile is not None or stated.mechanism != "gaussian":
        release = first_release(case)
        last = replace(release, sensitivity=case.horizon * np.ravel(release.sensitivity)[0])
        return _taken_sometimes(last, _rate(case), delta) / claimed
    if max(np.size(stated.losses()), stated.count) != case.horizon:
        return 1.0  # one loss for all rounds does not give that of each round
    series = Release("gaussian", stated.losses() * rounds, 1.0)
    return float(account([series], delta).epsilon / claimed)


def first(fault, case, delta) -> float:
    """Return the ratio if the honest algorithm has the noise of the broken copy."""
    world = case.problem, case.network, case.horizon
    broken = fault.broken(case.algorithm).calibrate(case.budget, *world)
    same = replace(case.algorithm, **{f.name: getattr(broken, f.name) for f in fields(broken)})
    return epsilon(same, case, delta) / epsilon(case.calibrated, case, delta)


def run_on(fault, case, delta) -> float:
    """Return the ratio for twice the iterations, each with the declared noise."""
    longer = case.calibrated.releases(case.problem, case.network, 2 * case.horizon)
    return float(account(longer, delta).epsilon / epsilon(case.calibrated, case, delta))


def started(fault, case, delta) -> float:
    """Return the ratio if the first iterate depends on data; infinite unless it is random."""
    return 1.0 if getattr(case.algorithm, "init_std", 0.0) else math.inf


def taken_back(fault, case, delta) -> float:
    r"""Return the ratio if the noise of a round is subtracted in the next one.

    Messages with changes :math:`d_t` and noise :math:`u_t - u_{t-1}` determine
    :math:`\sum_{s \le t} d_s + u_t`."""
    release = case.calibrated.releases(case.problem, case.network, case.horizon)[0]
    message = first_release(case)
    losses = release.losses() if release.mechanism == message.mechanism else message.losses()
    losses = np.broadcast_to(losses, case.horizon) if len(losses) == 1 else losses
    together = Release(message.mechanism, np.cumsum(losses), 1.0)
    return float(account([together], delta).epsilon / epsilon(case.calibrated, case, delta))


def told_again(fault, case, delta) -> float:
    """Return the ratio if the dual update uses the minimiser without noise.

    A change of the first message then enters all later messages: in round t, the sum of the changes
    in rounds 1 to t - 1, multiplied by the dual step over the penalty.
    """
    algorithm, release = case.calibrated, first_release(case)
    message_changes = first_change(algorithm, case) / release.scale * np.ones(case.horizon)
    share = algorithm.dual_step * case.network.degrees[0] / algorithm.penalty(case.network, 1).min()
    together = Release(
        "gaussian", message_changes + share * (np.cumsum(message_changes) - message_changes), 1.0
    )
    return float(account([together], delta).epsilon / epsilon(algorithm, case, delta))


def kept(fault, case, delta) -> float:
    """Return the ratio if one batch is used in all T rounds."""
    claimed = epsilon(case.calibrated, case, delta)
    release = replace(first_release(case), count=case.horizon)
    return _taken_sometimes(release, _rate(case), delta) / claimed


def _rate(case) -> float:
    """Return the fraction of the records in a batch."""
    releases = case.calibrated.releases(case.problem, case.network, case.horizon)
    sampling = releases[0].sampling
    return 1.0 if sampling is None else sampling.rate


def _taken_sometimes(release: Release, rate: float, delta: float) -> float:
    r"""Return epsilon with sampling, :math:`\ln(1 + q(e^{\epsilon'} - 1))`.

    Without sampling it is :math:`\epsilon'` at :math:`\delta/q` (Balle, Barthe, Gaboardi 2018,
    Theorem 9; attained if all other records are 0).
    """
    within = account([release], min(1.0, delta / rate)).epsilon
    return float(np.log1p(rate * np.expm1(within)))


def mu_of_all(release: Release) -> float:
    """Return the sensitivity over the noise scale, of a batch with the record or an objective."""
    if release.profile is None:
        return float(np.max(release.losses()))
    if isinstance(release.profile, PerturbedObjective):
        return float(release.profile.mu)
    noise = release.profile.noise
    return float(np.min(noise.losses)) / release.profile.sigma


def attained(fault, case, delta) -> float:
    """Return the ratio from the change of the first message of the broken copy alone."""
    further = first_change(fault.broken(case.calibrated), case) / first_change(
        case.calibrated, case
    )
    release = first_release(case)
    moved = replace(release, sensitivity=further * np.ravel(release.sensitivity)[0])
    claimed = epsilon(case.calibrated, case, delta)
    return _taken_sometimes(moved, _rate(case), delta) / claimed


def first_release(case) -> Release:
    """Return one message as one release without sampling."""
    release = case.calibrated.releases(case.problem, case.network, case.horizon)[0]
    if release.mechanism == "pure":
        moved, scales, _ = case.calibrated.losses(case.problem, case.network, case.horizon)
        return Release("laplace", moved, scales[0])
    if release.profile is not None:
        return Release("gaussian", mu_of_all(release), 1.0)
    sensitivity, scale = np.broadcast_arrays(release.sensitivity, release.scale)
    return Release(release.mechanism, np.ravel(sensitivity)[0], np.ravel(scale)[0])


class Silent(Streams):
    """Random streams whose noise is 0."""

    def draw(self, purpose, law, shape, name=""):
        return super().draw(purpose, law, shape, name) * (purpose != "noise")

    def sequence(self, purpose, law, shape, name=""):
        for units in super().sequence(purpose, law, shape, name):
            yield units * (purpose != "noise")


def first_change(algorithm, case) -> float:
    """Return the largest change, over some batches, of the first differing noiseless message."""
    messages, neighbour_messages = (
        quietly(algorithm, problem, case.network) for problem in (case.problem, case.neighbour)
    )
    moved = np.linalg.norm(
        (messages - neighbour_messages).reshape(*messages.shape[:2], -1), axis=-1
    ).max(-1)
    return float(moved[np.flatnonzero(moved)[0]])


def quietly(algorithm, problem, network, runs: int = 8) -> np.ndarray:
    """Return the first messages without noise; shape (iterations, runs, agents, dim).

    There are two iterations because the first message of Q-DPSGD-2 does not depend on data.
    """
    # Noise of compiled rounds comes from counters, all other noise from streams without noise.
    quiet = stack([replace(algorithm, sigma=0.0) if hasattr(algorithm, "sigma") else algorithm])
    sent: list[np.ndarray] = []

    def noted(t, active, observables):
        values = observables.get("released", observables.get("internal"))
        if values is not None:
            sent.append(np.array(values[0]))

    quiet.run(problem, network, Silent(9, tuple(range(runs))), np.array([2]), noted)
    return np.stack(sent)


def epsilon(algorithm, case, delta: float) -> float:
    """Return epsilon of an algorithm by the accountant."""
    releases = algorithm.releases(case.problem, case.network, case.horizon)
    return float(account(releases, delta).epsilon)
