r"""IPP-ADMM: transmit an iterate only if a noisy test finds progress (Ding, Algorithm 3).

The iteration is that of PP-ADMM, except that an agent sends :math:`\hat x_i + b_{i2}` only if

.. math:: f_i^{clip}(x_i) - f_i^{clip}(\hat x_i) + \mathrm{Lap}(4cC_{loss}/\epsilon_2)
    \ge \alpha + \mathrm{Lap}(2cC_{loss}/\epsilon_1)

and it has sent fewer than c messages. Otherwise neighbours continue with its last message
:math:`x_i`. The losses are means over the records of an agent of the logistic loss of weight 1,
clipped at :math:`C_{loss}`. The published privacy cost of a run is
:math:`(\epsilon_1+\epsilon_2)^2/2 + c(\rho_1+\rho_2)`.

As published, the scales lack :math:`1/|D_i|`, and every decision is nearly a fair coin (errata
E4.7). The published cost is proven for no version: each new sample of the threshold noise has a
cost of its own, and noise for :math:`2C_{loss}/|D_i|` does not protect the tested minimisers, which
are not released (E4.6). The releases
are therefore those of all T minimisations and of the tests (:mod:`.families.progress_tests`). The
corrected variant tests the noisy iterate against a threshold that is sampled once, with noise on
the output only. It consists of T Gaussian mechanisms and the sparse vector technique on queries
about their outputs.
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from private_consensus.common.errors import require
from private_consensus.privacy.sparse_vector import REDRAWS

from .base import per_agent
from .families import admm, progress_tests
from .families.approximate_admm import ApproximateADMM
from .families.progress_tests import ProgressTests, ThresholdState
from .noise import Noise
from .parameters import fraction, noise_field, nonnegative, one_of, positive, positive_integer

IPPADMMState = namedtuple("IPPADMMState", (*admm.ADMMState._fields, *ThresholdState._fields))
"""State of ADMM, with the fields of the progress tests."""


@dataclass(frozen=True, kw_only=True)
class ImprovedPlausiblyPrivateADMM(ApproximateADMM):
    r"""Improved plausibly private ADMM (IPP-ADMM).

    An agent transmits its iterate only if a noisy test finds that the clipped loss decreases.

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

    c: int = positive_integer(15)
    C_loss: float = positive(2.0)
    alpha: float = 1e-3
    share: float = fraction(0.1)
    svt_sensitivity: str = one_of("per_sample", progress_tests.SENSITIVITIES)
    threshold_drawn: str = one_of("each", REDRAWS)
    threshold_scale: str = one_of("printed", progress_tests.THRESHOLD_SCALES)
    decision: str = one_of("sparse_vector", progress_tests.DECISIONS)
    tested: str = one_of("minimiser", progress_tests.TESTED)
    query_noise: Noise = noise_field("query", law="laplace")
    threshold_noise: Noise = noise_field("threshold", law="laplace")
    svt_epsilon: float = nonnegative(0.0)

    hidden_sampling = True
    needs: ClassVar[tuple[str, ...]] = ("proximal", "least_convexity", "clipped_loss")
    source: ClassVar[str] = "Ding, section 3.5, Algorithm 3, Theorem 10"
    quantities: ClassVar = ("internal", "released", "worst_case", "messages")
    lower_bound_because: ClassVar[str] = (
        "a changed label changes each minimiser, and the tests have at most the stated loss"
    )

    # Algorithm 3.

    def start(self, problem, network, streams, settings):
        state = super().start(problem, network, streams, settings)
        return IPPADMMState(*state, *progress_tests.initial_state(state.x))

    def draws(self, problem, streams):
        return progress_tests.draws(super().draws(problem, streams), problem, streams)

    def message(self, problem, state, minimiser, noise, draw):
        """Return the noisy minimiser of an agent that passes the test, else its last message."""
        tested = ProgressTests(self, problem).test(state, minimiser, minimiser + noise, draw)
        sends = (tested.sent > state.sent)[..., None]
        return np.where(sends, minimiser + noise, state.x), tested._asdict()

    def step(self, state, problem, network, draw, t):
        after = super().step(state, problem, network, draw, t)
        if not self.noisy:
            return after
        message_rho = per_agent(sum(self.message_cost(problem).rhos()))
        charged_messages = 1.0 if self.tested == "noised" else after.sent - state.sent
        tests = per_agent(self.svt_epsilon) ** 2 / 2 if t == 1 else 0.0
        return after._replace(total_loss=state.total_loss + tests + message_rho * charged_messages)

    def observables(self, state, problem, t):
        return dict(super().observables(state, problem, t)) | {"messages": state.sent.mean(-1)}

    # Interface of audits.

    def noise_sites(self, problem, network, horizon):
        """Return the noise sites: the minimisation, if it has noise, and the message.

        A test of noisy iterates depends on the noise of the message. A coin selects at most c
        messages independently of data and noise.
        """
        sites = super().noise_sites(problem, network, horizon)
        selected_site = "message" if self.tested == "noised" else None
        observed = int(self.c) if self.decision == "coin" else None
        return [
            site._replace(selected=site.name == selected_site, max_observed=observed)
            for site in sites
        ]

    # Privacy.

    def calibrate(self, budget, problem, network, horizon):
        require(self.c <= horizon, "algorithm.c", self.c, f"at most the {horizon} iterations")
        return super().calibrate(budget, problem, network, horizon)

    def without_noise(self):
        return replace(super().without_noise(), **progress_tests.NO_NOISE._asdict())

    def for_run(self, rho, problem, network, horizon):
        """Use the fraction ``share`` of a zCDP budget for the tests.

        The remainder is divided equally among the minimisations that the formula counts.
        """
        tests = ProgressTests(self, problem).noise_for(self.share * rho)
        message_rho = (1.0 - self.share) * rho / self.counted_minimisations(horizon)
        return replace(self.for_message(message_rho, problem, network), **tests._asdict())

    def rho_by_formula(self, problem, network, horizon):
        """Return the total privacy loss of Theorem 10, in zCDP."""
        messages = self.counted_minimisations(horizon) * sum(self.message_cost(problem).rhos())
        return float(self.svt_epsilon**2 / 2 + messages)

    def counted_minimisations(self, horizon: int) -> int:
        """Return the number of minimisations whose privacy cost the formula counts."""
        return horizon if self.tested == "noised" else self.c

    def releases(self, problem, network, horizon):
        """Return the releases of the minimisations and of the tests.

        If a coin decides, only the at most c minimisations whose messages are sent are released.
        """
        coin = not self.noisy or self.decision == "coin"
        minimiser_releases = super().releases(problem, network, int(self.c) if coin else horizon)
        charge = self.message_cost(problem, network)
        return ProgressTests(self, problem).releases(minimiser_releases, charge, horizon)


ALGORITHM = ImprovedPlausiblyPrivateADMM
