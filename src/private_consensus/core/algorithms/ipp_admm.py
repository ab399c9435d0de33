"""IPP-ADMM: transmit an iterate only if a noisy test finds progress (Ding, Algorithm 3)."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from private_consensus.common.errors import require
from private_consensus.privacy import sparse_vector_scales
from private_consensus.privacy.mechanism_minimisers import ThresholdTests

from ..parameters import Fraction, NonNegative, Positive, PositiveInt
from .base import INTERNAL, column, per_agent
from .pp_admm import PlausiblyPrivateADMM


@dataclass(frozen=True, kw_only=True)
class ImprovedPlausiblyPrivateADMM(PlausiblyPrivateADMM):
    r"""Improved plausibly private ADMM (IPP-ADMM).

    The iteration is that of PP-ADMM, except that an agent sends :math:`\hat x_i + b_{i2}` only if

    .. math:: f_i^{clip}(x_i) - f_i^{clip}(\hat x_i) + \mathrm{Lap}(4cC_{loss}/\epsilon_2)
        \ge \alpha + \mathrm{Lap}(2cC_{loss}/\epsilon_1)

    and it has sent fewer than c messages. Otherwise neighbours continue with its last message
    :math:`x_i`. The losses are means over the records of an agent of the logistic loss of weight 1,
    clipped at :math:`C_{loss}`. The published privacy cost of a run is
    :math:`(\epsilon_1+\epsilon_2)^2/2 + c(\rho_1+\rho_2)`.

    As published, the scales lack :math:`1/|D_i|`, and every decision is nearly a fair coin (errata
    E4.7). The published cost is proven for no version: each new sample of the threshold noise has a
    cost of its own, and noise for :math:`2C_{loss}/|D_i|` does not protect the tested minimisers,
    which are not released (E4.6). The mechanisms are therefore those of all T minimisations and of
    the tests. The corrected variant tests the noisy iterate against a threshold that is sampled
    once, with noise on the output only. It consists of T Gaussian mechanisms and the sparse vector
    technique on queries about their outputs.

    Parameters
    ----------
    c : int
        Largest number of messages of an agent.
    C_loss : float
        Value :math:`C_{loss}` at which the loss of a record is clipped.
    alpha : float
        Threshold :math:`\alpha` on the decrease of the loss.
    share : float
        Fraction of the budget for the tests.
    svt_sensitivity : {"printed", "per_sample"}
        Sensitivity in the noise of the tests: :math:`2C_{loss}` or :math:`2C_{loss}/|D_i|`.
    threshold_drawn : {"each", "after_release", "once"}
        When the noise of the threshold is sampled: in every test (line 9), in the first test after
        every message, or in the first test only.
    threshold_scale : {"printed", "standard"}
        Scale of the threshold noise: c times that of a single sample, or that of a single sample.
    decision : {"sparse_vector", "coin"}
        Whether the test decides or, for comparison, a fair coin.
    tested : {"minimiser", "noised"}
        Tested point. ``minimiser``: :math:`\hat x_i`, which has no noise; the formula counts c
        minimisations. ``noised``: :math:`\hat x_i + b_{i2}`; the formula counts all T
        minimisations, which corrects E4.6.
    query_noise, threshold_noise : float
        Laplace scales of query and threshold.
    svt_epsilon : float
        Privacy loss of the tests, :math:`\epsilon_1 + \epsilon_2`.
    """

    c: PositiveInt = 15
    C_loss: Positive = 2.0
    alpha: float = 1e-3
    share: Fraction = 0.1
    svt_sensitivity: Literal["printed", "per_sample"] = "per_sample"
    threshold_drawn: Literal["once", "after_release", "each"] = "each"
    threshold_scale: Literal["printed", "standard"] = "printed"
    decision: Literal["sparse_vector", "coin"] = "sparse_vector"
    tested: Literal["minimiser", "noised"] = "minimiser"
    query_noise: NonNegative = 0.0
    threshold_noise: NonNegative = 0.0
    svt_epsilon: NonNegative = 0.0

    needs = ("proximal", "least_convexity", "clipped_loss")
    source = "Ding, section 3.5, Algorithm 3, Theorem 10"
    quantities = (INTERNAL, "released", "messages")
    calibrated = (*PlausiblyPrivateADMM.calibrated, "query_noise", "threshold_noise", "svt_epsilon")

    # Algorithm 3.

    def mechanisms(self, problem, network, horizon):
        messages = super().mechanisms(problem, network, horizon)
        if self.decision == "coin":
            # Only minimisations whose messages are sent are released.
            largest = int(np.max(self.c))
            limits = {"minimiser": {"sent": largest}, "message": {"touched": largest}}
            return {name: replace(m, **limits[name]) for name, m in messages.items()}
        bound = column(self.C_loss)
        change = problem.clipped_loss_change(bound)
        # A minimiser that is not released depends on the data, but its mean loss is bounded.
        tests = ThresholdTests(
            change + (change if self.tested == "noised" else bound),
            column(self.query_noise),
            level=column(self.alpha),
            threshold_scale=column(self.threshold_noise),
            count=column(self.c),
            redrawn=self.threshold_drawn,
        )
        return {**messages, "test": tests}

    def start(self, problem, network, release):
        state = super().start(problem, network, release)
        return state._replace(extra={"sent": np.zeros(state.x.shape[:-1])})

    def step(self, state, problem, network, release, t):
        minimiser = self.minimiser(state, problem, network, release, t)
        sent = state.extra["sent"]
        # The sparse vector technique ends after c positive answers.
        may_send = sent < per_agent(self.c)
        if self.decision == "coin":
            coin = release.random("coin", "uniform", (problem.n_agents,))
            sends = (coin < 0.5) & may_send
            noised = release("message", minimiser, where=sends[..., None])
        else:
            # Accounted in every iteration: the test uses the minimiser even if nothing is sent.
            noised = release("message", minimiser)
            point = noised if self.tested == "noised" else minimiser
            before, after = self.clipped_losses(state, problem, point, may_send)
            decrease = np.where(may_send, before - after, 0.0)
            sends = release("test", decrease[..., None])[..., 0]
        # Neighbours continue with the last message of an agent that does not send.
        x = np.where(sends[..., None], noised, state.x)
        return self.update_duals(state, problem, network, x, minimiser, t, sent=sent + sends)

    def clipped_losses(self, state, problem, points, may_send):
        """Return the clipped losses at the latest messages and at new points.

        Both are [settings, runs, agents], for the agents of the mask ``may_send``.
        """
        bound = np.broadcast_to(column(self.C_loss), (*may_send.shape, 1))
        both = [np.concatenate(pair) for pair in ((state.x, points), 2 * (bound,), 2 * (may_send,))]
        return np.split(problem.clipped_loss(*both), 2)

    def observables(self, state, problem, t):
        messages = state.extra["sent"].mean(-1)
        return {**super().observables(state, problem, t), "messages": messages}

    # Calibration and formulas.

    def calibrate(self, budget, problem, network, horizon):
        require(self.c <= horizon, "algorithm.c", self.c, f"at most the {horizon} iterations")
        return super().calibrate(budget, problem, network, horizon)

    def for_run(self, rho, problem, network, horizon):
        """Return a copy whose noises meet a zCDP budget of the whole run.

        The fraction ``share`` is for the tests. The remainder is divided equally among the
        minimisations that the formula counts.
        """
        sensitivity = 2.0 * self.C_loss
        if self.svt_sensitivity == "per_sample":
            sensitivity = 2.0 * problem.clipped_loss_change(self.C_loss)
        # A pure epsilon costs epsilon^2/2 in zCDP.
        epsilon = float(np.sqrt(2.0 * (self.share * rho)))
        threshold, query = sparse_vector_scales(epsilon, sensitivity=sensitivity, count=int(self.c))
        times = self.c if self.threshold_scale == "printed" else 1
        message_rho = (1.0 - self.share) * rho / self.counted_minimisations(horizon)
        return replace(
            self.for_message(message_rho, problem, network),
            query_noise=query,
            threshold_noise=times * threshold,
            svt_epsilon=epsilon,
        )

    def rho_by_formula(self, problem, network, horizon):
        """Return the total privacy loss of Theorem 10, in zCDP."""
        messages = self.counted_minimisations(horizon) * sum(self.rhos(problem))
        return float(self.svt_epsilon**2 / 2 + messages)

    def counted_minimisations(self, horizon: int) -> int:
        """Return the number of minimisations whose privacy cost the formula counts."""
        return horizon if self.tested == "noised" else self.c


ALGORITHM = ImprovedPlausiblyPrivateADMM
