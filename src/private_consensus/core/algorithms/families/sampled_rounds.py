"""Rounds of Q-DPSGD, DSGD and SDM-DSGD, with array operations or in compiled code."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from private_consensus.kernels.messages import uniforms

from ...quantization import Grid
from ..base import column, iterate
from .compiled_rounds import compiled_step
from .decentralized_sgd import DecentralizedSGD


class Round(NamedTuple):
    r"""Coefficients of a round, each a number or [settings].

    ``step`` and ``mixing`` are the steps s and e. ``grids`` has one grid per setting; without
    grids, models are sent unchanged. If ``from_message``, :math:`b_i` is the message of the agent.
    ``relaxation`` and ``fraction`` are :math:`\theta` and c; without a fraction, all coordinates
    are sent.
    """

    step: Any
    mixing: Any = 1.0
    grids: tuple[Grid, ...] = ()
    from_message: bool = False
    relaxation: Any = 1.0
    fraction: Any = None


@dataclass(frozen=True, kw_only=True)
class SampledRounds(DecentralizedSGD):
    r"""Decentralized SGD whose round has a common form.

    With the mean gradient :math:`g_i(b)` of a batch and its noise :math:`\zeta_i`
    (:mod:`.decentralized_sgd`), a round is

    .. math::
        z_i &= x_i, \quad Q(x_i) \quad\text{or}\quad Q(x_i) + \text{noise}, \qquad
            b_i = x_i \quad\text{or}\quad z_i \\
        y_i &= (1-e+e w_{ii})\,b_i + e\sum_{j\ne i} w_{ij} z_j - s\,(g_i(b_i) + \zeta_i) \\
        x_i &\leftarrow x_i + S(\theta(y_i - x_i)), \qquad
            S(d)_k = \begin{cases} d_k/c & \text{with probability } c \\ 0 & \text{else}\end{cases}

    with rounding Q to a grid (:mod:`...quantization`). An algorithm states the coefficients of its
    round (:class:`Round`). The plain step takes 12 times as long as :func:`.compiled_step`, which
    updates models in place: an observer that stores arrays passed to ``observe`` has to copy them.
    """

    @abstractmethod
    def coefficients(self, horizon: np.ndarray) -> Round:
        """Return the coefficients of a round, for the horizons of all settings."""

    def run(self, problem, network, streams, horizon, observe):
        """Run compiled rounds unless ``step`` is overridden, with single-threaded linear algebra.

        With several threads, sums have another order and therefore other rounding errors.
        """
        is_inherited = type(self).step is SampledRounds.step
        compiled = compiled_step if is_inherited else None
        with threadpool_limits(1, "blas"):
            iterate(self, problem, network, streams, horizon, observe, compiled)

    def step(self, state, problem, network, release, t):
        x, round_ = state.x, self.coefficients(release.horizon)
        sent = x
        if round_.grids:
            sent = rounded(x, round_.grids, release.key("rounding"), t)
        if self.released == "message":
            noisy = noisy_messages(sent, round_.grids, release.key("discrete"), t)
            sent = release("message", (sent, noisy))
        base = sent if round_.from_message else x
        batch, gradient = release.batch(self.released), self.gradient_at(problem, base)
        if self.released == "gradient":
            descent = release("gradient", gradient)
        else:
            descent = gradient(batch.rows, batch.sizes)
        e = column(round_.mixing)
        keep = 1.0 - e + e * network.own_weights[..., None]
        # (27), with the own model or message instead of the received value.
        y = keep * base + network.mix_others(sent, e) - column(round_.step) * descent
        if round_.fraction is not None:
            # Both ends of an edge know the mask of a round, which does not depend on the data.
            counter, shape = (t - 1) * problem.n_agents, x.shape[-2:]
            mask = np.stack([uniforms(key, counter, shape) for key in release.key("mask")])
            c = column(round_.fraction)
            y = x + np.where(mask < c, column(round_.relaxation) * (y - x) / c, 0.0)
        return self.after(state, batch, y, sent if self.released == "message" else None)


def rounded(x: np.ndarray, grids: tuple[Grid, ...], keys: np.ndarray, t: int) -> np.ndarray:
    """Return models that are rounded to the grid of their setting."""
    z, counter = np.empty_like(x), (t - 1) * x.shape[2]
    for s, run in np.ndindex(x.shape[:2]):
        z[s, run] = grids[s].quantize(x[s, run], keys[run], counter)
    return z


def noisy_messages(z: np.ndarray, grids: tuple[Grid, ...], keys: np.ndarray, t: int):
    """Return the query of :class:`.DiscreteMessage`, which adds noise to rounded models z."""
    counter = (t - 1) * z.shape[2]

    def messages(deviations: np.ndarray) -> np.ndarray:
        sent = np.empty_like(z)
        for s, run in np.ndindex(z.shape[:2]):
            deviation = float(deviations[s])
            sent[s, run] = grids[s].add_noise(z[s, run], deviation, keys[run], counter)
        return sent

    return messages
