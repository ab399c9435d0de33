"""Logistic loss, and solvers of the agents' problems: loss plus a linear and a quadratic term."""

from functools import cached_property

import numpy as np

from private_consensus.kernels import logistic as kernel
from private_consensus.kernels.compiling import share_out

from .smooth import ROUNDING, TOLERANCE, Unsolved, minimise

LARGEST_EXPONENT = 700.0

LARGE_TOTAL_WEIGHT, FAR_WEIGHT, FAR_CURVATURE, FAR_TOLERANCE = 10.0, 100.0, 0.1, 1e-3
"""Constants of :attr:`AgentRecords.far_models`. They are used if the total weight of the records
exceeds the first number. The other numbers define the point at which the Hessian is computed: the
minimiser of ``FAR_WEIGHT`` times the mean loss plus a quadratic of curvature ``FAR_CURVATURE``,
with a gradient norm of ``FAR_TOLERANCE * FAR_WEIGHT``."""


def sigmoid_neg(margins: np.ndarray) -> np.ndarray:
    """Compute the sigmoid :math:`1/(1+e^m)` of negative margins without overflow."""
    return 1.0 / (1.0 + np.exp(np.minimum(margins, LARGEST_EXPONENT)))


def losses_of(margins: np.ndarray) -> np.ndarray:
    r"""Compute the logistic losses :math:`\ln(1+e^{-m})` with absolute rounding errors of 1e-16."""
    # The memory layout decides in which order sums of the losses are computed.
    margins = np.ascontiguousarray(margins)
    return np.log(1.0 + np.exp(-np.abs(margins))) - np.minimum(margins, 0.0)


def per_agent(x: np.ndarray, matrices: np.ndarray) -> np.ndarray:
    """Multiply the rows of each agent by the matrix of the agent.

    The rows are [..., agents, k] and the matrices [agents, k, m]. Both may have an axis of runs
    before that of agents.
    """
    if matrices.ndim > 3:
        # [..., runs, agents, k]: all axes before the runs become rows of one product.
        batch_size = int(np.prod(x.shape[:-3]))
        rows = np.moveaxis(x.reshape(batch_size, *x.shape[-3:]), 0, -2)
        return np.moveaxis(rows @ matrices, -2, 0).reshape(*x.shape[:-1], matrices.shape[-1])
    rows = np.moveaxis(x, -2, 0).reshape(x.shape[-2], -1, x.shape[-1])
    product = rows @ matrices
    shape = (x.shape[-2], *x.shape[:-2], matrices.shape[-1])
    return np.moveaxis(product.reshape(shape), 0, -2)


class AgentRecords:
    """Records times their labels, with derived data of the compiled solver."""

    def __init__(self, rows: np.ndarray):
        self.rows = rows

    @cached_property
    def lanes(self) -> list[kernel.SignedRecords]:
        return [kernel.records(rows) for rows in self._of_each_agent(self.rows)]

    @cached_property
    def models(self) -> list[kernel.SpectralForm]:
        r"""Eigenvalues and eigenvectors of :math:`\frac14 Z_i^T Z_i`, a Hessian bound at w = 1."""
        values, vectors = np.linalg.eigh(np.swapaxes(self.rows, -1, -2) @ self.rows / 4)
        values = np.maximum(values, 0.0).reshape(-1, values.shape[-1])
        spectra = zip(values, self._of_each_agent(vectors), strict=True)
        return [kernel.model(*spectrum) for spectrum in spectra]

    @cached_property
    def far_models(self) -> list[kernel.SpectralForm]:
        r"""Eigenvalues and eigenvectors of :math:`Z_i^T S Z_i / \theta_i` far from the origin.

        S is diagonal with :math:`\sigma(1-\sigma)` of the records at the point, and
        :math:`\theta_i` is four times its mean.
        """
        agents = zip(self._of_each_agent(self.rows), self.lanes, self.models, strict=True)
        return [_far_model(*agent) for agent in agents]

    def _of_each_agent(self, array: np.ndarray) -> np.ndarray:
        return array.reshape(-1, *array.shape[-2:])


