r"""Wang et al.: remarks on the definition of privacy, the noise and the convergence.

Computations on a network use the example of section 5: five agents, two parameters, step
:math:`2/(t+2)` and measurement noise of variance :math:`0.2^2/3`. Errors are exact moments.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from private_consensus.core.networks import laplacian

from .base import StatementResult, at_least, bound, conclude, equal, falls_as, grows_as
from .consensus_innovation import EXAMPLE, _coupling, _example_rows, _moments

DELTA, LARGEST_ROW = 0.2, 3.0
"""l1 change of one measurement, and the supremum of H_max in section 5."""
MEASUREMENT_VARIANCE = 0.2**2 / 3
INITIAL_ERROR = np.tile([1.0, -0.6], 5)
"""Initial estimates (0, 0.4) less the parameter (-1, 1), for each agent."""


def _correct_guesses(epsilon: float) -> float:
    """Return the largest probability to guess correctly which of two neighbours was used.

    One message with Laplace noise of scale 1 is observed; its mean differs by epsilon. Quadrature.
    """
    outputs = np.linspace(-30, 30 + epsilon, 60_001)
    densities = np.exp(-np.abs(outputs)) / 2, np.exp(-np.abs(outputs - epsilon)) / 2
    return float(np.trapezoid(np.maximum(*densities), outputs) / 2)


def remark_3_4() -> StatementResult:
    """Test that a smaller epsilon makes neighbouring data sets harder to distinguish."""
    epsilon = np.array([0.05, 0.1, 0.4, 0.8, 3.0, 10.0])
    guesses = np.array([_correct_guesses(budget) for budget in epsilon])
    return conclude(
        bound("probability of a correct guess", 1 / (1 + np.exp(-epsilon)), guesses),
        bound("the same over that of the next larger epsilon", 1.0, guesses[:-1] / guesses[1:]),
        description=f"One message with Laplace noise, prior 1/2, by quadrature: {guesses[1]:.3f} "
        f"at the recommended epsilon of 0.1, {guesses[2]:.3f} and {guesses[3]:.3f} at the 0.4 and "
        "0.8 of the simulation, which are the epsilon of one iteration.",
    )


def loss_of_a_run(rows: np.ndarray, changes: np.ndarray, epsilon: float) -> float:
    r"""Return the privacy loss by all messages of an agent whose measurements change.

    Given all earlier messages, the mean of message t changes by :math:`\alpha(t-1)H^T(y-y')(t-1)`.
    Its noise has the scale of (4) for these rows, and the largest log-ratio is the l1 change over
    the scale. ``rows``, [T, n], are measurement rows, not 0; ``changes``, [T], are those of the
    measurements; and epsilon is that of one iteration.
    """
    step_sizes = 2.0 / (np.arange(len(rows)) + 2)
    shifts = step_sizes[:, None] * rows * changes[:, None]
    noise_scale = step_sizes * DELTA * np.abs(rows).sum(1) / epsilon
    return float((np.abs(shifts).sum(1) / noise_scale).sum())


def remark_3_6() -> StatementResult:
    """Compare the total loss of data that all iterations use with that of data used once.

    One agent, 1 to 1,000 iterations, epsilon 0.8 each. Data that every update uses reach the sum of
    Lemma 3.5. One update of DP-CI uses a measurement.
    """
    lengths, epsilon = np.array([1, 10, 100, 1000]), 0.8
    offline, online = [], []
    for length in lengths:
        rows = np.repeat([[1.0, -0.5]], length, axis=0)
        offline.append(loss_of_a_run(rows, np.full(length, DELTA), epsilon))
        one_time = np.where(np.arange(length) == length // 2, DELTA, 0.0)
        online.append(loss_of_a_run(rows, one_time, epsilon))
    return conclude(
        equal("loss if all updates use the same data", lengths * epsilon, offline),
        equal("loss if each update uses data of its own", epsilon, online),
    )


def remark_4_1() -> StatementResult:
    """Reconstruct measurements from messages without noise, and test epsilon with noise.

    The example of section 5, 50 iterations. Without noise two messages and public matrices
    determine the measurement between them up to rounding, so that no finite epsilon holds.
    """
    rng = np.random.default_rng(2)
    x, errors = np.tile([0.0, 0.4], (5, 1)), []
    for t in range(50):
        rows, step = _example_rows(t), 2.0 / (t + 2)
        y = rows @ np.array([-1.0, 1.0]) + rng.uniform(-0.2, 0.2, 5)
        next_x = x - step * laplacian(EXAMPLE) @ x
        next_x += step * rows * (y - (rows * x).sum(1))[:, None]
        # An eavesdropper knows x(t), x(t+1) and the matrices.
        innovation = (next_x - x + step * laplacian(EXAMPLE) @ x) / step
        squares = (rows**2).sum(1)
        nonzero = squares > 1e-6
        residual = (innovation * rows).sum(1)[nonzero] / squares[nonzero]
        errors.append(np.abs(residual + (rows * x).sum(1)[nonzero] - y[nonzero]).max())
        x = next_x
    rows = np.array([_example_rows(t)[3] for t in range(50)])
    losses = [loss_of_a_run(rows, np.where(np.arange(50) == t, DELTA, 0.0), 0.8) for t in range(50)]
    return conclude(
        bound("error of a measurement computed from messages without noise", 1e-9, errors),
        bound("epsilon of a measurement with noise", 0.8, losses),
    )


def remark_4_3() -> StatementResult:
    """Compare the largest change of all estimates by one agent's data with Lemma 4.4.

    The example of section 5 at 40 times, random messages; each agent's measurement changes by
    delta. The bound alpha delta H_max is reached, and the estimates of other agents do not change.
    With several measurement rows Lemma 4.4 is not tight (errata E3.3).
    """
    rng, pairs = np.random.default_rng(3), []
    coupling = laplacian(EXAMPLE)
    for t in range(40):
        rows, step = _example_rows(t), 2.0 / (t + 2)
        sent, y = rng.normal(size=(5, 2)), rng.normal(size=5)
        estimates = [
            sent - step * coupling @ sent + step * rows * (data - (rows * sent).sum(1))[:, None]
            for data in (y, *(y + DELTA * np.eye(5)))
        ]
        changes = [np.abs(changed - estimates[0]).sum() for changed in estimates[1:]]
        pairs.append((step * DELTA * np.abs(rows).sum(1).max(), max(changes)))
    return conclude(equal("largest l1 change of X(t) by one agent", *np.array(pairs).T))


def _modes(step_sizes: np.ndarray, noise_scale: np.ndarray) -> np.ndarray:
    """Return E V(t) for three modes with eigenvalues 0.5, 3 and 5."""
    return _moments((0.5, 3.0, 5.0), (3.0, 1.0, 1.0), step_sizes, noise_scale, own_noise=0.05)


def remark_4_6() -> StatementResult:
    """Test privacy and convergence if the noise decreases as a power of t, or exponentially."""
    t, q, c = np.arange(1.0, 100_001), 0.4, 0.6
    pairs = []
    for gamma in (0.6, 0.8, 1.0):
        noise_scale = (t + 20) ** -gamma
        # (4) with equality: alpha(t-1) = epsilon sigma_t / (delta H_max).
        step_sizes = 0.8 * noise_scale / (DELTA * LARGEST_ROW)
        errors = _modes(np.minimum(step_sizes, 0.19), noise_scale)
        pairs.append((0.5 * errors[1000], errors[-1]))
    early_times = np.arange(1.0, 401)
    noise_scale, step_sizes = c * q**early_times, c * q**early_times  # alpha(t-1) = c q^t
    losses = step_sizes * DELTA * LARGEST_ROW / noise_scale
    geometric_errors = _modes(c * q ** (early_times + 1), noise_scale)
    return conclude(
        equal("epsilon of a message, sigma_t = alpha(t-1) = c q^t", DELTA * LARGEST_ROW, losses),
        bound("error at t = 100,000 against half of that at 1,000, sigma_t = t^-gamma",
              *np.array(pairs).T),
        at_least("error at t = 400 over that at t = 50, sigma_t = c q^t", 1.0,
                 geometric_errors[399] / geometric_errors[49]),
        description="gamma = 0.6, 0.8 and 1, epsilon 0.8; c = 0.6 and q = 0.4 as in the "
        "simulation. With steps proportional to such noise, each message has the same epsilon. "
        "With powers, the estimates converge; with exponential steps, they have a limiting "
        f"squared error of {geometric_errors[399]:.2g}. With steps 1/t and noise c q^t, (4) fails.",
    )  # fmt: skip


def example_error(
    epsilon: float, scales: Callable[[np.ndarray], np.ndarray], horizon: int = 400
) -> float:
    r"""Return the exact mean square error of an agent in the example of section 5.

    Errors follow :math:`e(t+1) = F(t)(e(t) + n(t)) + \alpha(t)H(t)\omega(t)`, so that their second
    moments are a linear recursion. Messages have noise from t = 1 on. ``scales`` maps the l1 norms
    of the five measurement rows to the noise scales of the agents, each over
    :math:`\alpha(t-1)\delta/\epsilon`; epsilon is infinite for no noise. The mean is that over the
    five agents of :math:`E\|x_i - \theta^*\|_2^2`.
    """
    moments = np.outer(INITIAL_ERROR, INITIAL_ERROR)
    for t in range(horizon):
        rows, step = _example_rows(t), 2.0 / (t + 2)
        if t > 0:
            norms = np.abs(_example_rows(t - 1)).sum(1)
            noise_scale = 2.0 / (t + 1) * DELTA / epsilon * scales(norms)
            moments = moments + np.diag(np.repeat(2 * noise_scale**2, 2))
        F = np.eye(10) - step * _coupling(rows)
        moments = F @ moments @ F.T
        for agent, row in enumerate(rows):
            block = slice(2 * agent, 2 * agent + 2)
            moments[block, block] += step**2 * MEASUREMENT_VARIANCE * np.outer(row, row)
    return float(np.trace(moments)) / 5


def remark_4_7() -> StatementResult:
    """Compare the error at equality in (4) with that of larger noise."""
    budgets = (0.1, 0.8, 3.2)
    rules = (
        lambda norms: np.full(5, norms.max()),
        lambda norms: np.full(5, 1.5 * norms.max()),
        lambda norms: norms,
    )
    equality, larger, separate = (
        np.array([example_error(epsilon, rule) for epsilon in budgets]) for rule in rules
    )
    factors = np.array([0.5, 1.0, 2.0, 4.0])
    losses = np.array(
        [loss_of_a_run(np.ones((1, 2)), np.array([DELTA]), 0.8) / factor for factor in factors]
    )
    ratio = separate / equality
    return conclude(
        equal("epsilon of a message times the factor of the noise", 0.8, losses * factors),
        at_least("error with noise 1.5 times as large", 1.0, larger / equality),
        description="The example of section 5 after 400 iterations, epsilon from 0.1 to 3.2, "
        "exact moments. Equality in (4) is the least noise of one scale for all agents. Noise "
        "for S(H_i(t-1)) of agent i in place of the largest is as private for its measurement, "
        f"and the error is {ratio.min():.2f} to {ratio.max():.2f} times as large; (4) excludes it.",
        compound=True,
    )


def remark_4_8() -> StatementResult:
    """Test the conditions of Assumption A4 for steps 1/t^gamma, from t = 1 and at t = 0.

    t up to 1,000,000: the steps vanish, sum to more than ln(t + 1), which has no bound, and do not
    grow. A4 starts at t = 0, where 1/t^gamma divides by zero (errata E3.3); 1/(t+1)^gamma satisfies
    it.
    """
    t = np.arange(1.0, 1_000_001)
    index = np.unique(np.geomspace(100, len(t), 20).astype(int)) - 1
    inequalities = []
    for gamma in (0.1, 0.5, 1.0):
        step_sizes = t**-gamma
        inequalities += [
            at_least(f"sum of the steps over ln(t + 1), gamma = {gamma:g}", 1.0,
                     np.cumsum(step_sizes)[index] / np.log(t[index] + 1)),
            falls_as(f"exponent of the step, gamma = {gamma:g}", t[index],
                     step_sizes[index], gamma),
            bound(f"alpha(t+1) over alpha(t), gamma = {gamma:g}", 1.0,
                  (step_sizes[1:] / step_sizes[:-1]).max()),
        ]  # fmt: skip
    return conclude(*inequalities, bound("alpha(0)", 1.0, np.inf), compound=True)


def remark_4_12() -> StatementResult:
    """Test that the error grows as 1/epsilon^2 and that its rate in t does not depend on epsilon.

    Steps t^-gamma, noise of (4), epsilon from 0.1 to 0.8, t from 10,000 to 100,000.
    """
    t = np.arange(1.0, 100_001) + 20
    index = np.unique(np.geomspace(10_000, len(t), 20).astype(int)) - 1
    epsilon, growth, slopes = np.array([0.1, 0.2, 0.4, 0.8]), [], []
    for gamma in (0.6, 0.8):
        step_sizes = np.minimum(t**-gamma, 0.19)
        errors = np.array([_modes(step_sizes, DELTA * LARGEST_ROW / budget * step_sizes)
                           for budget in epsilon])  # fmt: skip
        growth.append(
            grows_as(f"exponent of 1/epsilon at t = 100,000, gamma = {gamma:g}", 1 / epsilon,
                     errors[:, -1], 2.0)
        )  # fmt: skip
        slopes.append([-np.polyfit(np.log(t[index]), np.log(row[index]), 1)[0] for row in errors])
    slopes = np.array(slopes)
    return conclude(
        *growth,
        equal("exponent of t, other epsilon over epsilon = 0.8", 1.0,
              slopes[:, :-1] / slopes[:, -1:], 0.03),
    )  # fmt: skip


def remark_4_14() -> StatementResult:
    """Test that estimates converge with noise, and that noise increases the error at each time."""
    t, times = np.arange(1.0, 100_001) + 20, [100, 1000, 10_000, -1]
    ratios, pairs = [], []
    for gamma in (0.6, 1.0):
        step_sizes = np.minimum(t**-gamma, 0.19)
        noiseless = _modes(step_sizes, np.zeros(len(t)))
        for epsilon in (0.1, 0.8):
            noisy = _modes(step_sizes, DELTA * LARGEST_ROW / epsilon * step_sizes)
            pairs.append((0.5 * noisy[1000], noisy[-1]))
            ratios.append(noisy[times] / noiseless[times])
    last_ratios = np.array(ratios)[:, -1]
    return conclude(
        bound("error with noise at t = 100,000 against half of that at 1,000", *np.array(pairs).T),
        at_least("error with noise over error without", 1.0, ratios),
        description="Steps t^-0.6 and 1/t, epsilon 0.1 and 0.8, measurement noise of variance "
        "0.05. The error with noise converges to zero. At t = 100,000, it is "
        f"{last_ratios.min():.4g} to {last_ratios.max():.4g} times that without noise: noise "
        "changes the error by a factor, not its rate.",
    )


def sentence_1() -> StatementResult:
    """Compare epsilon of all iterations if all measurements change with that if one changes.

    Agent 4 of the example, steps 2/(t+2), 100 to 10,000 iterations. If all measurements change, the
    total epsilon grows without bound. Definition 3.1 changes one measurement, whose total stays at
    the epsilon of one message: a guarantee remains (errata E3.1).
    """
    lengths, epsilon = np.array([100, 1000, 10_000]), 0.8
    totals, single = [], []
    for length in lengths:
        rows = np.array([_example_rows(t)[3] for t in range(length)])
        totals.append(loss_of_a_run(rows, np.full(length, DELTA), epsilon))
        one_time = np.where(np.arange(length) == 7, DELTA, 0.0)
        single.append(loss_of_a_run(rows, one_time, epsilon))
    return conclude(
        equal("index of a stream over the number of iterations", epsilon, totals / lengths),
        at_least("index of one measurement after all iterations", np.inf, max(single)),
        compound=True,
    )
