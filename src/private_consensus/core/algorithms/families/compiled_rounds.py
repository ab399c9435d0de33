"""Compiled rounds of decentralized SGD, for 32-bit perceptrons on small networks.

The models of all settings of a run are processed in one pass (:mod:`...kernels.rounds`). Threads
process different runs. Models, and messages with noise, are overwritten.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from private_consensus.kernels.compiling import share_out
from private_consensus.kernels.rounds import (
    Grids,
    Sparse,
    Steps,
    keys,
    mix_and_step,
    round_with_noise,
    steps_of,
)

from ...graphs import SMALL
from ...problems.perceptron import Perceptron

STREAMS = "noise", "rounding", "discrete", "mask"
"""Names of the random streams of a round."""


def compiled_step(algorithm: Any, state: Any, problem: Any, network: Any, release: Any, t: int):
    """Compute a round in compiled code, or by ``algorithm.step`` if it does not apply.

    Parameters
    ----------
    algorithm : SampledRounds
        Batch of settings.
    state : SGDState
        State before the round.
    problem : Problem
        Objectives and data of the agents, with their sensitivities.
    network : Network
        Communication graph with its mixing matrix.
    release : function
        Function of the handler.
    t : int
        Round, counted from 1.

    Returns
    -------
    SGDState
        State after the round.
    """
    settings, runs, agents, dim = state.x.shape
    is_single = state.x.dtype == np.float32 and isinstance(problem, Perceptron)
    if not is_single or agents > SMALL:
        return algorithm.step(state, problem, network, release, t)
    round_, batch = algorithm.coefficients(release.horizon), release.batch(algorithm.released)
    streams = {name: release.key(name) for name in STREAMS}
    x, sends_noise = state.x.reshape(-1, dim), algorithm.released == "message"
    sent = state.message.reshape(-1, dim) if sends_noise else x
    if round_.grids and not sends_noise:
        sent = np.empty_like(x)
    base = sent if round_.from_message else x
    ends = [(grid.resolution, *grid.ends) for grid in round_.grids]
    grids, variances = Grids(*np.array(ends, np.float32).reshape(-1, 3).T.copy()), (0.0,) * settings
    if sends_noise:
        noises = zip(round_.grids, batch.deviation.tolist(), strict=True)
        variances = tuple(grid.variance(deviation) for grid, deviation in noises)
    factors = [] if round_.fraction is None else [round_.relaxation, round_.fraction]
    sparse = Sparse(*np.array(factors, np.float32)) if factors else None
    clips = np.broadcast_to(np.asarray(algorithm.clip_norm, float), settings)
    saturated, lost = np.zeros((2, settings, runs))

    def _compute_runs(begin: int, end: int) -> None:
        for run in range(begin, end):
            first = (np.arange(settings) * runs + run) * agents
            at = {name: keys(words[run], (t - 1) * agents) for name, words in streams.items()}
            if round_.grids:
                clipped = round_with_noise(
                    x, sent, first, agents, grids, variances, at["rounding"], at["discrete"]
                )
                saturated[:, run] = np.minimum(clipped / (agents * dim), 1.0)
            sizes = np.ascontiguousarray(batch.sizes[:, run])
            gradients = np.empty((settings * agents, dim), x.dtype)
            problem.clipped_gradients(base, first, batch.rows[run], sizes, clips, gradients)
            scale = np.zeros(sizes.shape) if sends_noise else batch.deviation[:, run]
            steps = _steps(round_, network.of_run(run).mixing, scale)
            lost[:, run] = mix_and_step(
                x, base, sent, gradients, first, steps, at["noise"], at["mask"], sparse
            )

    share_out(_compute_runs, runs)
    return algorithm.after(state, batch, state.x, saturated=saturated, lost=lost)


def _steps(round_: Any, mixing: np.ndarray, scale: np.ndarray) -> Steps:
    """Return the coefficients of the kernel for one run; ``scale`` is that of the noise."""
    step = np.broadcast_to(round_.step, len(scale))
    if not round_.grids:
        # The message of an agent is its model, which is mixed like those of the others.
        weights = np.broadcast_to(mixing, (len(scale), *mixing.shape))
        return steps_of(weights=weights, keep=np.zeros(scale.shape), scale=scale, step=step)
    e = np.reshape(round_.mixing, (-1, 1))
    others = e[..., None] * (mixing * (1.0 - np.eye(len(mixing))))
    keep = (1.0 - e) + e * np.diagonal(mixing)
    return steps_of(weights=others, keep=keep, scale=scale, step=step)
