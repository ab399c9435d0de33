"""Base class of all problems: objectives, sensitivities and metrics.

Conventions
-----------
The objective ``f_i`` of an agent is the function that the agent minimises. It has the scale of the
paper: a sum over records (Showkatbakhsh et al.) or a mean (Xiao et al., Ding). Each problem states
its scale.

Sensitivities
-------------
The problem bounds by how much replacing one record changes the quantity that an algorithm noises:
the gradient (``record_change``), a minimiser (``minimiser_change``), or a mean of clipped losses
(``clipped_loss_change``). The bound follows from the weight of a record in the local objective. It
holds for all data sets of the problem's universe and for all points, not only for the present
data. It is infinite if no bound exists. Algorithms multiply it by their own scale factors and
derive no sensitivity from constants of their own.

A constructor refuses data outside the universe, because no bound above holds for them. The error
names agent, record, value and bound. Rounding errors are allowed
(:mod:`private_consensus.common.arrays`).

The problem also states which fraction of a bound is known to be attained. Lower bounds on epsilon
use these fractions (:mod:`private_consensus.privacy.brackets`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any, ClassVar, Self

import numpy as np

from private_consensus.common.errors import InvalidInput, require

NORMS = ("l1", "l2", "linf")

PUBLIC_RECORDS = "the number of an agent's records is public"

Metric = Callable[["Problem", np.ndarray], np.ndarray]


class Problem(ABC):
    r"""Objectives of all agents, for a batch of settings and runs.

    Attributes
    ----------
    n_agents, dim : int
        Number of agents and dimension of the decision variable.
    strong_convexity, smoothness : float or ndarray, broadcastable to (runs, agents, dim)
        :math:`\mu` and :math:`L` of the local objectives.
    lipschitz : float
        :math:`G`, a bound on :math:`\|\nabla f_i\|_2` over the domain.
    weight : float
        :math:`w`, with which the loss of one record enters ``f_i``.
    record_gradient_change : float
        Bound on :math:`w\|\nabla\ell(x;d) - \nabla\ell(x;d')\|_2`, replace-one; infinite
        if none exists.
    record_curvature : float
        Bound on the largest eigenvalue of the Hessian of :math:`w\ell`; infinite if none exists.
    least_convexity : float
        Strong convexity that ``f_i`` has on every data set. ``strong_convexity`` may hold for the
        present data only.
    from_data : mapping
        Quantities that are computed from private records, with a description of each. An algorithm
        that uses one to set its parameters declares it (:attr:`.Algorithm.uses`).
    oracles : tuple of str
        Unaccounted uses of private data that the problem implies for every algorithm.
    initial_point : ndarray, broadcastable to (settings, runs, agents, dim), optional
        Public starting point of iterative methods; 0 if it is None. No sensitivity depends on it.
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
    initial_point: np.ndarray | None = None

    @property
    def n_runs(self) -> int | None:
        """Number of runs that have data of their own; None if all runs share the data."""
        return None

    @classmethod
    def offers(cls, name: str) -> bool:
        """Return True if the problem supports an optional attribute or method.

        That is so for dataclass fields and for overridden methods that raise an error by default.
        """
        if name in getattr(cls, "__dataclass_fields__", {}):
            return True
        return getattr(cls, name, None) is not getattr(Problem, name, None)

    @abstractmethod
    def gradient(self, x: np.ndarray) -> np.ndarray:
        r"""Compute :math:`\nabla f_i(x_i)` for every agent; the result has the shape of ``x``."""

    def record_change(self, norm: str) -> float:
        """Bound the change of ``grad f_i`` at one point, in a norm, if one record is replaced.

        It is derived from the l2 bound unless the problem has a tighter one.
        """
        require(norm in NORMS, "norm", norm, f"one of {', '.join(NORMS)}")
        return float(self.record_gradient_change * (np.sqrt(self.dim) if norm == "l1" else 1.0))

    def assumed_record_change(self, gradient_bound: float) -> float:
        r"""Return :math:`2wc_1`, the assumed bound on the gradient change in l2.

        It would be ``record_change("l2")`` if :math:`\|\nabla\ell\|_2 \le c_1` held for every
        record. Nothing here guarantees this assumption on the data.
        """
        return 2.0 * self.weight * gradient_bound

    def minimiser_change(self, norm: str, curvature: Any) -> Any:
        r"""Bound the change of :math:`\arg\min_x f_i(x) + h(x)` if one record is replaced.

        The function h does not depend on the data and is strongly convex of modulus
        ``curvature``. Let :math:`\mu` be the ``least_convexity``. Strong monotonicity of the
        gradient gives :math:`\Delta_2/(\mu + \text{curvature})` in l2 and linf, and
        :math:`\sqrt d` times that in l1.

        Parameters
        ----------
        norm : {"l1", "l2", "linf"}
            Norm of the change.
        curvature : float or ndarray
            Modulus of strong convexity of h.

        Returns
        -------
        float or ndarray
            Bound, with the shape of ``curvature``.
        """
        require(norm in NORMS, "norm", norm, f"one of {', '.join(NORMS)}")
        moved = self.record_change("l2") / (self.least_convexity + curvature)
        return moved * (np.sqrt(self.dim) if norm == "l1" else 1.0)

    def assumed_gradient_share(self, gradient_bound: float) -> float | None:
        """Return the fraction of ``assumed_record_change`` that one pair of records attains.

        Replacing one specific record by another, both with gradients within the bound, must change
        the gradient by this fraction at EVERY point. A limit of pairs suffices. None: not known.
        """
        return None

    def assumed_minimiser_share(self, gradient_bound: float) -> float | None:
        """Return the fraction of the assumed minimiser change that one pair of records attains.

        The definition is that of :meth:`attained_minimiser_share` in l2, with
        ``assumed_record_change`` over the added curvature as the bound. None: not known.
        """
        return None

    def attained_gradient_share(self, norm: str) -> float | None:
        """Return the fraction of ``record_change(norm)`` that one pair of records attains.

        Replacing one specific record by another must change the gradient by this fraction at EVERY
        point and must not change the Hessian. In l1 the change is along a single coordinate. None:
        not known.
        """
        return None

    def attained_step_share(self, steps: np.ndarray) -> np.ndarray | None:
        r"""Return the fraction of ``steps * record_change("l2")`` that one pair of records attains.

        Replacing one specific record of an agent by another must change
        :math:`\mathrm{Proj}(x - s\nabla f_i(x))` by this fraction from EVERY point x of the domain,
        for each step length s. None: not known.
        """
        return None

    def attained_minimiser_share(self, norm: str, curvature: Any) -> Any | None:
        r"""Return the fraction of ``minimiser_change(norm, curvature)`` that a pair attains.

        Replacing one specific record of an agent by another must change
        :math:`\arg\min_x f_i(x) + h(x)` by this fraction, for EVERY h that is
        :math:`\frac{\text{curvature}}2\|x\|^2` plus a linear function. In l1 the change is along a
        single coordinate.

        Parameters
        ----------
        norm : {"l1", "l2", "linf"}
            Norm of the change.
        curvature : float or ndarray
            Modulus of strong convexity of h.

        Returns
        -------
        float or ndarray or None
            Fraction in [0, 1]; None if it is not known.
        """
        return None

    def reached_gradient_share(self, norm: str) -> float | None:
        """Return the fraction of ``record_change(norm)`` that a pair of records approaches far out.

        The limit is taken over points far from the origin in one direction. It is at least the
        fraction that is attained at every point.
        """
        return self.attained_gradient_share(norm)

    def clipped_loss_change(self, bound: Any) -> Any:
        """Bound the change of an agent's mean clipped loss if one record is replaced.

        The loss of each record is clipped at ``bound`` and has weight 1.
        """
        raise InvalidInput("problem.name", type(self).__name__, "a problem with clipped losses")

    def clipped_loss_of(self, x: np.ndarray, bound: Any, selected: np.ndarray) -> np.ndarray:
        """Compute ``clipped_loss(x, bound)`` for selected agents.

        Parameters
        ----------
        x : ndarray, shape (..., agents, dim)
            Local models.
        bound : float or ndarray
            Clipping bound of each record's loss.
        selected : ndarray of bool, shape (..., agents)
            Agents whose loss is required.

        Returns
        -------
        ndarray, shape (..., agents)
            Mean clipped losses; values of other agents are unspecified.
        """
        return self.clipped_loss(x, bound)

    def with_valid(self, **changes: Any) -> Self:
        """Return a copy with other values of some fields, without validating them.

        Use it for values that follow from validated ones, such as a subset of the records, and for
        copies in loops. ``dataclasses.replace`` validates again.

        Parameters
        ----------
        **changes
            Fields and their new values.

        Returns
        -------
        Problem
        """
        copied = object.__new__(type(self))
        for field in fields(self):
            has_factory = not field.init and field.default_factory is not MISSING
            value = field.default_factory() if has_factory else getattr(self, field.name)
            vars(copied)[field.name] = changes.get(field.name, value)
        return copied

    def starting_at(self, point: np.ndarray) -> Self:
        """Return a copy with a public starting point of iterative methods."""
        copied = self.with_valid()
        vars(copied)["initial_point"] = np.asarray(point)
        return copied

    def part(self, selection: slice) -> Problem:
        """Return the problem with a subset of each agent's records, at unchanged weight per record.

        Raises
        ------
        InvalidInput
            If the problem does not store individual records.
        """
        raise InvalidInput("problem.name", type(self).__name__, "a problem with records")

    def repeated(self, runs: int) -> Problem:
        """Return a problem in which each of ``runs`` runs has the data of the first run.

        A problem whose runs share the data returns itself.
        """
        return self

    def proximal(
        self,
        linear: np.ndarray,
        penalty: np.ndarray,
        centre: np.ndarray,
        start: np.ndarray,
        tolerance: np.ndarray | float | None = None,
    ) -> np.ndarray:
        r"""Compute :math:`\arg\min_x f_i(x) + a_i^T x + \frac{D_i}{2}\|x - c_i\|_2^2` per agent.

        Parameters
        ----------
        linear, centre : ndarray, broadcastable to (settings, runs, agents, dim)
            :math:`a` and :math:`c`.
        penalty : ndarray, broadcastable to (settings, runs, agents, 1)
            :math:`D > 0`.
        start : ndarray, shape (settings, runs, agents, dim)
            Initial point of an iterative solver.
        tolerance : float or ndarray, broadcastable to (settings, runs, agents), optional
            l2 norm of the gradient at the result, never exceeded. None: the solver's default.

        Returns
        -------
        ndarray, shape (settings, runs, agents, dim)
            Minimisers.
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
        r"""Compute the mean of clipped gradients of sampled records, for one run.

        The mean is :math:`\frac1{|S|}\sum_S \nabla\ell/\max(1,\|\nabla\ell\|/K)`, with l2 norms.

        Parameters
        ----------
        x : ndarray, shape (agents, dim)
            Local models.
        rows : ndarray of int, shape (agents, widest)
            Row indices of the data. The sample of an agent is the first ``sizes`` entries of its
            row; the others are padding.
        sizes : ndarray of int, shape (agents,)
            :math:`|S|`; an empty sample has gradient 0.
        clip : float
            K; infinite for no clipping.
        out : ndarray, shape (agents, dim), optional
            Array for the result.

        Returns
        -------
        ndarray, shape (agents, dim)
        """
        raise InvalidInput("problem.name", type(self).__name__, "a problem with sampled gradients")

    def project(self, x: np.ndarray) -> np.ndarray:
        """Compute the Euclidean projection to the domain, by default the whole space."""
        return x

    def measure(self, metric: str, x: np.ndarray) -> np.ndarray:
        """Compute a metric of an iterate.

        Parameters
        ----------
        metric : str
            Key of ``metrics``.
        x : ndarray, shape (..., agents, dim)
            Local models.

        Returns
        -------
        ndarray, shape (...)
        """
        return self.metrics[metric](self, x)


def consensus_error(problem: Problem | None, x: np.ndarray) -> np.ndarray:
    r"""Compute :math:`\frac1n\sum_i \|x_i - \bar x\|_2^2`.

    Parameters
    ----------
    problem : Problem or None
        Ignored; it is present because all metrics have this argument.
    x : ndarray, shape (..., agents, dim)
        Local models.

    Returns
    -------
    ndarray, shape (...)
    """
    return ((x - x.mean(-2, keepdims=True)) ** 2).sum(-1).mean(-1)
