"""Monte Carlo samples of views, for comparison with the formula for mu.

The rounds are simulated directly, without :mod:`.linear_view`. Two audits use the samples. The
fixed statistic :math:`h^T o` attains mu for the best h. Fisher's discriminant is learned from one
half of the runs and tested on the other, and does not use the formula.
"""

from __future__ import annotations

import numpy as np

from private_consensus.common.errors import require

from .linear_view import dense
from .systems import LinearSystem
from .views import Observer


def sampled_views(
    system: LinearSystem,
    observer: Observer,
    victim: int,
    change: np.ndarray,
    runs: int,
    generator: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Sample views without and with a change of a target agent's inputs.

    Parameters
    ----------
    system : LinearSystem
        Algorithm with noise that is independent over rounds.
    observer : Observer
        Observing agents or eavesdropper.
    victim : int
        Target agent.
    change : ndarray, [T]
        Change of the target agent's input in each round.
    runs : int
        Number of runs per data set.
    generator : Generator
        Source of the noise.

    Returns
    -------
    without, with_change : ndarray, [runs, rows]
        Views on the two data sets.
    """
    observer.check(system.n_agents)
    require(system.filter is None, "filter", "correlated noise", "independent noise")
    without, with_change = (
        _run(system, observer, victim, scale * np.asarray(change, float), runs, generator)
        for scale in (0.0, 1.0)
    )
    return without, with_change


def _run(
    system: LinearSystem,
    observer: Observer,
    victim: int,
    change: np.ndarray,
    runs: int,
    generator: np.random.Generator,
) -> np.ndarray:
    state = np.zeros((runs, system.rounds[0].transition.shape[0]))
    views = []
    for round_, input_change in zip(system.rounds, change, strict=True):
        # The observer subtracts the noise that it knows, which is equivalent to no noise.
        z = generator.standard_normal((runs, len(round_.owners))) * observer.unknown(round_)
        inputs = np.zeros(system.n_agents)
        inputs[victim] = input_change
        sent = state @ dense(round_.message_transition).T + z @ dense(round_.message_noise).T
        sent = sent + dense(round_.message_inputs) @ inputs
        views.append(sent @ observer.rows(round_).T)
        state = state @ dense(round_.transition).T + z @ dense(round_.noise).T
        state = state + dense(round_.inputs) @ inputs
    rows = observer.final_rows(system)
    if len(rows):
        views.append(state @ dense(system.output).T @ rows.T)
    return np.hstack(views)


def discriminant_mu(without: np.ndarray, with_change: np.ndarray) -> float:
    """Return the mu that a learned linear discriminant attains on runs not used for learning.

    It is a lower estimate of mu, up to its :func:`standard_error`.

    Parameters
    ----------
    without, with_change : ndarray, [runs, rows]
        Views of both data sets.

    Returns
    -------
    float
    """
    half = len(without) // 2
    centre = with_change[:half].mean(0) - without[:half].mean(0)
    pooled = (np.cov(without[:half].T) + np.cov(with_change[:half].T)) / 2
    weights = np.linalg.lstsq(np.atleast_2d(pooled), centre, rcond=None)[0]
    scores = [views[half:] @ weights for views in (without, with_change)]
    spread = np.sqrt((scores[0].var(ddof=1) + scores[1].var(ddof=1)) / 2)
    return float((scores[1].mean() - scores[0].mean()) / spread) if spread > 0 else 0.0


def standard_error(mu: float, runs: int) -> float:
    r"""Return :math:`\sqrt{2/n + \mu^2/(4n)}`, the standard error of :func:`discriminant_mu`.

    It is that of a difference of means over a pooled standard deviation.

    Parameters
    ----------
    mu : float
        Estimate.
    runs : int
        n, number of runs per data set.

    Returns
    -------
    float
    """
    return float(np.sqrt(2 / runs + mu**2 / (4 * runs)))
