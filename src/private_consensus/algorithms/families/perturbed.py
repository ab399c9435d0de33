r"""What algorithms with a scheduled noise share: its law, its scale, its price. Not an algorithm.

Noise of iteration t has the scale ``noise / growth**t``: paper 001's
:math:`\beta_k = 1.02^k`, an INVERSE scale, is ``noise=1, growth=1.02``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from ...errors import require
from ...privacy import Release, aggregation, calibrate
from ..base import Iterative, column, stack, without_noise
from ..noise import SCALED, Noise
from ..parameters import noise_field, one_of, positive

CALIBRATIONS = ("accountant", "formula", "given")


@dataclass(frozen=True, kw_only=True)
class Perturbed(Iterative):
    """An iterative algorithm whose messages carry noise of a given law.

    Parameters
    ----------
    law : {"laplace", "gaussian", "gamma_norm"}
        Independent Laplace or normal coordinates, or density proportional to exp(-zeta ||b||_2).
    noise, growth : float
        Scale ``noise / growth**t`` in iteration t = 1, 2, ...
    calibration : {"accountant", "formula", "given"}
        What a budget does: the least noise that the accountant lets pass; the noise for which the
        paper's own formula gives the budget's epsilon; or nothing, the noise is as it is stated,
        as in experiments that fix it.
    """

    law: str = one_of("laplace", SCALED)
    noise: Noise = noise_field(None, law=None)
    growth: float = positive(1.0)
    calibration: str = one_of("accountant", CALIBRATIONS, calibration=True)

    where: ClassVar[str] = "message"

    def check(self, problem, network) -> None:
        """Warn where a theorem or a known condition does not cover the setting."""

    def calibrate(self, budget, problem, network, horizon):
        require(horizon >= 1, "horizon", horizon, "a whole number >= 1")
        self.check(problem, network)
        if self.calibration == "given":
            return self
        if not budget.private:
            return self.silent()
        return self.spending(budget, problem, network, horizon)

    def silent(self) -> Self:
        """A copy without noise."""
        return replace(self, noise=0.0)

    def spending(self, budget, problem, network, horizon) -> Self:
        """A copy whose noise spends a budget, by the accountant or by the formula."""
        if self.calibration == "formula":
            return replace(self, noise=self._by_formula(budget, problem, network, horizon))

        def made(noise):
            return replace(self, noise=noise).releases(problem, network, horizon)

        return replace(self, noise=calibrate(made, budget))

    def _by_formula(self, budget, problem, network, horizon) -> float:
        """The formulas have the form a / noise + b."""
        at_1, at_2 = (
            replace(self, noise=s).epsilon_by_formula(budget.delta, problem, network, horizon)
            for s in (1.0, 2.0)
        )
        fixed, falling = 2 * at_2 - at_1, 2 * (at_1 - at_2)
        require(
            budget.epsilon > fixed,
            "budget.epsilon",
            budget.epsilon,
            f"above {fixed:g}, which no noise avoids",
        )
        return falling / (budget.epsilon - fixed)

    def statements(self, budget, problem, network, horizon):
        """Noise that is given is claimed to be as private as the paper's formula says."""
        if self.calibration != "given":
            return super().statements(budget, problem, network, horizon)
        return [(self, self.epsilon_by_formula(budget.delta, problem, network, horizon))]

    def scale(self, t: int) -> Any:
        """Scale of iteration t, as it broadcasts against iterates."""
        return column(self.noise.scale) / column(self.growth) ** t

    def scales(self, horizon: int) -> np.ndarray:
        """Scales of a single setting; [horizon]."""
        return self.noise.scale / self.growth ** np.arange(1, horizon + 1)

    def units(self, problem, streams) -> Iterator[np.ndarray]:
        """Unit draws [runs, agents, dim], one an iteration."""
        return self.noise.units(problem, streams)

    @property
    def noisy(self) -> bool:
        """Whether every setting of the batch has noise."""
        return bool(self.noise)

    def noise_sites(self, problem, network, horizon):
        """Noise of the law and scale of each iteration, where a version adds it."""
        (release,) = self.releases(problem, network, horizon)[:1]
        moved = np.broadcast_to(release.losses(), horizon)
        scales = self.scales(horizon)[:, None, None]
        return [self.noise.site(scales, moved)]

    def noise_releases(self, sensitivity: Any, scales: np.ndarray, **known: Any) -> list[Release]:
        """One release an iteration; exact ones without noise. ``known`` is what is known to be
        attained."""
        if not self.noisy:
            return [Release("exact", sensitivity=float(np.max(sensitivity)), scale=0.0)]
        return [Release(self.law, sensitivity=sensitivity, scale=scales, **known)]

    def reached(self, problem, horizon: int, first: float | None) -> np.ndarray | None:
        """What of the gradient's change is reached at delta 0: ``first`` in iteration 1, whose
        point is not chosen, and later what points far out give, for noise reaches everywhere."""
        later = problem.reached_gradient_share(self.noise.norm)
        if first is None or later is None:
            return None
        return np.where(np.arange(horizon) == 0, first * later, later)


