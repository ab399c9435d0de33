"""Q-DPSGD-2: quantised models, then discrete Gaussian noise (Ding, section 4.4.2, Algorithm 5)."""

import math
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np

from private_consensus.common.errors import require
from private_consensus.privacy import Release
from private_consensus.privacy.mechanism_sampled import DiscreteMessage
from private_consensus.privacy.subsampling import Batches, SampledNoise, noisy_mean

from ..parameters import CALIBRATION
from .base import column
from .families.decentralized_sgd import theorem15_factor
from .q_dpsgd_1 import QDPSGD1


@dataclass(frozen=True, kw_only=True)
class QDPSGD2(QDPSGD1):
    r"""Q-DPSGD-2: quantised models with discrete Gaussian noise, Algorithm 5.

    .. math:: z_j = Q(x_j) + \zeta_j, \quad \zeta_j \sim N_{\eta Z}(0, \sigma^2K^2 I), \qquad
        x_i \leftarrow (1-e+e w_{ii})x_i + e\sum_{j\ne i} w_{ij} z_j - a e\,g_i \quad (28)

    Messages outside the grid are clipped to it. As published, an agent continues from its exact
    model, which contains no noise. One record in one batch then changes all later messages (E4.8b),
    and Theorem 15 does not bound the privacy loss of the released messages. With ``own:
    broadcast``, an agent uses its own message in place of its model, in the average and in the
    gradient. Its next model is then a function of messages and of one batch.

    Theorem 15 requires :math:`c = a e + \eta\sqrt p|S|/K` times the noise of Q-DPSGD-1 (``sigma2:
    full``). With the second term, which the rounding causes, the noise exceeds the range of a grid
    of few bits. Without it (``drop_eta``), the noise is far smaller than a step of the grid and
    never changes a message. ``as_q1`` sets c = 1.

    Parameters
    ----------
    sigma : float
        Noise multiplier :math:`\sigma`: messages have discrete Gaussian noise on the grid with the
        parameter :math:`\sigma K`.
    sigma2 : {"as_q1", "full", "drop_eta"}
        Factor c of Theorem 15 in the rule ``thm11``: 1, both terms, or the first
        term only. The rule ``accountant`` does not use it.
    own : {"exact", "broadcast"}
        Whether an agent continues from its exact model, or from its own message.
    """

    noise_on: Literal["mean"] = "mean"
    sigma2: Annotated[Literal["full", "drop_eta", "as_q1"], CALIBRATION] = "as_q1"
    own: Literal["exact", "broadcast"] = "exact"

    released = "message"
    source = "Ding, section 4.4.2, Algorithm 5, eq. (28), Theorem 15, Remark 10"

    def _message(self, problem, horizon) -> dict[str, Any]:
        a, e = self.steps(float(horizon))
        return {
            "step": float(a * e),
            "resolution": float(self.eta),
            "dim": problem.dim,
            "clip": float(self.K),
        }

    def theorem_factor(self, problem, horizon):
        if self.sigma2 == "as_q1":
            return 1.0
        message = self._message(problem, horizon)
        if self.sigma2 == "drop_eta":
            # The second term of c is that of the rounding.
            message["resolution"] = 0.0
        return theorem15_factor(**message, size=float(self.B))

    def sigma_for(self, budget, problem, horizon):
        is_covered = self.sigma_rule != "accountant" or self.own == "broadcast"
        expected = "broadcast, which sigma_rule: accountant requires"
        require(is_covered, "algorithm.own", self.own, expected)
        return super().sigma_for(budget, problem, horizon)

    def sampled(self, problem, horizon):
        message = self._message(problem, horizon)
        return noisy_message(self.batches(), problem.records, **message)

    def mechanisms(self, problem, network, horizon):
        scale = column(np.multiply(self.sigma, self.K))
        batches: dict[str, Any] = {"sizes": self.batch_sizes, "largest": self.max_batch_size}
        # Settings of a batch are only run; each was accounted on its own.
        if np.ndim(scale):
            return {"message": DiscreteMessage(np.inf, scale, **batches)}
        rounds = int(horizon)
        if self.own == "broadcast":
            batch = self.sampled(problem, rounds)
            releases, largest = batch.releases(self.sigma, rounds), max(batch.losses) * self.K
        else:
            # The exact model remembers a difference, multiplied by this factor in each round.
            e = float(self.steps(float(rounds))[1])
            keep = float(np.abs(1.0 - e + e * network.own_weights).max())
            message = self._message(problem, rounds)
            releases = reused_state_releases(self.sigma, rounds, keep=keep, **message)
            # Without noise, the sensitivity is NaN, and the loss infinite.
            largest = float(np.max(releases[0].losses())) * float(self.sigma * self.K)
        accounted = tuple(releases)
        return {"message": DiscreteMessage(float(largest), scale, accounted=accounted, **batches)}

    def coefficients(self, horizon):
        return super().coefficients(horizon)._replace(from_message=self.own == "broadcast")


ALGORITHM = QDPSGD2


def noisy_message(
    batches: Batches, records: int, *, step: float, resolution: float, dim: int, clip: float
) -> SampledNoise:
    r"""Return discrete Gaussian noise :math:`\sigma K` on the quantised model of an agent.

    The model is a function of the agent's earlier broadcasts and of one batch. Given the uniforms
    of the rounding, two models at distance d are rounded to grid points at distance at most
    :math:`d+\eta\sqrt p`. For replacing a record,

    .. math:: \mu_s\sigma = \frac{2\alpha\varepsilon}{s} + \frac{\eta\sqrt p}{K},

    with ``step`` :math:`\alpha\varepsilon`, ``resolution`` :math:`\eta` of the grid, ``dim`` p and
    ``clip`` K.
    """
    noise = noisy_mean(batches, records)
    jump = resolution * math.sqrt(dim) / clip
    losses = tuple(2.0 * step / s + jump for s in batches.sizes)
    return replace(noise, losses=losses, gaussian=False)


def reused_state_releases(
    sigma: float,
    horizon: int,
    *,
    keep: float,
    step: float,
    resolution: float,
    dim: int,
    clip: float,
) -> list[Release]:
    r"""Return the releases of Q-DPSGD-2 as published, where agents continue from exact models.

    In eq. (28) of Ding, one record in one batch changes the model in all later rounds. In each
    round, a change is multiplied by :math:`c = |1-\varepsilon+\varepsilon w_{ii}|`, and the next
    gradients are evaluated at different points. Two clipped means differ by at most 2K. The models
    therefore differ by at most :math:`\Delta_t = 2\alpha\varepsilon K\,(1-c^t)/(1-c)`, and no
    amplification by sampling applies. ``keep`` is the largest c of any agent, above 1 for large
    mixing steps. The other parameters are those of :func:`noisy_message`.
    One discrete Gaussian release covers all rounds.
    """
    require(0 <= keep < math.inf, "keep", keep, "a finite number of at least 0")
    t = np.arange(1, horizon + 1)
    remaining_shift = (
        t if keep == 1 else -np.expm1(t * np.log(keep)) / (1 - keep) if keep else np.ones(horizon)
    )
    sensitivity = 2 * step * clip * remaining_shift + resolution * math.sqrt(dim)
    note = "every message depends on all earlier batches, since agents continue from exact models"
    return [
        Release("discrete_gaussian", sensitivity / resolution, sigma * clip / resolution, note=note)
    ]
