"""Compiled rounds of decentralized SGD, for 32-bit perceptrons on small networks.

The settings of a run share its random numbers (:mod:`...kernels.rounds`). Threads process different
runs. Models, and messages with noise, are overwritten.
"""

from typing import Any

import numpy as np

from private_consensus.kernels import rounds
from private_consensus.kernels.compiling import share_out

from ...graphs import SMALL
from ...problems.perceptron import Perceptron

STREAMS = "noise", "rounding", "discrete", "mask"
"""Names of the random streams of a round."""


def compiled_step(algorithm: Any, state: Any, problem: Any, network: Any, release: Any, t: int):
    """Compute a round in compiled code, or by ``algorithm.step`` if it does not apply."""
    x = state.x
    settings, runs, agents, dim = x.shape
    is_single = x.dtype == np.float32 and isinstance(problem, Perceptron)
    if not is_single or agents > SMALL:
        return algorithm.step(state, problem, network, release, t)
    round_, batch = algorithm.coefficients(release.horizon), release.batch(algorithm.released)
    streams = {name: release.key(name) for name in STREAMS}
    sends_noise = algorithm.released == "message"
    sent = state.message if sends_noise else np.empty_like(x) if round_.grids else x
    base = sent if round_.from_message else x
    clips = np.broadcast_to(np.asarray(algorithm.clip_norm, float), settings)

    def _compute_runs(begin: int, end: int) -> None:
        for run in range(begin, end):
            keys = {name: rounds.keys(key[run], (t - 1) * agents) for name, key in streams.items()}
            if round_.grids:
                deviations = batch.deviation if sends_noise else np.zeros(settings)
                _round(x[:, run], round_.grids, deviations, keys, sent[:, run])
            sizes = np.ascontiguousarray(batch.sizes[:, run])
            gradients = np.empty((settings, agents, dim), x.dtype)
            first = (np.arange(settings) * runs + run) * agents
            models, rows = base.reshape(-1, dim), gradients.reshape(-1, dim)
            problem.clipped_gradients(models, first, batch.rows[run], sizes, clips, rows)
            scale = np.zeros(sizes.shape) if sends_noise else batch.deviation[:, run]
            noise = np.zeros((agents, dim + 1), x.dtype)
            if scale.any():
                noise = rounds.normals(keys["noise"], agents, dim)
            sparse = [None] * settings
            if round_.fraction is not None:
                sparse = _sparse(round_, rounds.uniforms(keys["mask"], agents, dim), settings)
            steps = _steps(round_, network.of_run(run).mixing, scale)
            for s in range(settings):
                arrays = x[s, run], base[s, run], sent[s, run], gradients[s]
                rounds.mix_and_step(*arrays, steps[s], noise, sparse[s])

    share_out(_compute_runs, runs)
    return algorithm.after(state, batch, x)


def _round(x, grids, deviations, keys, sent) -> None:
    """Round models of one run, and add noise."""
    shape = x.shape[1:]
    u, words = rounds.uniforms(keys["rounding"], *shape), None
    for s, grid in enumerate(grids):
        noise, variance = None, grid.variance(deviations[s])
        if variance:
            words = rounds.words(keys["discrete"], *shape) if words is None else words
            noise = rounds.Noise(variance, keys["discrete"], words)
        points = rounds.Grid(*np.array([grid.resolution, *grid.ends], np.float32))
        rounds.round_models(x[s], u, points, sent[s], noise)


def _sparse(round_: Any, mask: np.ndarray, settings: int) -> list[rounds.Sparse]:
    factors = np.array([round_.relaxation, round_.fraction], np.float32)
    return [rounds.Sparse(*pair, mask) for pair in np.broadcast_to(factors.T, (settings, 2))]


def _steps(round_: Any, mixing: np.ndarray, scale: np.ndarray) -> list[rounds.Steps]:
    """Return the coefficients of one run for each setting; ``scale`` is that of the noise."""
    settings = range(len(scale))
    step, e = (np.broadcast_to(v, len(scale)) for v in (round_.step, round_.mixing))
    if not round_.grids:
        # The message of an agent is its model, which is mixed like those of the others.
        nothing = np.zeros(len(mixing))
        return [rounds.steps_of(mixing, nothing, scale[s], step[s]) for s in settings]
    received, diagonal = mixing * (1.0 - np.eye(len(mixing))), np.diagonal(mixing)
    return [
        rounds.steps_of(e[s] * received, (1.0 - e[s]) + e[s] * diagonal, scale[s], step[s])
        for s in settings
    ]