def _far_model(
    rows: np.ndarray, lanes: kernel.SignedRecords, bound: kernel.SpectralForm
) -> kernel.SpectralForm:
    """Compute an entry of :attr:`AgentRecords.far_models` for one agent's signed rows."""
    origin = np.zeros((1, rows.shape[1]))
    parameters = np.array([FAR_CURVATURE]), origin, origin, np.array([FAR_TOLERANCE * FAR_WEIGHT])
    (x,), _ = kernel.minimise(lanes, FAR_WEIGHT / len(rows), bound, *parameters)
    sigma = sigmoid_neg(rows @ x)
    curvature = sigma * (1.0 - sigma)
    scaled_rows = np.sqrt(curvature / (4.0 * curvature.mean()))[:, None] * rows
    values, vectors = np.linalg.eigh(scaled_rows.T @ scaled_rows)
    return kernel.model(np.maximum(values, 0.0), vectors)


def solve_in_lanes(loss, linear, penalty, centre, start, tolerance=None):
    """Solve the problems in compiled code, one per SIMD lane.

    The default tolerance is proportional to the weight of a record, as the effect of a record is.
    All settings of an agent, and all runs that share the records, are solved together. The
    parameters are those of :meth:`.Problem.proximal`.
    """
    batch_shape = start.shape[:-1]
    pull = np.broadcast_to(linear - penalty * centre, start.shape)
    curvature = np.broadcast_to(loss.ridge + np.asarray(penalty)[..., 0], batch_shape)
    # An approximate minimiser depends on the model of the Hessian; it always uses the bound.
    far = tolerance is None and loss.weight * loss.records > LARGE_TOTAL_WEIGHT
    if tolerance is None:
        magnitude = np.maximum(np.linalg.norm(pull, axis=-1), loss.weight * loss.records)
        tolerance = np.maximum(TOLERANCE * min(1.0, loss.weight), ROUNDING * magnitude)
    records, agents_shape = loss.agent_records, loss.labels.shape[:-1]
    curvature, tolerance = (
        np.broadcast_to(a, batch_shape).reshape(-1, *agents_shape) for a in (curvature, tolerance)
    )
    pull, starts = (a.reshape(-1, *agents_shape, loss.dim) for a in (pull, start))
    solutions = np.empty(starts.shape)
    lanes, models = records.lanes, records.far_models if far else records.models

    def solve(first, last):
        for agent in range(first, last):
            index = slice(None), *np.unravel_index(agent, agents_shape)
            batch = curvature[index], pull[index], starts[index], tolerance[index]
            solutions[index], is_solved = kernel.minimise(
                lanes[agent], loss.weight, models[agent], *batch
            )
            if not is_solved.all():
                reason = f"gradient norm above {tolerance[index].min():.3g}"
                steps = f"after {kernel.MAX_GRADIENTS} steps, agent {index[-1]}"
                raise Unsolved(f"{reason} {steps}")

    share_out(solve, len(lanes))
    return solutions.reshape(start.shape)


def solve_by_arrays(loss, linear, penalty, centre, start, tolerance=None):
    """Solve the problems as :func:`solve_in_lanes`, by array operations on all agents."""
    values, vectors = loss.hessian_bound
    inverse = 1.0 / (values + penalty)
    pull = linear - penalty * centre

    def descend(slope):
        return per_agent(inverse * per_agent(slope, vectors), np.swapaxes(vectors, -1, -2))

    def hessian(x, selected):
        penalties = np.broadcast_to(penalty, (*selected.shape, 1))[selected]
        return loss.hessian_of(x, selected) + penalties[..., None] * np.eye(loss.dim)

    return minimise(
        lambda x: loss.gradient(x) + penalty * x + pull,
        hessian,
        start,
        descend=descend,
        magnitude=np.linalg.norm(pull, axis=-1) if tolerance is None else 0.0,
        tolerance=TOLERANCE * min(1.0, loss.weight) if tolerance is None else tolerance,
    )
