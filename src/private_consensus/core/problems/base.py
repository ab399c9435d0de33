"""Base class of all problems: objectives, sensitivities and metrics.

Conventions
-----------
The objective ``f_i`` of an agent is the function that the agent minimises. It has the scale of the
paper: a sum over records (Showkatbakhsh et al.) or a mean (Xiao et al., Ding). Each problem states
its scale.

Sensitivities
-------------
Replacing one record changes the quantity to which an algorithm adds noise: the gradient
(``record_change``), a minimiser (``minimiser_change``), or a mean of clipped losses
(``clipped_loss_change``). The problem bounds this change. A bound holds for all data sets of the
problem's universe and for all points, not only for the present data. It is infinite if no bound
exists. Algorithms multiply it by their own scale factors.

A constructor refuses data outside the universe, because no bound above holds for them. It does not
copy large arrays; it sets the arrays of the caller read-only, so that they stay as checked. The
error names agent, record, value and bound. Rounding errors are allowed
(:mod:`private_consensus.common.arrays`).

The problem also states which fraction of a bound is known to be attained. Lower bounds on epsilon
use these fractions (:mod:`private_consensus.privacy.brackets`).

Interface
---------
A problem sets the attributes of :class:`Problem` and overrides ``gradient`` and at most nine more
methods. Methods that are derived from these are marked as final.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self, final

import numpy as np

from private_consensus.common.arrays import float_array, require_array, require_each, require_finite
from private_consensus.common.errors import InvalidInput, arguments, require

from ..parameters import validate

NORMS = ("l1", "l2", "linf")
ROUNDING = 1e-12
"""Relative difference below which two computed bounds count as equal."""

PUBLIC_RECORDS = "the number of an agent's records is public"

SIZES = {"n_runs": "run", "n_agents": "agent", "records": "record", "dim": "coordinate"}
"""Axis of the data whose length each attribute has."""

Metric = Callable[[Any, np.ndarray], np.ndarray]
"""Function of a problem, of the class that lists the metric, and of local models."""


class Problem(ABC):
    r"""Objectives of all agents, for a batch of settings and runs.

    Attributes
    ----------
    axes : mapping
        For each field with an array of finite floats, the names of its axes, such as ``"run agent
        record coordinate"``; ``[run]`` may be missing, and ``test`` may be empty. The lengths of
        the axes set the sizes below, unless the class defines them.
    n_agents, dim : int
        Number of agents and dimension of the decision variable.
    n_runs : int or None
        Number of runs with their own data; None if all runs share the data.
    records : int
        Largest number of records of an agent.
    strong_convexity, smoothness : float or ndarray, broadcastable to (runs, agents, dim)
        :math:`\mu` and :math:`L` of the local objectives.
    lipschitz : float
        :math:`G`, a bound on :math:`\|\nabla f_i\|_2` over the domain.
    weight : float
        :math:`w`, with which the loss of one record enters ``f_i``.
    record_gradient_change : float
        Bound on :math:`w\|\nabla\ell(x;d) - \nabla\ell(x;d')\|_2`, replace-one; infinite
        if none exists.
    record_coordinate_change : float
        Bound on the same difference in the maximum norm, if it is tighter than the bound in l2.
    record_curvature : float
        Bound on the largest eigenvalue of the Hessian of :math:`w\ell`; infinite if none exists, or
        if the loss of a record is not convex.
    record_hessian_rank : int
        Largest rank of that Hessian: 1 for a generalised linear model, and by default ``dim``.
    least_convexity : float, optional
        Strong convexity, at least 0, that ``f_i`` has on every data set. ``strong_convexity`` may
        hold for the present data only. None: ``f_i`` may be non-convex.
    approaches_bound : bool
        True if two records with nearly opposite rows change the gradient by
        ``record_gradient_change`` in the limit of points far from the origin in one direction.
    minimiser_slack : float or None
        Largest amount by which the terms of ``f_i`` without records reduce the effect of a pair of
        records on a minimiser. It is stated only if, for every :math:`c_1`, two records whose
        gradients have norm at most :math:`c_1` change the gradient by :math:`2wc_1` at every point;
        a limit of pairs suffices. None: not known.
    run_fields : tuple of str
        Fields whose first axis is the run and that do not broadcast over runs.
    from_data : mapping
        Quantities that are computed from private records, with a description of each. An algorithm
        that uses one to set its parameters declares it (:attr:`.Algorithm.needs`).
    oracles : tuple of str
        Unaccounted uses of private data that the problem implies for every algorithm.
    test_labels : ndarray
        Labels of the test records, for problems that have a test set.
    metrics : mapping
        Name to a function of ``(problem, x[..., agents, dim])`` with values ``[...]``.
    """

    axes: ClassVar[Mapping[str, str]] = {}
    metrics: ClassVar[Mapping[str, Metric]] = {}
    from_data: ClassVar[Mapping[str, str]] = {}
    oracles: ClassVar[tuple[str, ...]] = (PUBLIC_RECORDS,)
    run_fields: ClassVar[tuple[str, ...]] = ()

    n_runs = None
    record_gradient_change = np.inf
    record_coordinate_change = np.inf
    record_curvature = np.inf
    least_convexity = None
    approaches_bound = False
    minimiser_slack = None

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        if "__repr__" not in vars(cls):
            cls.__repr__ = Problem.__repr__  # a dataclass would define one that prints records

    def __repr__(self) -> str:
        """Return the sizes, and the fields that are numbers or texts, but no records."""
        names = dict.fromkeys(("n_agents", "dim", "records", *(f.name for f in fields(self))))
        values = {name: getattr(self, name, None) for name in names}
        stated = [f"{k}={v!r}" for k, v in values.items() if isinstance(v, int | float | str)]
        return f"{type(self).__name__}({', '.join(stated)})"

    if TYPE_CHECKING:  # A subclass has each of them as a field, a property or a size.
        __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

        @property
        def n_agents(self) -> int: ...
        @property
        def dim(self) -> int: ...
        @property
        def records(self) -> int: ...
        @property
        def weight(self) -> float: ...
        @property
        def test_labels(self) -> np.ndarray: ...
        @property
        def smoothness(self) -> float | np.ndarray: ...

    def __post_init__(self):
        """Check numbers and arrays, and set the sizes; a subclass calls this method first."""
        validate(self, "problem")
        for name, axes in self.axes.items():
            key, names = f"problem.{name}", axes.replace("[run]", "run").split()
            options = {"optional": "[" in axes, "empty": "test" in names}
            array = float_array(key, getattr(self, name), names, **options)
            require_finite(key, array, names)
            object.__setattr__(self, name, array)
        self._set_sizes()
        # A later change of an array would not be checked.
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    def _set_sizes(self) -> None:
        """Set the sizes from the axes of the arrays; refuse arrays that do not fit together."""
        lengths: dict[str, int] = {}
        for name, axes in self.axes.items():
            shape = getattr(self, name).shape
            names = axes.replace("[run]", "run").split()[-len(shape) :]
            for axis, length in zip(names, shape, strict=True):
                expected = lengths.setdefault(axis, length)
                expected = f"{expected} entries along the axis {axis}, as other arrays have"
                require(length == lengths[axis], f"problem.{name}", shape, expected)
        sizes = {name: lengths[axis] for name, axis in SIZES.items() if axis in lengths}
        vars(self).update(sizes)

    @abstractmethod
    def gradient(self, x: np.ndarray) -> np.ndarray:
        r"""Compute the gradient :math:`\nabla f_i(x_i)` of each agent, in the shape of ``x``."""

    def project(self, x: np.ndarray) -> np.ndarray:
        """Compute the Euclidean projection to the domain, by default the whole space."""
        return x

    def measure(self, metric: str, x: np.ndarray) -> np.ndarray:
        """Compute a metric, a key of ``metrics``, [...], of local models x, [..., agents, dim]."""
        return self.metrics[metric](self, x)

    def proximal(
        self,
        linear: np.ndarray,
        penalty: np.ndarray,
        centre: np.ndarray,
        start: np.ndarray,
        tolerance: np.ndarray | float | None = None,
    ) -> np.ndarray:
        r"""Minimise :math:`f_i(x) + a_i^T x + \frac{D_i}{2}\|x - c_i\|_2^2` for each agent.

        Parameters
        ----------
        linear, centre : ndarray, broadcastable to (settings, runs, agents, dim)
            Linear coefficients :math:`a`, and centres :math:`c` of the quadratic penalty.
        penalty : ndarray, broadcastable to (settings, runs, agents, 1)
            Coefficients :math:`D > 0` of the quadratic penalty.
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

    def clipped_loss(
        self, x: np.ndarray, bound: Any, selected: np.ndarray | None = None
    ) -> np.ndarray:
        """Compute an agent's mean of record losses that are clipped at ``bound``, with weight 1.

        Parameters
        ----------
        x : ndarray, shape (..., agents, dim)
            Local models.
        bound : float or ndarray, broadcastable to (..., agents, records)
            Clipping bound of each record's loss.
        selected : ndarray of bool, shape (..., agents), optional
            Agents whose loss is required; by default all agents.

        Returns
        -------
        ndarray, shape (..., agents)
            Mean clipped losses; values of other agents are unspecified.
        """
        raise InvalidInput("problem.name", type(self).__name__, "a problem with clipped losses")

    def part(self, selection: slice) -> Problem:
        """Return the problem with a subset of each agent's records, at unchanged weight per record.

        A problem that does not store individual records raises ``InvalidInput``.
        """
        raise InvalidInput("problem.name", type(self).__name__, "a problem with records")

    def attained_gradient_share(self, norm: str) -> float | None:
        """Return the fraction of ``record_change(norm)`` that one pair of records attains.

        Replacing one specific record by another must change the gradient by this fraction at EVERY
        point and must not change the Hessian. In l1 the change is along a single coordinate. None:
        not known.
        """
        return None

    def attained_minimiser_share(self, norm: str, curvature: Any) -> Any | None:
        r"""Return the fraction of ``minimiser_change(norm, curvature)`` that a pair attains.

        Replacing one specific record of an agent by another must change
        :math:`\arg\min_x f_i(x) + h(x)` by this fraction, for EVERY h that is
        :math:`\frac{\text{curvature}}2\|x\|^2` plus a linear function. In l1 the change is along a
        single coordinate. None: not known.
        """
        return None

    @property
    def record_hessian_rank(self) -> int:
        return self.dim

    @property
    def published_change(self) -> float:
        r"""Published sensitivity :math:`\mathcal B_\infty = 1/b_i` of Xiao et al.

        It is the weight of one record. It bounds the change of a gradient per coordinate only for
        labels in {0, 1} and features in [0, 1] (errata E1.3); ``record_change("linf")`` is a bound
        in general.
        """
        return getattr(self, "weight", None) or self.record_change("linf")

    @final
    def record_change(self, norm: str) -> float:
        """Return a bound on the change of ``grad f_i`` at one point if one record is replaced.

        The bounds in l2 and in the maximum norm imply a bound in l1.
        """
        arguments.choice("norm", norm, NORMS)
        l2 = self.record_gradient_change
        is_bound = isinstance(l2, int | float) and l2 >= 0
        require(is_bound, "problem.record_gradient_change", l2, "a number >= 0")
        linf = min(l2, self.record_coordinate_change)
        l1 = np.sqrt(self.dim) * l2
        # Of two bounds that are equal up to rounding, the one without a root is not below it.
        if self.dim * linf <= l1 * (1.0 + ROUNDING):
            l1 = self.dim * linf
        return float({"l1": l1, "l2": l2, "linf": linf}[norm])

    @final
    def minimiser_change(self, norm: str, curvature: Any) -> Any:
        r"""Return a bound on the change of :math:`\arg\min_x f_i(x) + h(x)` by one record.

        The function h does not depend on the data and is strongly convex of modulus
        ``curvature``. Let :math:`\mu` be the ``least_convexity``. Strong monotonicity of the
        gradient gives :math:`\Delta_2/(\mu + \text{curvature})` in l2 and linf, and
        :math:`\sqrt d` times that in l1. The bound has the shape of ``curvature``.
        """
        arguments.choice("norm", norm, NORMS)
        l2_change = self.record_change("l2") / (self.required_convexity() + curvature)
        return l2_change * (np.sqrt(self.dim) if norm == "l1" else 1.0)

    def required_convexity(self) -> float:
        """Return ``least_convexity``; refuse a problem that does not declare it."""
        value, expected = self.least_convexity, "a finite number >= 0"
        return arguments.number(
            "problem.least_convexity", value, expected, lambda convexity: 0 <= convexity < np.inf
        )

    @property
    def reached_l1_share(self) -> float | None:
        r"""Fraction of ``record_change("l1")`` that a pair attains far from the origin, if known.

        It is :math:`\sqrt{(d-1)/d}` if the problem ``approaches_bound``: both rows have a small
        entry of equal sign in one coordinate, so that the point can be far out for any noise on
        the other coordinates.
        """
        return float(np.sqrt(1.0 - 1.0 / self.dim)) if self.approaches_bound else None

    @final
    def reached_gradient_share(self, norm: str) -> float | None:
        r"""Return the fraction of ``record_change(norm)`` that a pair attains far from the origin.

        It is the limit over points far from the origin in one direction, and at least the fraction
        that is attained at every point.
        """
        if norm == "l1" and self.reached_l1_share is not None:
            return self.reached_l1_share
        return 1.0 if self.approaches_bound else self.attained_gradient_share(norm)

    @final
    def clipped_loss_change(self, bound: Any) -> Any:
        """Return the effect of a record on a mean of losses in [0, bound]."""
        return bound / self.records

    @final
    def repeated(self, runs: int) -> Self:
        """Return a problem in which each of ``runs`` runs has the data of the first run.

        Only ``run_fields`` are repeated; other data broadcast over the runs.
        """
        if not self.run_fields:
            return self
        first = {name: getattr(self, name)[:1] for name in self.run_fields}
        return self.with_valid(
            **{name: np.broadcast_to(a, (runs, *a.shape[1:])) for name, a in first.items()}
        )

    @final
    def with_valid(self, **changes: Any) -> Self:
        """Return a copy with other values of some fields, without validating them.

        Use it for values that follow from validated ones, such as a subset of the records, and for
        copies in loops. ``dataclasses.replace`` validates again.
        """
        copied = object.__new__(type(self))
        for field in fields(self):
            vars(copied)[field.name] = changes.get(field.name, getattr(self, field.name))
        copied._set_sizes()
        return copied

    @classmethod
    @final
    def offers(cls, name: str) -> bool:
        """Return True if the problem supports an optional attribute or method.

        That is so for dataclass fields, for lengths of axes, and for overridden methods that raise
        an error by default.
        """
        is_size = name in SIZES and SIZES[name] in " ".join(cls.axes.values())
        if is_size or name in getattr(cls, "__dataclass_fields__", {}):
            return True
        return getattr(cls, name, None) is not getattr(Problem, name, None)


def consensus_error(problem: Problem | None, x: np.ndarray) -> np.ndarray:
    r"""Compute the consensus error :math:`\frac1n\sum_i \|x_i - \bar x\|_2^2`.

    The problem is ignored; all metrics have this argument.
    """
    return ((x - x.mean(-2, keepdims=True)) ** 2).sum(-1).mean(-1)


def require_rows(
    key: str, rows: np.ndarray, axes: Sequence[str], count: int, *, empty: bool = False
) -> None:
    """Refuse indices that no row has, and a row that occurs twice along the first axis."""
    require_array(key, rows, axes, kinds="iu", empty=empty)
    exists = (rows >= 0) & (rows < count)
    require_each(exists, key, rows, axes, f"a row from 0 to {count - 1}")
    ordered = np.sort(rows.reshape(len(rows), math.prod(rows.shape[1:])), axis=1)
    is_new, expected = ordered[:, 1:] != ordered[:, :-1], "different rows: one agent has a record"
    require_each(is_new, key, ordered[:, 1:], (axes[0], "index in ascending order"), expected)
