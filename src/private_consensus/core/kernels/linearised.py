"""Step of linearised ADMM in one pass; array operations would access all memory ten times."""

from __future__ import annotations

from .compiling import AVAILABLE, compiled
from .entries import require_layout

__all__ = ["AVAILABLE", "linearised_step"]


def linearised_step(
    noisy, dual, server, gradient, draw, rho, inverse_step, scale, exact, sent, average, pulled
):
    r"""Take the step of :mod:`...algorithms.dp_admm`, with the same operations in the same order.

    Parameters
    ----------
    noisy, dual, gradient : ndarray, shape (settings, runs, agents, dim)
        Last noisy models :math:`\tilde w_i`, dual variables :math:`\gamma_i` and gradients.
    server : ndarray, shape (settings, runs, 1, dim)
        Last average w.
    draw : ndarray, shape (runs, agents, dim)
        Noise samples before scaling.
    rho, inverse_step, scale : ndarray, shape (settings, runs)
        Penalty, :math:`1/\eta_t`, and scale factor of the noise samples.
    exact, sent, average, pulled : ndarray
        Overwritten: :math:`w_i`, :math:`\tilde w_i`, w and :math:`\gamma_i`.
    """
    require_layout("linearised_step", "noisy", noisy, (-1, -1, -1, -1))
    full_arrays = {
        "dual": dual,
        "gradient": gradient,
        "exact": exact,
        "sent": sent,
        "pulled": pulled,
    }
    for name, array in full_arrays.items():
        require_layout("linearised_step", name, array, noisy.shape)
    single = (*noisy.shape[:2], 1, noisy.shape[3])
    for name, array in {"server": server, "average": average}.items():
        require_layout("linearised_step", name, array, single)
    require_layout("linearised_step", "draw", draw, noisy.shape[1:])
    for name, array in {"rho": rho, "inverse_step": inverse_step, "scale": scale}.items():
        require_layout("linearised_step", name, array, noisy.shape[:2])
    _step(
        noisy, dual, server, gradient, draw, rho, inverse_step, scale, exact, sent, average, pulled
    )


def _linearised_step(
    noisy, dual, server, gradient, draw, rho, inverse_step, scale, exact, sent, average, pulled
):
    settings, runs, agents, dim = noisy.shape
    for s in range(settings):
        for r in range(runs):
            penalty, inverse, size = rho[s, r], inverse_step[s, r], scale[s, r]
            weight = penalty + inverse
            for i in range(dim):
                average[s, r, 0, i] = 0.0
                pulled[s, r, 0, i] = 0.0
            for k in range(agents):
                for i in range(dim):
                    pull = penalty * server[s, r, 0, i] + dual[s, r, k, i]
                    pull = pull + inverse * noisy[s, r, k, i]
                    found = (pull - gradient[s, r, k, i]) / weight
                    exact[s, r, k, i] = found
                    sent[s, r, k, i] = found + size * draw[r, k, i]
                    average[s, r, 0, i] += sent[s, r, k, i]
                    pulled[s, r, 0, i] += dual[s, r, k, i]
            for i in range(dim):
                mean = average[s, r, 0, i] / agents
                average[s, r, 0, i] = mean - pulled[s, r, 0, i] / agents / penalty
            for k in range(agents):
                for i in range(dim):
                    away = sent[s, r, k, i] - average[s, r, 0, i]
                    pulled[s, r, k, i] = dual[s, r, k, i] - penalty * away


# Without contraction, so that the result is byte-identical to that of array operations.
_step = compiled(_linearised_step, fastmath=False)
