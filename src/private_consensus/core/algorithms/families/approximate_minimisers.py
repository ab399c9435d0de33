r"""Privacy cost of one message of PP-ADMM, and the noise for a given cost.

This module is not an algorithm. An agent's augmented objective has curvature m, and its
approximate minimiser has a gradient of norm at most :math:`\beta`. Replacing a record
moves the gradient by at most :math:`\Delta_2` (l2).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from private_consensus.privacy import Release, zcdp_epsilon, zcdp_rho

from ..base import column
from .objective_perturbation import jacobian_loss

COARSE_SOLVER = "what the solver leaves open may outweigh what a record changes (2 beta)"
UNPROVEN = "the shift of objective perturbation depends on the output (E4.3), taken as Gaussian"


class MessageNoise(NamedTuple):
    r"""Noise scales and ridge of one message.

    They are :math:`\sigma_1`, :math:`\sigma_2` times the curvature m, and :math:`\hat\lambda/N`.
    """

    noise: float
    output_noise: float
    ridge: float


NO_NOISE = MessageNoise(0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Charge(ABC):
    """Privacy cost of one message of an algorithm on a problem, in zCDP.

    Parameters
    ----------
    algorithm : ApproximateADMM
        Algorithm with its noise; its fields may have the settings axis in :meth:`rhos`.
    problem : Problem
        Objectives and sensitivities.
    network : Network or None
        Not needed by :meth:`rhos`.
    """

    algorithm: Any
    problem: Any
    network: Any = None

    @abstractmethod
    def noise_for(self, rho: float) -> MessageNoise:
        """Return the noise and the ridge of one message that costs rho, in zCDP."""

    @abstractmethod
    def rhos(self) -> tuple[Any, Any]:
        r"""Return :math:`\rho_1` and :math:`\rho_2` for the noise that is set, broadcastable."""

    @abstractmethod
    def releases(self, count: int) -> list[Release]:
        """Return the releases of ``count`` messages."""

    @property
    def penalty(self) -> Any:
        """Smallest penalty of any agent."""
        return np.min(self.algorithm.penalty(self.network, 1))

    @property
    def attained_shift(self) -> float | None:
        r"""Distance that some pair of records moves :math:`\hat x_i` in every iteration, times m.

        It is the shift of the exact minimiser times the curvature m, less :math:`2\beta`. None if
        the problem states no attained fraction.
        """
        convexity = np.min(self.problem.strong_convexity)
        curvature = self.penalty + max(float(self.algorithm.ridge) - float(convexity), 0.0)
        fraction = self.problem.attained_minimiser_share("l2", curvature)
        if fraction is None:
            return None
        moved = fraction * self.problem.record_change("l2")
        return float(max(moved - 2.0 * self.algorithm.beta, 0.0))

    @property
    def attained_ratio(self) -> float | None:
        r"""Attained ratio of shift to noise of a message, for every noise :math:`b_{i1}`.

        A pair of records moves the minimiser by :math:`g/m` for every :math:`b_{i1}`. A message
        is, along the row, :math:`1/m`-Lipschitz in :math:`b_{i1}` and adds :math:`b_{i2}`. By the
        Gaussian isoperimetric inequality, a shift by :math:`g/m` is then distinguished at least
        as well as a shift of a Gaussian with standard deviation :math:`\sqrt{\sigma_1^2 +
        (m\sigma_2)^2}/m`.
        """
        shift = self.attained_shift
        if shift is None:
            return None
        algorithm = self.algorithm
        return float(shift / np.hypot(algorithm.noise.scale, algorithm.output_noise.scale))


class OutputAlone(Charge):
    r"""Privacy cost if noise on the output hides both the data and the approximation.

    Two points with gradients of norm at most :math:`\beta` on neighbouring data are at most
    :math:`(\Delta_2 + 2\beta)/m` apart.
    """

    @property
    def moved(self) -> Any:
        r"""Largest change times the curvature, :math:`\Delta_2 + 2\beta`."""
        return self.problem.record_change("l2") + 2.0 * column(self.algorithm.beta)

    def noise_for(self, rho):
        output_noise = float(self.moved / np.sqrt(2.0 * rho))
        return MessageNoise(0.0, output_noise, self.problem.least_convexity)

    def rhos(self):
        return 0.0, (self.moved / column(self.algorithm.output_noise.scale)) ** 2 / 2

    def releases(self, count):
        moved, shift = self.moved, self.attained_shift
        attained = None if shift is None else shift / moved
        noise = self.algorithm.output_noise.scale
        return [Release("gaussian", moved, noise, count=count, attained=attained)]


class BothNoises(Charge):
    r"""Privacy cost of Theorem 6 as published, with noise in the objective and on the output.

    :math:`b_{i1}` hides the data and :math:`b_{i2}` the approximation. The releases state
    that approximate minimisers are :math:`2\beta/m` apart, not :math:`\beta/m` (E4.4), and
    that the loss of the perturbed objective is not proven (E4.3).
    """

    def noise_for(self, rho):
        algorithm = self.algorithm
        rho_1, rho_2 = (1.0 - algorithm.splits) * rho, algorithm.splits * rho
        epsilon_1 = zcdp_epsilon(rho_1, algorithm.delta_1, conversion=algorithm.step_conversion)
        epsilon_3 = algorithm.e3 * epsilon_1
        ridge = self._ridge(epsilon_1 - epsilon_3)
        self.jacobian(ridge)  # the condition on kappa
        return MessageNoise(
            noise=float(self.problem.record_change("l2") * self._tail / epsilon_3),
            output_noise=float(algorithm.beta / np.sqrt(2.0 * rho_2)),
            ridge=ridge,
        )

    @property
    def _tail(self) -> Any:
        return np.sqrt(2.0 * np.log(1.25 / column(self.algorithm.delta_1)))

    def _ridge(self, epsilon_difference: float) -> float:
        r"""Return the :math:`\hat\lambda/N` that :math:`\epsilon_1 - \epsilon_3` requires."""
        needed = 2.8 * self.problem.record_curvature / epsilon_difference
        if self.algorithm.lam_rule == "sharp":
            needed -= float(self.penalty)
        return float(max(needed, self.problem.least_convexity))

    def rhos(self):
        algorithm = self.algorithm
        epsilon_3 = self.problem.record_change("l2") * self._tail / column(algorithm.noise.scale)
        epsilon_1 = epsilon_3 / column(algorithm.e3)
        rho_1 = zcdp_rho(epsilon_1, column(algorithm.delta_1), conversion=algorithm.step_conversion)
        return rho_1, (column(algorithm.beta) / column(algorithm.output_noise.scale)) ** 2 / 2

    def jacobian(self, ridge: float) -> float:
        r"""Return :math:`2.8\kappa` for a ridge; :math:`\kappa \le 1/2` is required."""
        added_ridge = max(float(ridge) - self.problem.least_convexity, 0.0)
        return float(jacobian_loss(self.problem, self.penalty, "paper", added_ridge))

    def releases(self, count):
        algorithm, ratio = self.algorithm, self.attained_ratio
        attack = None if ratio is None else _told_apart(ratio, count)
        common_fields: dict[str, Any] = {"count": count, "proven": False, "note": UNPROVEN}
        moved = self.problem.record_change("l2")
        return [
            Release("gaussian", moved, algorithm.noise.scale, attack=attack, **common_fields),
            Release("pure", epsilon=self.jacobian(algorithm.ridge), **common_fields),
            Release("gaussian", 2.0 * algorithm.beta, algorithm.output_noise.scale, count=count),
        ]


def _told_apart(ratio: float, count: int) -> Release:
    """Return the Gaussian attack on messages with the ratio :attr:`Charge.attained_ratio`."""
    return Release("gaussian", ratio, 1.0, count=count, attained=1, note=COARSE_SOLVER)


CHARGES = {"objective": BothNoises, "output": OutputAlone}
"""Privacy cost classes, by the perturbed quantity."""
