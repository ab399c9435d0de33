"""A network that records what agents exchange, whatever an algorithm says of itself.

Everything that reaches another agent is multiplied with the mixing matrix or the adjacency, or is
gathered from neighbourhoods. Both matrices are arrays that keep what they are multiplied with; they
stay such arrays under elementwise operations, so that a rescaled mixing matrix records as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from private_consensus.core.networks import Network

PRODUCTS = {np.matmul, np.vecdot, np.matvec, np.vecmat}
CONTRACTIONS = {np.dot, np.einsum, np.inner, np.tensordot}


class RecordingMatrix(np.ndarray):
    """An [..., n, n] matrix that appends what it is multiplied with to ``exchanged``."""

    exchanged: list[np.ndarray] | None

    @classmethod
    def of(cls, matrix: np.ndarray, exchanged: list[np.ndarray]) -> RecordingMatrix:
        """A view of ``matrix``."""
        view = np.asarray(matrix).view(cls)
        view.exchanged = exchanged
        return view

    def __array_finalize__(self, source: np.ndarray | None) -> None:
        self.exchanged = getattr(source, "exchanged", None)

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: tuple | None = None, **options: Any
    ) -> Any:
        if ufunc in PRODUCTS:
            self._record(inputs)
        if out is not None:
            options["out"] = tuple(map(_plain, out))
        result = getattr(ufunc, method)(*map(_plain, inputs), **options)
        elementwise = ufunc not in PRODUCTS and method == "__call__"
        return self._like(result) if elementwise else result

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        if func in CONTRACTIONS:
            self._record(args)
        return func(*_plainly(args), **{k: _plainly(v) for k, v in kwargs.items()})

    def _like(self, result: Any) -> Any:
        square = isinstance(result, np.ndarray) and result.shape[-2:] == self.shape[-2:]
        known = square and self.exchanged is not None
        return RecordingMatrix.of(result, self.exchanged) if known else result

    def _record(self, operands: Iterable[Any]) -> None:
        if self.exchanged is None:
            return
        agents = self.shape[-1]
        for operand in operands:
            values = isinstance(operand, np.ndarray) and not isinstance(operand, RecordingMatrix)
            if values and operand.ndim >= 2 and operand.shape[-2] == agents:
                self.exchanged.append(operand.copy())


@dataclass(frozen=True)
class RecordingNetwork(Network):
    """A network that keeps in ``exchanged`` all values that its agents pass on."""

    exchanged: list[np.ndarray] = field(default_factory=list)

    @classmethod
    def on(cls, network: Network) -> RecordingNetwork:
        """The same graph and weights, listened to."""
        kept: list[np.ndarray] = []
        matrices = (RecordingMatrix.of(m, kept) for m in (network.adjacency, network.mixing))
        return cls(*matrices, kept)

    def mix(self, x: np.ndarray) -> np.ndarray:
        """Apply :meth:`Network.mix` and record the exchanged values."""
        return self.mixing @ x

    def gather(self, x: np.ndarray, neighbourhoods: np.ndarray) -> np.ndarray:
        """Apply :meth:`Network.gather` and record the exchanged values."""
        self.exchanged.append(np.array(x))
        return super().gather(x, neighbourhoods)


def _plain(value: Any) -> Any:
    return np.asarray(value) if isinstance(value, RecordingMatrix) else value


def _plainly(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(map(_plainly, value))
    return _plain(value)