@dataclass(frozen=True, kw_only=True)
class PaidByIteration(Perturbed):
    """An algorithm whose paper charges each iteration on its own; its state holds ``spent``."""

    @abstractmethod
    def loss_by_formula(self, problem, network, t: int) -> Any:
        """Privacy loss that the paper charges for iteration t, a coordinate.

        Broadcasts against [settings, runs, agents, 1].
        """

    def epsilon_by_formula(self, delta, problem, network, horizon):
        """Sum over iterations of the loss a coordinate, of the agent that loses most."""
        if not self.noisy:
            return float("inf")
        total = sum(self.loss_by_formula(problem, network, t) for t in range(1, horizon + 1))
        return float(np.max(total))

    def spend(self, state, problem, network, t: int) -> np.ndarray:
        """``state.spent`` after iteration t: the formula's loss so far, [settings, runs, agents].

        Zero without noise, where there is nothing to add up; it is not shown then.
        """
        if not self.noisy:
            return state.spent
        return state.spent + np.asarray(self.loss_by_formula(problem, network, t))[..., 0]

    def realised(self, state: Any) -> Losses | None:
        """Losses of the outputs that were drawn, where those are counted."""
        return None

    def observables(self, state, problem, t) -> Mapping[str, np.ndarray]:
        shown = {"released": state.x}
        return shown | shown_losses(self.realised(state), state.spent) if self.noisy else shown


def printed_change(problem) -> float:
    r"""Paper 001's :math:`\mathcal B_\infty = 1/b_i`: the weight of one record.

    Right for labels in {0, 1} and features in [0, 1] only (errata E1.3); what is right in general
    is ``problem.record_change("linf")``.
    """
    return getattr(problem, "weight", None) or problem.record_change("linf")


def initial(problem, streams, settings: int, std: Any) -> np.ndarray:
    """Starting points: Standard normal draws times ``std``, the same for all algorithms."""
    unit = streams.draw("data", "normal", (problem.n_agents, problem.dim), "start")
    shape = (settings, *unit.shape)
    return np.broadcast_to(column(std) * unit, shape).copy()


class Draw(NamedTuple):
    """Unit draws of an iteration, [runs, agents, dim]; weights only where they are random."""

    noise: np.ndarray
    weights: np.ndarray | None = None


class Losses(NamedTuple):
    """Loss so far, [settings, runs, agents], and the share of outputs that lost all they could.

    ``realised``: mean over coordinates, with the printed constant. ``realised_all``: sum over
    coordinates, with the bound that holds for the problem's labels. ``worst_all``: what the latter
    is at worst. ``unamplified``: share of this iteration's coordinates outside their interval.
    """

    realised: np.ndarray
    realised_all: np.ndarray
    worst_all: np.ndarray
    unamplified: np.ndarray


def no_losses(settings: int, problem, streams) -> Losses:
    """Before the first iteration."""
    zero = np.zeros((settings, len(streams.runs), problem.n_agents))
    return Losses(zero, zero, zero, zero)


