r"""Privacy cost of one message of PP-ADMM, and the noise that meets a budget.

This module is not an algorithm. The augmented objective of an agent has curvature m. At its
approximate minimiser, the gradient has a norm of at most :math:`\beta`. A replaced record
changes the gradient by at most :math:`\Delta_2` (l2).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from private_consensus.privacy import Release, zcdp_epsilon, zcdp_rho

from ..base import column
from .objective_perturbation import jacobian_loss

COARSE_SOLVER = "the error of the solver, 2 beta, may exceed the change by one record"
UNPROVEN = "the shift of the noise depends on the output (E4.3), but is treated as constant"


class MessageNoise(NamedTuple):
    r"""Noise scales and ridge of one message.

    The fields are :math:`\sigma_1`, :math:`\sigma_2` times the curvature m, and
    :math:`\hat\lambda/N`.
    """

    noise: float
    output_noise: float
    ridge: float


NO_NOISE = MessageNoise(0.0, 0.0, 0.0)


@dataclass(frozen=True)
class MessagePrivacyCost(ABC):
    """Privacy cost of one message of an algorithm on a problem, in zCDP.

    Parameters
    ----------
    algorithm : ApproximateADMM
        Algorithm with its noise. For :meth:`rhos` it may be a batch of settings.
    problem : Problem
        Objectives and sensitivities.
    network : Network or None
        Communication graph; :meth:`rhos` does not use it.
    """

    algorithm: Any
    problem: Any
    network: Any = None

    @abstractmethod
    def noise_for(self, rho: float) -> MessageNoise:
        """Return the noise and the ridge with which one message meets a zCDP budget rho."""

    @abstractmethod
    def rhos(self) -> tuple[Any, Any]:
        r"""Return the published privacy losses of a message in zCDP, :math:`\rho_1, \rho_2`.

        They are those of the data and of the approximation, at the current noise.
        """

    @abstractmethod
    def releases(self, count: int) -> list[Release]:
        """Return the releases of ``count`` messages."""

    @property
    def penalty(self) -> Any:
        """Smallest penalty of any agent."""
        return np.min(self.algorithm.penalty(self.network, 1))

    @property
    def attained_shift(self) -> float | None:
        r"""Change of :math:`\hat x_i` that a pair of records causes in every iteration, times m.

        It is the change of the exact minimiser times the curvature m, minus :math:`2\beta`. None if
        the problem states no attained fraction.
        """
        convexity = np.min(self.problem.strong_convexity)
        curvature = self.penalty + max(float(self.algorithm.ridge) - float(convexity), 0.0)
        fraction = self.problem.attained_minimiser_share("l2", curvature)
        if fraction is None:
            return None
        change = fraction * self.problem.record_change("l2")
        return float(max(change - 2.0 * self.algorithm.beta, 0.0))

    @property
    def attained_ratio(self) -> float | None:
        r"""Ratio of shift to noise that a pair of records attains in a message.

        The records change the minimiser by :math:`g/m` for every noise :math:`b_{i1}`. Along the
        row, a message is :math:`1/m`-Lipschitz in :math:`b_{i1}`, and :math:`b_{i2}` is added. By
        the Gaussian isoperimetric inequality, an attack then distinguishes the messages at least as
        well as a shift by :math:`g/m` of a Gaussian with standard deviation
        :math:`\sqrt{\sigma_1^2 + (m\sigma_2)^2}/m`.
        """
        shift = self.attained_shift
        if shift is None:
            return None
        algorithm = self.algorithm
        return float(shift / np.hypot(algorithm.noise.scale, algorithm.output_noise.scale))


class OutputNoise(MessagePrivacyCost):
    r"""Privacy cost of messages whose output noise hides both the data and the approximation.

    On neighbouring data sets, two points at which the gradient norm is at most :math:`\beta` have
    a distance of at most :math:`(\Delta_2 + 2\beta)/m`.
    """

    @property
    def scaled_change(self) -> Any:
        r"""Largest change of a message times the curvature, :math:`\Delta_2 + 2\beta`."""
        return self.problem.record_change("l2") + 2.0 * column(self.algorithm.beta)

    def noise_for(self, rho):
        output_noise = float(self.scaled_change / np.sqrt(2.0 * rho))
        return MessageNoise(0.0, output_noise, self.problem.least_convexity)

    def rhos(self):
        return 0.0, (self.scaled_change / column(self.algorithm.output_noise.scale)) ** 2 / 2

    def releases(self, count):
        change, shift = self.scaled_change, self.attained_shift
        attained = None if shift is None else shift / change
        noise = self.algorithm.output_noise.scale
        return [Release("gaussian", change, noise, count=count, attained=attained)]


class BothNoises(MessagePrivacyCost):
    r"""Privacy cost of Theorem 6 as published, with noise in the objective and on the output.

    The noise :math:`b_{i1}` hides the data and :math:`b_{i2}` hides the approximation. In the
    releases, the distance of approximate minimisers is :math:`2\beta/m` instead of
    :math:`\beta/m` (E4.4), and the loss of the perturbed objective is not proven (E4.3).
    """

    def noise_for(self, rho):
        algorithm = self.algorithm
        rho_1, rho_2 = (1.0 - algorithm.splits) * rho, algorithm.splits * rho
        epsilon_1 = zcdp_epsilon(rho_1, algorithm.delta_1, conversion="safe")
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
        r"""Return the ridge that the difference :math:`\epsilon_1 - \epsilon_3` requires."""
        rank = self.problem.record_hessian_rank
        required = rank * 2.8 * self.problem.record_curvature / epsilon_difference
        if self.algorithm.lam_rule == "sharp":
            required -= float(self.penalty)
        return float(max(required, self.problem.least_convexity))

    def rhos(self):
        algorithm = self.algorithm
        epsilon_3 = self.problem.record_change("l2") * self._tail / column(algorithm.noise.scale)
        epsilon_1 = epsilon_3 / column(algorithm.e3)
        rho_1 = zcdp_rho(epsilon_1, column(algorithm.delta_1), conversion="safe")
        return rho_1, (column(algorithm.beta) / column(algorithm.output_noise.scale)) ** 2 / 2

    def jacobian(self, ridge: float) -> float:
        r"""Return the Jacobian term :math:`2.8\kappa` for a ridge, if :math:`\kappa \le 1/2`."""
        added_ridge = max(float(ridge) - self.problem.least_convexity, 0.0)
        return float(jacobian_loss(self.problem, self.penalty, "paper", added_ridge))

    def releases(self, count):
        algorithm, ratio = self.algorithm, self.attained_ratio
        attack = None
        if ratio is not None:
            attack = Release("gaussian", ratio, 1.0, count=count, attained=1, note=COARSE_SOLVER)
        common_fields: dict[str, Any] = {"count": count, "proven": False, "note": UNPROVEN}
        change = self.problem.record_change("l2")
        return [
            Release("gaussian", change, algorithm.noise.scale, attack=attack, **common_fields),
            Release("pure", epsilon=self.jacobian(algorithm.ridge), **common_fields),
            Release("gaussian", 2.0 * algorithm.beta, algorithm.output_noise.scale, count=count),
        ]


PRIVACY_COSTS = {"objective": BothNoises, "output": OutputNoise}
"""Privacy cost classes, by the perturbed quantity."""
