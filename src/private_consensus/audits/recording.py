"""A network that records the values that agents exchange.

A value reaches another agent if it is multiplied with the mixing matrix or the adjacency matrix, or
gathered from neighbourhoods. Both matrices are arrays that record their operands. They stay such
arrays under elementwise operations, so that a rescaled mixing matrix records as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from private_consensus.core.networks import Network

PRODUCTS = {np.matmul, np.vecdot, np.matvec, np.vecmat}
CONTRACTIONS = {np.dot, np.einsum, np.inner, np.tensordot}


class Exchanges:
    """Values that pass through a network, in order; values of an earlier execution replace them.

    Parameters
    ----------
    recorded : list of ndarray, optional
        Values of the earlier execution.
    """

    def __init__(self, recorded: list[np.ndarray] | None = None):
        self.recorded = recorded
        self.values: list[np.ndarray] = []

    def pass_on(self, values: np.ndarray) -> np.ndarray:
        """Record values and return those that the receivers get."""
        index = len(self.values)
        self.values.append(np.array(values))
        if self.recorded is None or index >= len(self.recorded):
            return values
        recorded = self.recorded[index]
        return recorded if recorded.shape == np.shape(values) else values

    def rewind(self, count: int) -> None:
        """Forget all values after the first ``count``."""
        del self.values[count:]


class RecordingMatrix(np.ndarray):
    """A matrix [..., agents, agents] whose products pass through :class:`Exchanges`."""

    exchanges: Exchanges | None
    agents: int

    @classmethod
    def of(cls, matrix: np.ndarray, exchanges: Exchanges) -> RecordingMatrix:
        """Return a view of a mixing matrix that records the values it multiplies."""
        view = np.asarray(matrix).view(cls)
        view.exchanges, view.agents = exchanges, matrix.shape[-1]
        return view

    def __array_finalize__(self, source: np.ndarray | None) -> None:
        is_view = isinstance(source, RecordingMatrix)
        self.exchanges = source.exchanges if is_view else None
        self.agents = source.agents if is_view else 0

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: tuple | None = None, **options: Any
    ) -> Any:
        if ufunc in PRODUCTS and method == "__call__":
            inputs = tuple(map(self._received, inputs))
        if out is not None:
            options["out"] = tuple(map(_plain, out))
        result = getattr(ufunc, method)(*map(_plain, inputs), **options)
        elementwise = ufunc not in PRODUCTS and method == "__call__"
        square = isinstance(result, np.ndarray) and result.shape[-2:] == self.shape[-2:]
        if elementwise and square and self.exchanges is not None:
            return RecordingMatrix.of(result, self.exchanges)
        return result

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        if func in CONTRACTIONS:
            args = tuple(map(self._received, args))
        return func(*_plain(args), **{key: _plain(value) for key, value in kwargs.items()})

    def _received(self, operand: Any) -> Any:
        """Return the values that receivers get in place of the operand of a product."""
        is_matrix = isinstance(operand, RecordingMatrix) or not isinstance(operand, np.ndarray)
        if is_matrix or self.exchanges is None or self.agents not in operand.shape:
            return operand
        return self.exchanges.pass_on(operand)


class RecordingNetwork(Network):
    """A network whose exchanged values pass through :class:`Exchanges`."""

    exchanges: Exchanges

    @classmethod
    def on(cls, network: Network, exchanges: Exchanges | None = None) -> RecordingNetwork:
        """Return a recording network with the graph and weights of ``network``."""
        exchanges = exchanges or Exchanges()
        matrices = (
            RecordingMatrix.of(matrix, exchanges) for matrix in (network.adjacency, network.mixing)
        )
        recording = cls.unchecked(*matrices)
        recording.exchanges = exchanges
        return recording

    def mix_links(self, sent: np.ndarray) -> np.ndarray:
        is_sent = (np.asarray(self.adjacency) != 0) | np.eye(self.n_agents, dtype=bool)
        return super().mix_links(np.where(is_sent[..., None], sent, 0.0))

    def gather(self, x: np.ndarray, neighbourhoods: np.ndarray) -> np.ndarray:
        return super().gather(self.exchanges.pass_on(x), neighbourhoods)

    def taken(self, runs: int) -> list[np.ndarray]:
        """Return the values exchanged since the last call, [runs, agents, dim], and forget them.

        An algorithm may take one run after the other.
        """
        values = [v for v in self.exchanges.values if v.ndim > 1 and v.shape[-2] == self.n_agents]
        self.exchanges.rewind(0)
        of_single_runs = [v for v in values if v.ndim == 2]
        batches = [
            np.broadcast_to(v, (*v.shape[:-3], runs, *v.shape[-2:])).reshape(
                -1, runs, *v.shape[-2:]
            )[0]
            for v in values
            if v.ndim > 2
        ]
        if of_single_runs and len(of_single_runs) % runs == 0:
            shape = runs, -1, *of_single_runs[0].shape
            batches += list(np.stack(of_single_runs).reshape(shape).swapaxes(0, 1))
        return batches


def _plain(value: Any) -> Any:
    """Return matrices, also in tuples and lists, as plain arrays."""
    if isinstance(value, tuple | list):
        return type(value)(map(_plain, value))
    return np.asarray(value) if isinstance(value, RecordingMatrix) else value