def add_losses(
    losses: Losses, problem, position, length, scale, step_size: Any, *, dim: int
) -> Losses:
    r"""Losses after one more output.

    Parameters
    ----------
    position, length : ndarray, shape (settings, runs, agents, dim)
        Output minus the lower end of its interval, and the interval's length.
    scale : float or ndarray
        :math:`1/\beta`.
    step_size : float or ndarray
        :math:`\alpha`, what a change of the gradient is multiplied with.
    """
    beta = 1.0 / np.asarray(scale)
    printed = step_size * printed_change(problem)
    proven = step_size * problem.record_change("linf")
    realised = aggregation.realised_loss(position, length, beta, printed)
    corrected = aggregation.realised_loss(position, length, beta, proven)
    outside = (position <= 0) | (position >= length)
    worst = np.broadcast_to(beta * proven, (*realised.shape[:-1], 1))[..., 0] * dim
    return Losses(
        losses.realised + realised.mean(-1),
        losses.realised_all + corrected.sum(-1),
        losses.worst_all + worst,
        outside.mean(-1),
    )


def shown_losses(state_losses: Losses | None, spent: np.ndarray) -> dict[str, np.ndarray]:
    """Mean over agents of what was lost, each [settings, runs]."""
    shown = {"worst_case": spent.mean(-1)}
    if state_losses is not None:
        shown |= {name: value.mean(-1) for name, value in state_losses._asdict().items()}
        shown["realised_share"] = shown["realised"] / shown["worst_case"]
    return shown


WEIGHTS = ("random", "fixed")


@dataclass(frozen=True, kw_only=True)
class RandomlyWeighted(PaidByIteration):
    """An algorithm whose aggregates have random weights (paper 001); its state holds ``Losses``.

    Parameters
    ----------
    weights : {"random", "fixed"}
        Fresh and uniform on (0, 1) for every agent, coordinate and iteration, or their mean 1/2.
    """

    weights: str = one_of("random", WEIGHTS)

    def draws(self, problem, streams) -> Iterator[Draw]:
        shape = (problem.n_agents, problem.dim)
        weights = streams.sequence("sampling", "uniform", shape, "weights")
        for noise in self.units(problem, streams):
            yield Draw(noise, next(weights) if self.weights == "random" else None)

    @property
    def hidden_sampling(self) -> bool:
        """Nobody sees the weights."""
        return self.weights == "random"

    def log_likelihood(self, problem, network, streams, execution):
        r"""With random weights, of uniform plus Laplace: :func:`...privacy.aggregation.log_mass`
        of the distance from the middle of the interval between the messages with weights 0 and
        1."""
        if not self.has_losses:
            return super().log_likelihood(problem, network, streams, execution)
        fixed = stack([replace(self, weights="fixed")])
        horizon = execution.sent.shape[1]
        state = fixed.start(problem, network, streams, 1)
        total = np.zeros(len(execution.sent))
        for t, draw in zip(range(1, horizon + 1), self.draws(problem, streams), strict=False):
            quiet = without_noise(draw)
            sent = execution.at(t).sent
            low, high = (
                fixed.step(state, problem, network, quiet._replace(weights=w + 0 * sent), t).x[0]
                for w in (0.0, 1.0)
            )
            inverse = 1.0 / self.scales(horizon)[t - 1]
            away = np.abs(sent - (low + high) / 2)
            total += aggregation.log_mass(away, np.abs(high - low), inverse).sum((-1, -2))
            unit = (sent - (low + high) / 2) * inverse
            half = quiet._replace(noise=unit, weights=0.5 + 0 * sent)
            state = fixed.step(state, problem, network, half, t)
        return total

    @property
    def has_losses(self) -> bool:
        """Theorem 2.2 is about Laplace noise and random weights."""
        return self.noisy and (self.weights, self.law) == ("random", "laplace")

    def realised(self, state):
        return losses_of(state) if self.has_losses else None


def losses_of(state: Any) -> Losses:
    """The losses that a state holds beside other things."""
    return Losses(*(getattr(state, name) for name in Losses._fields))
