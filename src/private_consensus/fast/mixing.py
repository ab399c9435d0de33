"""Values of few agents, mixed problem after problem: array operations read and write everything ten
times."""

from __future__ import annotations

import numpy as np

from .compiling import AVAILABLE, compiled, inlined
from .entries import require_layout, require_one_of
from .vectors import DOUBLE_LANES, everywhere, load, store

__all__ = ["AVAILABLE", "consensus_limits", "mean_step"]


def mean_step(sent, mixing, means, draw, *, records, box, step, scale):
    r"""The step of :mod:`...algorithms.gradient_descent` where an agent's objective is
    :math:`\tfrac N2\|x - m_i\|_2^2` on a box: z, x and y, the same bytes as operation by operation.

    Parameters
    ----------
    sent : ndarray, shape (settings, runs, agents, dim)
    mixing : ndarray, shape (runs or 1, agents, agents)
    means, draw : ndarray, shape (runs or 1, agents, dim)
    records, box : float
    step, scale : ndarray, shape (settings,)
        Length of the step, and what the draw is multiplied by.
    """
    require_layout("mean_step", "sent", sent, (-1, -1, -1, -1))
    shape = sent.shape
    _require_mixing("mean_step", mixing, shape)
    for name, values in {"means": means, "draw": draw}.items():
        require_layout("mean_step", name, values, (-1, *shape[2:]))
        require_one_of("mean_step", name, len(values), (1, shape[1]))
    for name, values in {"step": step, "scale": scale}.items():
        require_layout("mean_step", name, values, shape[:1])
    z = np.empty(sent.size + DOUBLE_LANES)
    _mix_all(_padded(sent), np.ascontiguousarray(mixing, float), shape[-1], z)
    z = z[: sent.size].reshape(*shape[:2], -1)
    x, y = np.empty((2, *z.shape))
    own = (
        np.array(np.broadcast_to(values, shape[1:]), float).reshape(shape[1], -1)
        for values in (means, draw)
    )
    _descend(z, *own, float(records), float(box), step, scale, x, y)
    return z.reshape(shape), x.reshape(shape), y.reshape(shape)


def consensus_limits(x, mixing, tolerance, at_most):
    """What each problem of x [settings, runs, agents, dim] is after so many rounds of mixing, or
    once none of its values changes by more than ``tolerance`` times the largest."""
    require_layout("consensus_limits", "x", x, (-1, -1, -1, -1))
    _require_mixing("consensus_limits", mixing, x.shape)
    found = _padded(x)
    ahead = np.empty(x.shape[-2] * x.shape[-1] + DOUBLE_LANES)
    _limits(found, np.ascontiguousarray(mixing, float), x.shape[-1], tolerance, at_most, ahead)
    return found[: x.size].reshape(x.shape)


def _require_mixing(kernel, mixing, shape):
    _, runs, agents, _ = shape
    require_layout(kernel, "mixing", mixing, (-1, agents, agents))
    require_one_of(kernel, "mixing", len(mixing), (1, runs))


def _padded(x):
    """Vectors run over the end of a row, and once over that of the last."""
    found = np.zeros(x.size + DOUBLE_LANES)
    found[: x.size] = x.ravel()
    return found


@compiled
def _mix_all(sent, mixing, dim, z):
    size = mixing.shape[1] * dim
    for n in range((z.size - DOUBLE_LANES) // size):
        _mix(sent, n * size, mixing, n % len(mixing), dim, z, n * size)


@compiled
def _limits(x, mixing, dim, tolerance, at_most, ahead):
    size = mixing.shape[1] * dim
    for n in range((x.size - DOUBLE_LANES) // size):
        own = n * size
        for _ in range(at_most):
            _mix(x, own, mixing, n % len(mixing), dim, ahead, 0)
            change, largest = 0.0, 0.0
            for k in range(size):
                change = max(change, abs(ahead[k] - x[own + k]))
                largest = max(largest, abs(ahead[k]))
                x[own + k] = ahead[k]
            if not change > tolerance * largest:
                break


@inlined
def _mix(sent, own, mixing, run, dim, z, at):
    """The agents' values from ``own`` on, mixed, to z from ``at`` on."""
    agents = mixing.shape[1]
    for i in range(agents):
        for c in range(0, dim, DOUBLE_LANES):
            total = everywhere(0.0)
            for j in range(agents):
                total = total + load(sent, own + j * dim + c) * mixing[run, i, j]
            # What is beyond the row's end is the next one's, and is written later.
            store(z, at + i * dim + c, total)


def _descend(z, means, draw, records, box, step, scale, x, y):
    settings, runs, size = z.shape
    for s in range(settings):
        for r in range(runs):
            for k in range(size):
                mixed = min(max(z[s, r, k], -box), box)
                z[s, r, k] = mixed
                ahead = mixed - step[s] * (records * (mixed - means[r, k]))
                ahead = min(max(ahead, -box), box)
                x[s, r, k] = ahead
                y[s, r, k] = ahead + scale[s] * draw[r, k]


# Without contraction, as array operations are.
_descend = compiled(_descend, fastmath=False)
