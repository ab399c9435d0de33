"""What every problem offers to algorithms and to the driver.

Conventions
-----------
An agent's objective ``f_i`` is what the agent minimises, in the scale that the paper gives it (a
sum over records in 000, a mean in 001 and 004); the problem says which.

Sensitivities
-------------
The problem states by how much replacing one record can change what an algorithm noises, from the
weight that its own objective gives to a record: the gradient (``record_change``), a minimiser
(``minimiser_change``), a mean of clipped losses (``clipped_loss_change``). Each is a bound over all
data sets of the problem's universe and over all points, never one for the data at hand; where there
is none, it is infinite. Algorithms multiply these with what they do to the quantity and derive no
sensitivity from constants of their own.

A constructor refuses data outside the universe, with one error that names agent, record, value and
bound: no bound above holds for them. Rounding errors are allowed (:mod:`private_consensus.arrays`).

It also states which share of such a bound is known to be attained, of which lower bounds on epsilon
are made (:mod:`private_consensus.privacy.brackets`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any, ClassVar, Self

import numpy as np

from ..errors import InvalidInput, require

NORMS = ("l1", "l2", "linf")

PUBLIC_RECORDS = "the number of an agent's records is public"

Metric = Callable[["Problem", np.ndarray], np.ndarray]


class Problem(ABC):
    """Agents' objectives, for a batch of settings and runs.

    Attributes
    ----------
    n_agents, dim : int
    strong_convexity, smoothness : float or ndarray, broadcastable to (runs, agents, dim)
        :math:`\\mu` and :math:`L` of the local objectives.
    lipschitz : float
        :math:`G`, a bound on :math:`\\|\\nabla f_i\\|_2` over the domain.
    weight : float
        :math:`w`, with which the loss of one record enters ``f_i``.
    record_gradient_change : float
        Bound on :math:`w\\|\\nabla\\ell(x;d) - \\nabla\\ell(x;d')\\|_2`, replace-one; infinite
        where none exists.
    record_curvature : float
        Bound on the largest eigenvalue of the Hessian of :math:`w\\ell`; infinite without one.
    least_convexity : float
        Strong convexity that ``f_i`` has on every data set, unlike ``strong_convexity``, which may
        be that of the data at hand.
    from_data : mapping
        Quantities that are computed from private records, each in words, for algorithms that set
        themselves by one (:attr:`.Algorithm.uses`).
    oracles : tuple of str
        Uses of private data that come with the problem, whatever the algorithm.
    metrics : mapping
        Name to a function of ``(problem, x[..., agents, dim])`` with values ``[...]``.
    """

    metrics: ClassVar[Mapping[str, Metric]] = {}
    from_data: ClassVar[Mapping[str, str]] = {}
    oracles: ClassVar[tuple[str, ...]] = (PUBLIC_RECORDS,)

    n_agents: int
    dim: int
    weight: float
    record_gradient_change: float = np.inf
    record_curvature: float = np.inf
    least_convexity: float = 0.0

    @property
    def n_runs(self) -> int | None:
        """Number of runs that have data of their own; None if all runs share the data."""
        return None

    @classmethod
    def offers(cls, name: str) -> bool:
        """Return True if the problem has an optional attribute, or overrides a method that is
        refused by default.
        """
        if name in getattr(cls, "__dataclass_fields__", {}):
            return True
        return getattr(cls, name, None) is not getattr(Problem, name, None)

    @abstractmethod
    def gradient(self, x: np.ndarray) -> np.ndarray:
        r""":math:`\nabla f_i(x_i)` for every agent; shape of ``x``."""

    def record_change(self, norm: str) -> float:
        """Bound on the change of ``grad f_i`` at one point, in a norm, when a record is replaced.

        From the l2 bound, unless a problem knows a better one.
        """
        require(norm in NORMS, "norm", norm, f"one of {', '.join(NORMS)}")
        return float(self.record_gradient_change * (np.sqrt(self.dim) if norm == "l1" else 1.0))

    def assumed_record_change(self, gradient_bound: float) -> float:
        r"""Return :math:`2wc_1`, the value of ``record_change("l2")`` if :math:`\|\nabla\ell\|_2
        \le c_1` held for every record. Nothing here guarantees this assumption on the data.
        """
        return 2.0 * self.weight * gradient_bound

    def minimiser_change(self, norm: str, curvature: Any) -> Any:
        r"""Bound on the change, in a norm, of :math:`\arg\min_x f_i(x) + h(x)` when a record is
        replaced, for h that does not depend on the data.

        With h strongly convex of modulus ``curvature`` and :math:`\mu` the ``least_convexity``,
        strong monotonicity of the gradient gives :math:`\Delta_2/(\mu + \text{curvature})` in l2
        and linf, and :math:`\sqrt d` times that in l1.

        Parameters
        ----------
        norm : {"l1", "l2", "linf"}
        curvature : float or ndarray
        """
        require(norm in NORMS, "norm", norm, f"one of {', '.join(NORMS)}")
        moved = self.record_change("l2") / (self.least_convexity + curvature)
        return moved * (np.sqrt(self.dim) if norm == "l1" else 1.0)

    def assumed_gradient_share(self, gradient_bound: float) -> float | None:
        """Share of ``assumed_record_change`` by which replacing one certain record, whose gradient
        keeps to the bound, by another moves the gradient at EVERY point (a limit of pairs counts).
        None: not known."""
        return None

    def assumed_minimiser_share(self, gradient_bound: float) -> float | None:
        """The same of minimisers, as of :meth:`attained_minimiser_share` in l2, over the curvature
        that is added."""
        return None

    def attained_gradient_share(self, norm: str) -> float | None:
        """Share of ``record_change(norm)`` by which replacing one certain record by another moves
        the gradient at EVERY point, and nowhere the Hessian: in l1 along a single coordinate. None:
        not known."""
        return None

    def attained_step_share(self, steps: np.ndarray) -> np.ndarray | None:
        r"""Share of ``steps * record_change("l2")`` by which replacing one certain record of an
        agent by another moves :math:`\mathrm{Proj}(x - s\nabla f_i(x))` from EVERY point x of the
        domain, for each step length s. None: not known."""
        return None

    def attained_minimiser_share(self, norm: str, curvature: Any) -> Any | None:
        r"""Share of ``minimiser_change(norm, curvature)`` by which replacing one certain record of
        an agent by another moves :math:`\arg\min_x f_i(x) + h(x)` for EVERY h that is
        :math:`\frac{\text{curvature}}2\|x\|^2` and something linear: in l1 along a single
        coordinate. None: not known."""
        return None

    def reached_gradient_share(self, norm: str) -> float | None:
        """Share of ``record_change(norm)`` that replacing one certain record comes near to at
        points far out in one direction: at least what is attained everywhere."""
        return self.attained_gradient_share(norm)

    def clipped_loss_change(self, bound: Any) -> Any:
        """Bound on the change of an agent's mean loss, each record's loss clipped at ``bound`` and
        of weight 1, when a record is replaced."""
        raise InvalidInput("problem.name", type(self).__name__, "a problem with clipped losses")

    def clipped_loss_of(self, x: np.ndarray, bound: Any, asked: np.ndarray) -> np.ndarray:
        """``clipped_loss(x, bound)`` of agents that are ``asked`` for, shape [..., agents]; what
        is said of others does not count."""
        return self.clipped_loss(x, bound)

    def with_valid(self, **changes: Any) -> Self:
        """Return a copy with other values of some fields, without validating them.

        For values that follow from validated ones, as a part of the records does, and for copies in
        loops. ``dataclasses.replace`` validates again.

        Parameters
        ----------
        **changes
            Fields and their values.

        Returns
        -------
        Problem
        """
        copied = object.__new__(type(self))
        for field in fields(self):
            made = not field.init and field.default_factory is not MISSING
            value = field.default_factory() if made else getattr(self, field.name)
            vars(copied)[field.name] = changes.get(field.name, value)
        return copied

    def part(self, taken: slice) -> Problem:
        """The problem of those of each agent's records that are in some places, each with the
        weight that it has among all.

        Raises
        ------
        InvalidInput
            For a problem whose records are not kept one by one.
        """
        raise InvalidInput("problem.name", type(self).__name__, "a problem with records, for parts")

    def repeated(self, runs: int) -> Problem:
        """The data of the first run in each of ``runs``, for a problem that keeps those of each."""
        return self

    def proximal(
        self,
        linear: np.ndarray,
        penalty: np.ndarray,
        centre: np.ndarray,
        start: np.ndarray,
        tolerance: np.ndarray | float | None = None,
    ) -> np.ndarray:
        r""":math:`\arg\min_x f_i(x) + a_i^T x + \frac{D_i}{2}\|x - c_i\|_2^2` for every agent.

        Parameters
        ----------
        linear, centre : ndarray, broadcastable to (settings, runs, agents, dim)
            :math:`a` and :math:`c`.
        penalty : ndarray, broadcastable to (settings, runs, agents, 1)
            :math:`D > 0`.
        start : ndarray, shape (settings, runs, agents, dim)
            Where an iterative solver begins.
        tolerance : float or ndarray, broadcastable to (settings, runs, agents), optional
            Gradient norm at which to stop, kept strictly; none: as small as makes sense.
        """
        raise InvalidInput("problem.name", type(self).__name__, "a problem with a proximal solve")

    def clipped_gradient(
        self,
        x: np.ndarray,
        rows: np.ndarray,
        sizes: np.ndarray,
        clip: float = np.inf,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        r"""Mean of clipped gradients of sampled records,
        :math:`\frac1{|S|}\sum_S \nabla\ell/\max(1,\|\nabla\ell\|/K)`, of one run.

        Parameters
        ----------
        x : ndarray, shape (agents, dim)
        rows : ndarray of int, shape (agents, widest)
            Places of the data; an agent's sample is the first of its rows, the others fill up.
        sizes : ndarray of int, shape (agents,)
            :math:`|S|`; an empty sample has gradient 0.
        clip : float
            K; infinite for none.
        out : ndarray, shape (agents, dim), optional

        Returns
        -------
        ndarray, shape (agents, dim)
        """
        raise InvalidInput("problem.name", type(self).__name__, "a problem with sampled gradients")

    def project(self, x: np.ndarray) -> np.ndarray:
        """Euclidean projection to the domain; the whole space unless a problem says otherwise."""
        return x

    def measure(self, metric: str, x: np.ndarray) -> np.ndarray:
        """A metric of an iterate ``[..., agents, dim]``; shape ``[...]``."""
        return self.metrics[metric](self, x)


def consensus_error(problem: Problem | None, x: np.ndarray) -> np.ndarray:
    r""":math:`\frac1n\sum_i \|x_i - \bar x\|_2^2`."""
    return ((x - x.mean(-2, keepdims=True)) ** 2).sum(-1).mean(-1)
