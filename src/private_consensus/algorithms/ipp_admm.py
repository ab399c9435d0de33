r"""IPP-ADMM: only progress that shows is sent (paper 004, section 3.5, Algorithm 3).

As PP-ADMM, but :math:`\hat x_i + b_{i2}` is sent only where

.. math:: f_i^{clip}(x_i) - f_i^{clip}(\hat x_i) + \mathrm{Lap}(4cC_{loss}/\epsilon_2)
    \ge \alpha + \mathrm{Lap}(2cC_{loss}/\epsilon_1)

and fewer than c messages were sent; otherwise neighbours keep the last one, :math:`x_i`. The losses
are means over an agent's records of the logistic loss of weight 1, clipped at :math:`C_{loss}`. A
run is charged :math:`(\epsilon_1+\epsilon_2)^2/2 + c(\rho_1+\rho_2)`.

As printed the scales lack :math:`1/|D_i|`, and every decision is a fair coin (errata E4.7). No
version is private by this charge: the tests look at minimisers that are never released (E4.6), and
a threshold whose noise is drawn again is paid for again. An accountant is told of all T
minimisations, and of what the tests cost at the scales that are set, see
:func:`private_consensus.privacy.sparse_vector_release`. The repair tests what is noised, against a
threshold that is drawn once, with PP-ADMM's noise of the output alone: T Gaussian mechanisms, and
the sparse vector technique on queries about their outputs.

A record moves a query by at most :math:`\Delta`, given all that was sent. With
:math:`C_{loss}/|D_i|` for the change of a mean of clipped losses at a fixed point,

* where noised outputs are tested, :math:`\Delta = 2C_{loss}/|D_i|`: both points are fixed once
  those outputs are paid for;
* where minimisers are tested, :math:`\Delta = C_{loss} + C_{loss}/|D_i|`: the second point is
  hidden and moves with the data, but its mean loss stays within :math:`[0, C_{loss}]`. The bounds
  on an answer hold for every minimiser there may be, hence beside the message made of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..errors import require
from ..privacy import Release, SparseVector, sparse_vector_release
from ..privacy.releases import RandomCount
from ..privacy.sparse_vector import REDRAWS, capped_binomial, least_answers
from .base import column, moved
from .parameters import fraction, nonnegative, one_of, positive, whole
from .pp_admm import COARSE_SOLVER, PlausiblyPrivateADMM

SENSITIVITIES = ("printed", "per_sample")
THRESHOLD_SCALES = ("printed", "standard")
DECISIONS = ("sparse_vector", "coin")
TESTED = ("minimiser", "noised")


class Draw(NamedTuple):
    """Unit draws of an iteration: of the dual and the output [runs, agents, dim] each, of query,
    threshold (Laplace) and coin (uniform) [runs, agents] each."""

    noise: tuple[np.ndarray, np.ndarray]
    query: np.ndarray
    threshold: np.ndarray
    coin: np.ndarray


class State(NamedTuple):
    """As of the skeleton, with the unit noise of the threshold, whether it is to be drawn again,
    and the number of messages so far, each [settings, runs, agents]."""

    x: np.ndarray
    dual: np.ndarray
    minimiser: np.ndarray
    received_sum: np.ndarray
    spent: np.ndarray
    threshold: np.ndarray
    stale: np.ndarray
    sent: np.ndarray


@dataclass(frozen=True, kw_only=True)
class ImprovedPlausiblyPrivateADMM(PlausiblyPrivateADMM):
    r"""IPP-ADMM.

    Parameters
    ----------
    c : int
        Messages of an agent, at most.
    C_loss : float
        Where the loss of a record is clipped.
    alpha : float
        Threshold.
    share : float
        Of the budget, for the tests.
    svt_sensitivity : {"printed", "per_sample"}
        :math:`2C_{loss}`, or :math:`2C_{loss}/|D_i|`.
    threshold_drawn : {"each", "after_release", "once"}
        When it is drawn: at every test (line 9), after every message, or never again.
    threshold_scale : {"printed", "standard"}
        c times that of a single draw, or that of a single draw.
    decision : {"sparse_vector", "coin"}
        ``coin``: a fair one instead of the test, for comparison.
    tested : {"minimiser", "noised"}
        What the test looks at: :math:`\hat x_i`, which is not private before it is sent and is
        charged c times only; or :math:`\hat x_i + b_{i2}` with all T of them charged, so that the
        test looks at what is private already, and saves nothing (a repair of E4.6).
    query_noise, threshold_noise : float
        Laplace scales of query and threshold.
    svt_epsilon : float
        :math:`\epsilon_1 + \epsilon_2`.
    """

    c: int = whole(15)
    C_loss: float = positive(2.0)
    alpha: float = 1e-3
    share: float = fraction(0.1)
    svt_sensitivity: str = one_of("per_sample", SENSITIVITIES)
    threshold_drawn: str = one_of("each", REDRAWS)
    threshold_scale: str = one_of("printed", THRESHOLD_SCALES)
    decision: str = one_of("sparse_vector", DECISIONS)
    tested: str = one_of("minimiser", TESTED)
    query_noise: float = nonnegative(0.0)
    threshold_noise: float = nonnegative(0.0)
    svt_epsilon: float = nonnegative(0.0)

    needs: ClassVar[tuple[str, ...]] = ("proximal", "clipped_loss", "clipped_loss_change")
    source: ClassVar[str] = "Paper 004, section 3.5, Algorithm 3, Theorem 10"

    # Algorithm 3.

    def start(self, problem, network, streams, settings):
        state = super().start(problem, network, streams, settings)
        zero = np.zeros(state.x.shape[:-1])
        return State(*state, zero, np.ones(zero.shape, bool), zero)

    def draws(self, problem, streams) -> Iterator[Draw]:
        shape = (problem.n_agents,)
        query = streams.sequence("noise", "laplace", shape, "query")
        threshold = streams.sequence("noise", "laplace", shape, "threshold")
        coin = streams.sequence("sampling", "uniform", shape, "coin")
        for draw in super().draws(problem, streams):
            yield Draw(draw.noise, next(query), next(threshold), next(coin))

    def message(self, problem, state, minimiser, noise, draw):
        unit = np.where(state.stale, draw.threshold, state.threshold)
        if self.decision == "coin":
            wanted = np.broadcast_to(draw.coin < 0.5, unit.shape)
        else:
            seen = minimiser + noise if self.tested == "noised" else minimiser
            wanted = self._progress(problem, state.x, seen, draw.query) >= (
                _each(self.alpha) + _each(self.threshold_noise) * unit
            )
        sends = wanted & (state.sent < _each(self.c))
        x = np.where(sends[..., None], minimiser + noise, state.x)
        again = {"each": np.ones_like(sends), "after_release": sends, "once": np.zeros_like(sends)}
        return x, {
            "threshold": unit,
            "stale": again[self.threshold_drawn],
            "sent": state.sent + sends,
        }

    def _progress(self, problem, before, after, unit) -> np.ndarray:
        """The noised query, [settings, runs, agents]."""
        bound = column(self.C_loss)
        gained = problem.clipped_loss(before, bound) - problem.clipped_loss(after, bound)
        return gained + _each(self.query_noise) * unit

    def step(self, state, problem, network, draw, t):
        after = super().step(state, problem, network, draw, t)
        if not self.noisy:
            return after
        tests = _each(self.svt_epsilon) ** 2 / 2 if t == 1 else 0.0
        messages = sum(self.step_rhos(problem))
        cost = messages[..., 0] if isinstance(messages, np.ndarray) else messages
        made = 1.0 if self.tested == "noised" else after.sent - state.sent
        return after._replace(spent=state.spent + tests + cost * made)

    def observables(self, state, problem, t):
        return dict(super().observables(state, problem, t)) | {"messages": state.sent.mean(-1)}

    # What audits ask for.

    @property
    def hidden_sampling(self) -> bool:
        """Tests and coins are not seen."""
        return True

    def noise_sites(self, problem, network, horizon):
        """Where tests look at what is noised, what is sent was selected by its noise."""
        *others, output = super().noise_sites(problem, network, horizon)
        return [*others, output._replace(selected=self.tested == "noised")]

    def residual(self, scale, state, problem, network, draw, shown, t):
        """An output that is not sent shows no noise."""
        found = super().residual(scale, state, problem, network, draw, shown, t)
        sent = moved(shown.sent, state.x[0]).any(-1, keepdims=True)
        return {
            site: np.where(sent, unit, np.nan) if site == "message" else unit
            for site, unit in found.items()
        }

    # Privacy.

    def calibrate(self, budget, problem, network, horizon):
        require(self.c <= horizon, "algorithm.c", self.c, f"at most the {horizon} iterations")
        calibrated = super().calibrate(budget, problem, network, horizon)
        if self.calibration == "given":
            return calibrated
        if not budget.private:
            return replace(calibrated, query_noise=0.0, threshold_noise=0.0, svt_epsilon=0.0)
        return calibrated

    def for_all(self, rho: float, problem, network, horizon: int):
        """The share of the tests to those, an equal part of the rest to each message."""
        sensitivity = 2.0 * self.C_loss
        if self.svt_sensitivity == "per_sample":
            sensitivity = 2.0 * problem.clipped_loss_change(self.C_loss)
        tests = SparseVector.split(
            float(np.sqrt(2.0 * self.share * rho)), sensitivity=sensitivity, count=int(self.c)
        )
        times = self.c if self.threshold_scale == "printed" else 1
        return replace(
            self.for_one((1.0 - self.share) * rho / self.charged(horizon), problem, network),
            query_noise=tests.query_scale,
            threshold_noise=times * tests.threshold_scale,
            svt_epsilon=tests.epsilon,
        )

    def rho_by_formula(self, problem, network, horizon):
        """Theorem 10."""
        messages = self.charged(horizon) * sum(self.step_rhos(problem))
        return float(self.svt_epsilon**2 / 2 + messages)

    def charged(self, horizon: int) -> Any:
        """Minimisations that the formula charges."""
        return horizon if self.tested == "noised" else self.c

    def releases(self, problem, network, horizon):
        """With a coin, what is not sent is not seen either."""
        coin = not self.noisy or self.decision == "coin"
        made = int(self.c) if coin else horizon
        attack = self._attack_in_part(problem, network, horizon) if self.noisy else None
        first, *others = (
            replace(release, attained=None, attack=None)
            for release in super().releases(problem, network, made)
        )
        tests = [] if coin else [self._tests(self.query_change(problem), horizon)]
        return [replace(first, attack=attack), *others, *tests]

    def _tests(self, change: float, horizon: int) -> Release:
        """Tests of queries that move by ``change`` at most."""
        return sparse_vector_release(
            change,
            self.threshold_noise,
            self.query_noise,
            count=int(self.c),
            tests=horizon,
            redrawn=self.threshold_drawn,
        )

    def _attack_in_part(self, problem, network, horizon: int) -> Release | None:
        r"""PP-ADMM's attack on the messages that are sent, one record beside zero rows.

        If the record's own clipped loss did not count in the tests, no query would depend on the
        data: the number of messages would have the law of tests of 0. It moves a query by at most
        :math:`C_{loss}/|D_i|`, wherever the minimiser is; what tests of such queries cost is the
        factor by which the law of all that is sent can differ from that.
        """
        ratio = self._attained_ratio(problem, network)
        if ratio is None:
            return None
        most = int(self.c)
        if self.decision == "coin":
            law, log_tolerance = capped_binomial(0.5, most, horizon), 0.0
        else:
            scales = float(self.threshold_noise), float(self.query_noise)
            known = {"count": most, "tests": horizon, "redrawn": self.threshold_drawn}
            law = least_answers(float(self.alpha), *scales, **known)
            tests = self._tests(problem.clipped_loss_change(self.C_loss), horizon)
            log_tolerance = tests.count * tests.epsilon
        seen = RandomCount(ratio, tuple(law.tolist()))
        return Release(
            "profile", profile=seen, attained=1.0, log_tolerance=log_tolerance, note=COARSE_SOLVER
        )

    def query_change(self, problem) -> Any:
        r""":math:`\Delta`, what a record moves a test by, given all that was sent."""
        of_loss = problem.clipped_loss_change(self.C_loss)
        return of_loss + (of_loss if self.tested == "noised" else self.C_loss)


def _each(value: Any) -> Any:
    """A field as it broadcasts against [settings, runs, agents]."""
    spread = column(value)
    return spread[..., 0] if isinstance(spread, np.ndarray) else spread


ALGORITHM = ImprovedPlausiblyPrivateADMM
