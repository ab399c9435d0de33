"""Stage II of private consensus gradient descent, and diagnostics of a run for its figures."""

from __future__ import annotations

import numpy as np

from private_consensus.common.errors import require

from ..base import column
from .descent_theorems import theorem_2_bound

MAX_AGENTS_OF_BOUND = 256
"""Largest network with the bound of Theorem 2. It needs the second eigenvalue of the mixing matrix,
whose computation takes longer than all iterations in larger networks."""


def first_step(problem) -> float:
    r"""Return the first step size :math:`\eta_1 = (\mu + L)/(2 \mu L)` (Theorem 2)."""
    names = "strong_convexity", "smoothness"
    mu, smooth = (getattr(problem, name, 0.0) for name in names)
    is_positive = bool(np.all(mu > 0) and np.all(smooth > 0))
    require(is_positive, "problem.name", type(problem).__name__, f"positive {' and '.join(names)}")
    return (mu + smooth) / (2.0 * mu * smooth)


def consensus_limit(network, x: np.ndarray) -> np.ndarray:
    r"""Return the limit of Stage II (eq. (12)), :math:`\lim_k W^k x`.

    W is doubly stochastic and its graph connected, so that the limit is the mean over the agents.

    Parameters
    ----------
    network : Network
    x : ndarray, shape (..., n, d)
        First values that the agents broadcast.

    Returns
    -------
    ndarray, shape (..., n, d)
        Values of all agents in the limit.
    """
    mixed = network.mix(x)
    return np.broadcast_to(mixed.mean(-2, keepdims=True), mixed.shape)


def reconstruct_descent_target(broadcast: np.ndarray, z: np.ndarray, t) -> np.ndarray:
    r"""Compute the descent target of an agent from the values that an eavesdropper receives.

    The descent target is the result of a step of the first step size,
    :math:`z_i - \eta_1\nabla f_i(z_i)`. It equals :math:`z_i + T (x_i(T) - z_i)`, since
    :math:`x_i(T) = z_i - \eta_1 \nabla f_i(z_i)/T`. If :math:`x_i(T)` is broadcast without noise,
    the result is exact. For mean estimation it is the mean of the agent's records.

    Parameters
    ----------
    broadcast : ndarray, shape (..., p)
        Last message.
    z : ndarray, shape (..., p)
        Mixed estimates before the last step, a function of messages.
    t : float or ndarray
        Ratio of the first to the last step size.

    Returns
    -------
    ndarray, shape (..., p)
        Reconstructed points.
    """
    return z + t * (broadcast - z)


def descent_diagnostics(algorithm, state, broadcast, problem, network, t) -> dict[str, np.ndarray]:
    """Return the error of a reconstruction by an eavesdropper, and the error that theory states.

    The error is relative to the descent target and averaged over agents. If the problem states its
    optimum ``target``, the expected error is included and, with at most
    ``MAX_AGENTS_OF_BOUND`` agents, the bound of Theorem 2.

    Parameters
    ----------
    algorithm : GradientDescent
        Batch of settings.
    state : NamedTuple
        Last state, with the mixed estimates z.
    broadcast : ndarray, shape (settings, runs, agents, p)
        First values that the agents broadcast in Stage II.
    problem : Problem
        Objectives and data of the agents, with their sensitivities.
    network : Network
        Communication graph with its mixing matrix.
    t : int
        Last iteration.

    Returns
    -------
    dict
        Quantities [settings, runs] by name.
    """
    first = first_step(problem)
    reconstructed = reconstruct_descent_target(broadcast, state.z, t + column(algorithm.shift))
    truth = state.z - first * problem.gradient(state.z)
    # Targets of audits may be 0, where the relative error is infinite or NaN.
    with np.errstate(divide="ignore", invalid="ignore"):
        relative_error = ((reconstructed - truth) ** 2).sum(-1) / (truth**2).sum(-1)
        quantities = {"reconstruction": np.sqrt(relative_error).mean(-1)}
        if problem.offers("target"):
            if network.n_agents <= MAX_AGENTS_OF_BOUND:
                quantities["bound"] = _theorem_2(algorithm, first, problem, network, t)
            quantities["expected"] = expected_error(algorithm, first, problem, t)
    return quantities


def expected_error(algorithm, first, problem, T: int) -> np.ndarray:
    r"""Return the expected normalised error of the limit of Stage II, for means without a box.

    A step covers the fraction :math:`\eta_t N_i = 1/(t+s)` of the distance to the local mean.
    Mixing preserves the mean of all agents. The error of this mean is

    .. math::
        \bar y(T) - \bar d = -\frac{s}{T+s}\,\bar d
            + \sum_{t \le T} \frac{t+s}{T+s}\,\bar n(t), \qquad
        E\|\bar n(t)\|_2^2 = \frac{p M_t^2}{N}

    where s is ``shift``. With ``stage_two: literal``, Stage II starts without the last noise.

    Parameters
    ----------
    algorithm : GradientDescent
        Batch of settings.
    first : float
        First step size.
    problem : MeanEstimation
        p coordinates, N agents; the data are fixed.
    T : int
        Number of steps, at least 1.

    Returns
    -------
    ndarray, shape (settings, runs)
        In units of :math:`\|\bar d\|_2^2`.
    """
    t = np.arange(1.0, T + 1)
    noise, decay, shift = (
        np.atleast_1d(value)[:, None]
        for value in (algorithm.noise, algorithm.decay, algorithm.shift)
    )
    weighted = (t + shift) / (T + shift) * noise * first * t**-decay
    added = weighted if algorithm.stage_two == "repaired" else weighted[:, :-1]
    variance = problem.dim / problem.n_agents * (added**2).sum(-1, keepdims=True)
    return (shift / (T + shift)) ** 2 + variance / (problem.target**2).sum(-1)


def _theorem_2(algorithm, first, problem, network, T: int) -> np.ndarray:
    """Return the bound of Theorem 2 on the normalised error, [settings, runs].

    It holds for the schedule of the theorem: ``decay`` 3/4 and ``shift`` 0.
    """
    inverse_kappa = np.atleast_1d(algorithm.noise)[:, None] ** 2 / (2.0 * np.sqrt(T))
    distance, rate = (problem.target**2).sum(-1), network.consensus_rate
    bound = theorem_2_bound(
        T, inverse_kappa, problem.lipschitz, first, problem.dim, rate, distance=distance
    )
    return bound / distance
