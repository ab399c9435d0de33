"""A problem that solves nothing twice.

Whoever explains messages takes each step once without noise and once with the noise that was found.
The second minimum is then known: it is the first one again, or what was sent.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..algorithms.mafalda_sgd import records_of

NEAR = 1e-8
"""Of a gradient, relative to the parts that it is the sum of: what a solver may leave, twice."""


class Remembering:
    """Any problem, with ``proximal`` answered by what is known where that is a minimum.

    Parameters
    ----------
    problem : Problem
    sent : ndarray, shape (runs, iterations, agents, dim)
        Messages, of which some are minima, in their order.
    """

    def __init__(self, problem: Any, sent: np.ndarray):
        self._problem, self._sent, self._next = problem, sent, 0
        self._asked: tuple | None = None
        self._answer: np.ndarray | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._problem, name)

    def proximal(self, linear, penalty, centre, start, *options, **named):
        """As the problem's own."""
        asked = (linear, penalty, centre)
        if self._asked is not None and all(map(np.array_equal, asked, self._asked)):
            return self._answer
        found = self._sent_minimum(*asked)
        if found is None:
            found = self._problem.proximal(linear, penalty, centre, start, *options, **named)
        self._asked, self._answer = tuple(map(np.copy, asked)), found
        return found

    def _sent_minimum(self, linear, penalty, centre) -> np.ndarray | None:
        for place in range(self._next, min(self._next + 2, self._sent.shape[1])):
            x = self._sent[:, place]
            pull = linear + penalty * (x - centre)
            slope = self._problem.gradient(x)
            size = 1.0 + np.abs(pull).max()
            if np.abs(slope + pull).max() <= NEAR * size:
                self._next = place + 1
                return np.broadcast_to(x, np.shape(pull)).copy()
        return None


@records_of.register
def _(problem: Remembering, taken: slice) -> Any:
    """Of a part of the records nothing has been asked before."""
    return records_of(problem._problem, taken)
