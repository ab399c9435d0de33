"""Distribution of the records of a user's table to agents, and problems on these records.

The names of columns, the agents and the number of records of each agent are public. Bounds, label
set and categories are arguments. With ``public=True``, which declares the records public, label
set, categories and a bound on the l2 norm can be computed from the records.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from private_consensus.common.arrays import tolerance_of
from private_consensus.common.errors import InvalidInput, arguments, require

from .problems.logistic_regression import LogisticRegression
from .problems.mean_estimation import MeanEstimation
from .randomness import generator

SOURCES = "a polars or pandas DataFrame, a mapping of columns, a 2-D array, or the path of a CSV"
SCALARS = (str, int, float, np.generic)
"""Types of labels and categories."""
MAX_BOUND = 1e300
"""Largest absolute value of bounds, so that no difference of them overflows."""
MAX_AGENTS = 100_000
"""Largest number of agents."""
MAX_LISTED = 8
"""Largest number of agents or columns that a description lists."""


class UnscaledColumns(UserWarning):
    """Warning of numeric columns without bounds, whose values keep their scale."""


@dataclass(frozen=True, eq=False, repr=False)
class Shares:
    """Records of agents, encoded as numbers, and the bounds that hold for every record.

    Parameters
    ----------
    features : ndarray, shape (agents, largest size, columns)
        Encoded records; rows after an agent's last record are zeros.
    labels : ndarray, shape (agents, largest size), or None
        Labels -1 and +1; -1 in padding. None: records without labels.
    sizes : ndarray of int, shape (agents,)
        Number of records of each agent.
    test_features, test_labels : ndarray or None
        Records that no agent holds.
    agents : tuple
        Name or number of each agent, in the order of the arrays.
    columns : tuple of str
        Name of each encoded column; ``column=category`` for a category.
    bound : float
        l2 norm that no encoded record exceeds.
    ranges : tuple of (float, float) or None
        For each column the range that is scaled to [-1, 1]; None: not scaled.
    indicators : tuple of bool
        True for each column of a category, whose values are 0 and 1 before clipping.
    from_records : tuple of str
        Norm bound, label set and categories that were computed from the records, which were
        declared public. No guarantee covers these values.
    label_names : tuple, or None
        Labels of the table that became -1 and +1, in this order. None: records without labels.
    clip : float or None
        l2 norm to which longer records were scaled. None: no record was changed.
    """

    features: np.ndarray
    labels: np.ndarray | None
    sizes: np.ndarray
    test_features: np.ndarray
    test_labels: np.ndarray | None
    agents: tuple[Any, ...]
    columns: tuple[str, ...]
    bound: float
    ranges: tuple[tuple[float, float] | None, ...]
    indicators: tuple[bool, ...]
    from_records: tuple[str, ...] = ()
    label_names: tuple[Any, Any] | None = None
    clip: float | None = None

    def __post_init__(self):
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    def __repr__(self) -> str:
        """Return the public facts of the records: agents, sizes, columns and labels."""
        sizes = [f"{name}: {size}" for name, size in zip(self.agents, self.sizes, strict=True)]
        parts = [
            f"records per agent: {_listed(sizes)}",
            f"columns: {_listed(self.columns)}",
            "no labels"
            if self.label_names is None
            else "labels -1, +1: {!r}, {!r}".format(*self.label_names),
            f"test records: {len(self.test_features)}",
        ]
        return f"Shares({self.n_agents} agents; {'; '.join(parts)})"

    @property
    def n_agents(self) -> int:
        return len(self.sizes)

    def logistic_regression(
        self, ridge: float = 0.001, *, intercept: bool = True
    ) -> LogisticRegression:
        r"""Return a validated logistic regression on the records.

        Every record has the weight :math:`w = n/N`, with n agents and N records in total. The mean
        of the n objectives is the mean loss of all N records plus
        :math:`\frac\lambda2\|x\|_2^2`. The gradient of an agent therefore changes by at most 2w if
        one of its records is replaced, for any number of its records.

        Parameters
        ----------
        ridge : float, default 0.001
            Coefficient :math:`\lambda` of the regulariser, which includes the constant coordinate.
        intercept : bool, default True
            True to append a constant coordinate. The rows of the problem are then (row/bound, 1)
            divided by the square root of 2, so that their norm is at most 1.

        Returns
        -------
        LogisticRegression
            Agents with fewer records have padding rows, which influence no result.

        Raises
        ------
        InvalidInput
            If the records have no labels.
        """
        labels, test_labels = self.labels, self.test_labels
        if labels is None or test_labels is None:
            raise InvalidInput("label", None, "a column of labels for logistic regression")
        intercept = arguments.flag("intercept", intercept)
        uneven = bool((self.sizes < self.features.shape[1]).any())
        rows = self._rows(self.features, intercept)
        rows[np.arange(rows.shape[1]) >= self.sizes[:, None]] = 0.0
        test_rows = self._rows(self.test_features, intercept)
        weight = self.n_agents / float(self.sizes.sum())
        return LogisticRegression(
            rows, labels, test_rows, test_labels, weight, ridge,
            sizes=self.sizes if uneven else None,
        )  # fmt: skip

    def has_built(self, problem: object) -> bool:
        """Return True for a problem with the records of :meth:`logistic_regression`."""
        if not isinstance(problem, LogisticRegression) or self.labels is None:
            return False
        intercept = problem.dim > len(self.columns)
        rebuilt = self.logistic_regression(problem.ridge, intercept=intercept)
        return all(
            np.array_equal(getattr(rebuilt, name), getattr(problem, name))
            for name in ("features", "labels", "record_counts")
        )

    def _rows(self, features: np.ndarray, intercept: bool) -> np.ndarray:
        """Return the records divided by their bound, with a constant coordinate on request."""
        rows = features / self.bound
        if not intercept:
            return rows
        constant = np.ones((*rows.shape[:-1], 1))
        return np.concatenate([rows, constant], axis=-1) / math.sqrt(2.0)

    def mean_estimation(self) -> MeanEstimation:
        """Return the problem of estimating the mean of all records, in scaled columns.

        All records have equal weights. Numeric columns need ``bounds``, which are scaled to the box
        [-1, 1]. Columns of categories keep their values 0 and 1, which lie in the box. With
        ``clip``, the result is the mean of the clipped records.

        Returns
        -------
        MeanEstimation
            The mean is in scaled columns; :meth:`unscaled` converts it.

        Raises
        ------
        InvalidInput
            If a numeric column has no bounds, or N is no multiple of n.
        """
        unbounded = _unscaled(self.columns, self.ranges, self.indicators)
        require(not unbounded, "bounds", ", ".join(unbounded), "bounds for each of these columns")
        total, largest = int(self.sizes.sum()), int(self.sizes.max())
        expected = f"a multiple of the {self.n_agents} agents"
        require(total % self.n_agents == 0, "number of records", total, expected)
        records = total // self.n_agents
        means = self.features.sum(1)[None] / records
        return MeanEstimation(means, records, 1.0, size_ratio=largest / records)

    def unscaled(self, values: np.ndarray) -> np.ndarray:
        """Convert values of the encoded columns to the units of the table.

        Parameters
        ----------
        values : ndarray, shape (..., columns)
            Values in scaled columns, such as an estimated mean.

        Returns
        -------
        ndarray, shape (..., columns)
        """
        expected = f"an array of shape (..., {len(self.columns)})"
        array = arguments.array("values", values, expected)
        require(array.shape[-1:] == (len(self.columns),), "values", array.shape, expected)
        low, high = np.array([r or (-1.0, 1.0) for r in self.ranges]).T
        return (low + high) / 2 + array * (high - low) / 2

    def coefficients(self, model: np.ndarray) -> dict[str, float]:
        """Return the coefficients of a logistic regression in the units of the table.

        The log odds of the second label are the intercept plus the sum of coefficient times value.
        This holds for a record within the bounds whose encoded norm is at most ``clip``. For other
        records, use :meth:`prediction_rule`.

        Parameters
        ----------
        model : ndarray, shape (columns,) or (columns + 1,)
            Model of :meth:`logistic_regression`; with an intercept it has one more coordinate.

        Returns
        -------
        dict of str to float
            One entry per column, and ``intercept``.
        """
        encoded_slopes, constant = self._encoded_coefficients(model)
        slopes = {}
        for name, slope, limits in zip(self.columns, encoded_slopes, self.ranges, strict=True):
            low, high = limits or (-1.0, 1.0)
            slopes[name] = float(2.0 * slope / (high - low))
            constant -= slopes[name] * (low + high) / 2
        return {**slopes, "intercept": float(constant)}

    def prediction_rule(self, model: np.ndarray) -> dict[str, Any]:
        """Return the values that determine the prediction of any record of the table.

        First, values outside of the bounds are replaced by the nearest bound if ``clip`` is a
        number. Columns with bounds are then scaled to [-1, 1]; the column of a category is 1 or 0.
        An encoded record longer than ``clip`` is scaled to this norm. The log odds of the second
        label are the intercept plus the sum of encoded coefficient times encoded value.

        Parameters
        ----------
        model : ndarray, shape (columns,) or (columns + 1,)
            Model of :meth:`logistic_regression`; with an intercept it has one more coordinate.

        Returns
        -------
        dict
            ``labels`` (labels of the table by ``-1`` and ``+1``), ``bounds`` by column (None: not
            scaled), ``clip`` (None: no clipping), ``encoded_coefficients`` by column,
            ``encoded_intercept``, and ``from_records``.

        Raises
        ------
        InvalidInput
            If the records have no labels, or for a model of another shape.
        """
        if self.label_names is None:
            raise InvalidInput("shares", "records without labels", "records with labels")
        slopes, intercept = self._encoded_coefficients(model)
        return {
            "labels": dict(zip(("-1", "+1"), self.label_names, strict=True)),
            "bounds": dict(zip(self.columns, self.ranges, strict=True)),
            "clip": self.clip,
            "encoded_coefficients": dict(zip(self.columns, slopes.tolist(), strict=True)),
            "encoded_intercept": intercept,
            "from_records": list(self.from_records),
        }

    def _encoded_coefficients(self, model: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the coefficients of the encoded columns, and the intercept."""
        model = arguments.array("model", model, "a 1-D array of coefficients")
        count = len(self.columns)
        expected = f"the shape ({count},), or ({count + 1},) with an intercept"
        require(model.shape in ((count,), (count + 1,)), "model", model.shape, expected)
        constant = 0.0
        if len(model) > count:
            model, constant = model[:-1] / math.sqrt(2.0), float(model[-1]) / math.sqrt(2.0)
        return model / self.bound, constant


def split(
    data: Any,
    *,
    label: Any = None,
    agent: Any,
    fractions: Sequence[float] | None = None,
    labels: Sequence[Any] | None = (0, 1),
    features: Sequence[str] | None = None,
    categories: Mapping[str, Sequence[Any]] | None = None,
    bounds: Mapping[str, tuple[float, float]] | tuple[float, float] | None = None,
    bound: float | None = None,
    clip: float | None = None,
    test: float = 0.0,
    seed: int = 0,
    public: bool = False,
) -> Shares:
    """Distribute the records of a table to agents.

    Records outside of the bounds are refused. Only ``clip`` changes them. The method
    :meth:`Shares.logistic_regression` states the weights of the records.

    Parameters
    ----------
    data : DataFrame, mapping, ndarray or path
        Table of polars or pandas, mapping of columns, array of shape (records, columns) with
        columns ``x0``, ``x1``, ..., or path of a CSV file.
    label : str or array_like, optional
        Column of the labels, or one label per record. None: records without labels.
    agent : str, array_like or int
        Column that names the agent of each record, one agent per record, or a number of agents to
        which the records are assigned at random.
    fractions : sequence of float, optional
        Fraction of the records of each agent, if ``agent`` is a number; the sum is 1. None: the
        numbers of records differ by at most one.
    labels : pair, default (0, 1)
        The two labels, which become -1 and +1. None: computed from the records (``public=True``).
    features : sequence of str, optional
        Columns to use. None: all columns except label and agent.
    categories : mapping of str to sequence, optional
        Possible values of each categorical column. Each value becomes a column of 0 and 1.
    bounds : mapping of str to (low, high), or (low, high), optional
        Range of each numeric column, or of all of them, which is scaled to [-1, 1].
    bound : float, optional
        Bound on the l2 norm of every encoded record. None: the root of the number of columns, if
        each has ``bounds`` or ``categories``.
    clip : float, optional
        Bound on the l2 norm, to which longer records are scaled. Before that, values outside of
        ``bounds`` are replaced by the nearest bound. A warning names numeric columns without
        ``bounds``: they keep their scale, so that large values dominate a clipped record.
    test : float, default 0
        Fraction of each agent's records, rounded down, for the public test set.
    seed : int, default 0
        Seed of the random assignment and of the test set.
    public : bool, default False
        Declares the records public. Missing categories, the labels with ``labels=None``, and a
        missing bound on the norm are then computed from them. No guarantee covers these values.
        ``bounds`` are never computed: a column without them is not scaled.

    Returns
    -------
    Shares

    Raises
    ------
    InvalidInput
        For an argument that does not fit the table, and for the first record outside of the bounds,
        with its agent and row.
    """
    public = arguments.flag("public", public)
    seed = arguments.whole("seed", seed, 0)
    test_fraction = arguments.number("test", test, "a fraction in [0, 1)", lambda v: 0 <= v < 1)
    if categories is not None:
        arguments.instance("categories", categories, Mapping, "a mapping of columns to values")
    table = _table(data)
    require(table.height > 0, "data", "an empty table", "at least one record")
    table, label = _with_column(table, label, "label")
    names, owners = _owners(table, agent, fractions, seed)
    skipped = {label} | ({agent} if isinstance(agent, str) else set())
    selected = _feature_columns(table, features, skipped - {None})
    locate = _Locator(names, owners)
    from_records: list[str] = []
    signs = label_names = None
    if label is not None:
        signs, label_names = _signs(table[label], label, labels, locate, public, from_records)
    encoder = _Encoder(locate, categories or {}, bounds, clip is not None, public, from_records)
    _require_known("categories", categories, selected)
    _require_known("bounds", bounds if isinstance(bounds, Mapping) else None, selected)
    for name in selected:
        encoder.add(table[name])
    expected = "different names of columns and of column=category"
    require(len(set(encoder.columns)) == len(encoder.columns), "data", encoder.columns, expected)
    rows = np.stack(encoder.values, axis=-1)
    rows, norm_bound = _within_norm(rows, bound, clip, encoder)
    unscaled = _unscaled(encoder.columns, encoder.ranges, encoder.indicators)
    if clip is not None and unscaled and len(encoder.columns) > 1:
        message = (
            f"bounds missing for {_listed(unscaled)}: clip scales whole records, so that columns "
            "with large values dominate them; bounds scales each column to [-1, 1]"
        )
        warnings.warn(message, UnscaledColumns, stacklevel=2)
    return _arranged_by_agent(
        rows, signs, owners, names, test_fraction, seed,
        columns=tuple(encoder.columns), bound=norm_bound, ranges=tuple(encoder.ranges),
        from_records=tuple(from_records), label_names=label_names,
        clip=None if clip is None else norm_bound, indicators=tuple(encoder.indicators),
    )  # fmt: skip


def _unscaled(
    columns: Sequence[str], ranges: Sequence[Any], indicators: Sequence[bool]
) -> list[str]:
    """Return the numeric columns without bounds."""
    triples = zip(columns, ranges, indicators, strict=True)
    return [name for name, limits, indicator in triples if limits is None and not indicator]


def _listed(items: Sequence[str]) -> str:
    """Return the first items, and the number of further items."""
    listed = ", ".join(items[:MAX_LISTED])
    further = len(items) - MAX_LISTED
    return f"{listed} and {further} more" if further > 0 else listed


class _Locator:
    """Description of a record in error messages, by its agent and its row."""

    def __init__(self, names: Sequence[Any], owners: np.ndarray):
        self.names, self.owners = names, owners

    def __call__(self, row: int, quantity: str) -> str:
        return f"{quantity} of data[agent {self.names[self.owners[row]]}, row {row}]"

    def require(self, valid: np.ndarray, quantity: str, values: Any, expected: str) -> None:
        """Raise :class:`InvalidInput` for the first row that is not valid.

        Parameters
        ----------
        valid : ndarray of bool, shape (records,)
            True for each valid row.
        quantity : str
            Name of the column, or ``norm``, for the message.
        values, expected
        """
        if not valid.all():
            row = int(np.argmin(valid))
            value = values[row]
            value = value.item() if isinstance(value, np.generic) else value
            raise InvalidInput(self(row, quantity), value, expected)


def _table(data: Any) -> pl.DataFrame:
    """Return the data as a polars table."""
    if isinstance(data, pl.LazyFrame):
        return data.collect()
    if isinstance(data, pl.DataFrame):
        return data
    if isinstance(data, str | Path):
        try:
            titles = pl.read_csv(data, has_header=False, n_rows=1, infer_schema=False).row(0)
            require(len(set(titles)) == len(titles), "data", titles, "different names of columns")
            return pl.read_csv(data, infer_schema_length=None)
        except (OSError, pl.exceptions.PolarsError) as error:
            reason = str(error).splitlines()[0]
            raise InvalidInput("data", str(data), f"a CSV file ({reason})") from error
    if type(data).__module__.partition(".")[0] == "pandas":
        if not hasattr(data, "columns"):
            raise InvalidInput("data", type(data).__name__, SOURCES)
        data = {str(name): data[name] for name in data.columns}
    if isinstance(data, Mapping):
        return _frame({str(name): _series(name, values) for name, values in data.items()})
    arguments.unmasked("data", data)
    try:
        array = np.asarray(data)
    except ValueError as error:
        raise InvalidInput("data", type(data).__name__, SOURCES) from error
    fits = array.ndim == 2 and array.dtype.kind in "iufb"
    require(fits, "data", f"{type(data).__name__} of shape {array.shape}", SOURCES)
    return pl.DataFrame({f"x{index}": column for index, column in enumerate(array.T)})


def _frame(columns: dict[str, pl.Series]) -> pl.DataFrame:
    """Return a table of columns of equal length."""
    lengths = {name: len(column) for name, column in columns.items()}
    require(len(set(lengths.values())) <= 1, "data", lengths, "columns of equal length")
    return pl.DataFrame(columns)


def _in_order(values: Sequence[Any]) -> list[Any]:
    """Return the different values of a column without missing ones, in ascending order."""
    return sorted(set(values) - {None}, key=lambda value: (type(value).__name__, value))


def _series(name: Any, values: Any) -> pl.Series:
    """Return a column; texts and categories of pandas are converted to Python objects."""
    arguments.unmasked(str(name), values)
    try:
        array = values if isinstance(values, pl.Series) else np.asarray(values)
    except ValueError as error:
        raise InvalidInput(str(name), "rows of different lengths", "one axis") from error
    if isinstance(array, np.ndarray):
        require(array.ndim == 1, str(name), f"an array of shape {array.shape}", "one axis")
        if array.dtype.kind not in "iufb":
            array = array.tolist()
    try:
        return pl.Series(str(name), array)
    except (TypeError, pl.exceptions.PolarsError) as error:
        raise InvalidInput(str(name), "values of different types", "one type") from error


def _with_column(table: pl.DataFrame, values: Any, key: str) -> tuple[pl.DataFrame, str | None]:
    """Return the table and the name of a column, which is added if ``values`` are an array."""
    if values is None:
        return table, None
    if isinstance(values, str):
        arguments.choice(key, values, table.columns)
        return table, values
    column = _series(key, values)
    expected = f"one value for each of the {table.height} records"
    require(len(column) == table.height, key, f"{len(column)} values", expected)
    name = key
    while name in table.columns:
        name += "_"
    return table.with_columns(column.alias(name)), name


def _owners(
    table: pl.DataFrame, agent: Any, fractions: Sequence[float] | None, seed: int
) -> tuple[tuple[Any, ...], np.ndarray]:
    """Return the names of the agents, and the index of the agent of each record."""
    if arguments.is_real(agent):
        count = arguments.whole("agent", agent, 1, MAX_AGENTS)
        sizes = _sizes(table.height, count, fractions)
        order = generator(seed, "split", "agents").permutation(table.height)
        owners = np.empty(table.height, dtype=int)
        owners[order] = np.repeat(np.arange(count), sizes)
        return tuple(range(count)), owners
    require(fractions is None, "fractions", fractions, "None, unless agent is a number")
    require(agent is not None, "agent", agent, "a column, one agent per record, or a number")
    table, name = _with_column(table, agent, "agent")
    column = table[str(name)]
    missing = column.is_null() | (column.is_nan() if column.dtype.is_float() else False)
    require(not missing.any(), f"agent of row {missing.arg_max()}", None, "the record's agent")
    names = tuple(column.unique().sort().to_list())
    require(len(names) <= MAX_AGENTS, "agent", f"{len(names)} agents", f"at most {MAX_AGENTS}")
    index = {name: number for number, name in enumerate(names)}
    return names, np.array([index[value] for value in column.to_list()])


def _sizes(total: int, count: int, fractions: Sequence[float] | None) -> np.ndarray:
    """Return the number of records of each agent, at least 1."""
    if fractions is None:
        fractions_of_agents = np.full(count, 1.0 / count)
    else:
        expected = f"{count} numbers above 0 with sum 1, one per agent"
        fractions_of_agents = arguments.array("fractions", fractions, expected, lambda v: v > 0)
        fits = fractions_of_agents.shape == (count,) and abs(fractions_of_agents.sum() - 1.0) < 1e-9
        require(fits, "fractions", fractions, expected)
    ends = np.floor(np.cumsum(fractions_of_agents) * total + 0.5).astype(int)
    ends[-1] = total
    sizes = np.diff(ends, prepend=0)
    require(sizes.min() >= 1, "agent", count, f"at most {total} agents, with one record each")
    return sizes


def _feature_columns(
    table: pl.DataFrame, features: Sequence[str] | None, skipped: set
) -> list[str]:
    """Return the names of the feature columns, as requested or in the order of the table."""
    if features is None:
        selected = [name for name in table.columns if name not in skipped]
    else:
        selected = list(arguments.items("features", features, str, "names of columns"))
        for name in selected:
            columns = [column for column in table.columns if column not in skipped]
            arguments.choice("features", name, columns)
    require(bool(selected), "features", "no column", "a column other than label and agent")
    require(len(set(selected)) == len(selected), "features", features, "different columns")
    return selected


def _require_known(key: str, mapping: Mapping | None, selected: Sequence[str]) -> None:
    """Refuse keys of a mapping that are not feature columns."""
    for name in mapping or {}:
        arguments.choice(key, name, selected)


def _signs(
    column: pl.Series,
    name: str,
    labels: Any,
    locate: _Locator,
    public: bool,
    from_records: list[str],
) -> tuple[np.ndarray, tuple[Any, Any]]:
    """Return the labels as -1 and +1, and the two labels of the table."""
    values = column.to_list()
    if labels is None:
        require(public, "labels", None, "the two labels, or public=True to compute them")
        labels = _in_order(values)
        from_records.append(f"labels of {name}")
    pair = arguments.items("labels", labels, SCALARS, "two different labels")
    require(len(pair) == 2 and pair[0] != pair[1], "labels", labels, "two different labels")
    valid = np.array([value in pair for value in values])
    expected = f"{pair[0]!r} or {pair[1]!r}; other labels need labels=(first, second)"
    if public:
        expected += " or labels=None"
    locate.require(valid, name, values, expected)
    signs = np.array([1.0 if value == pair[1] else -1.0 for value in values])
    return signs, (pair[0], pair[1])


class _Encoder:
    """Encoder of table columns as numbers within bounds."""

    def __init__(
        self,
        locate: _Locator,
        categories: Mapping,
        bounds: Any,
        clips: bool,
        public: bool,
        from_records: list[str],
    ):
        self.locate, self.categories, self.bounds = locate, categories, bounds
        self.clips, self.public, self.from_records = clips, public, from_records
        self.values: list[np.ndarray] = []
        self.columns: list[str] = []
        self.ranges: list[tuple[float, float] | None] = []
        self.indicators: list[bool] = []
        self.squares = 0.0
        """Largest squared norm of a record; infinite if a column has no bounds."""

    def add(self, column: pl.Series) -> None:
        """Encode one column."""
        numeric = column.dtype.is_numeric() or column.dtype == pl.Boolean
        if column.name in self.categories or not numeric:
            self._add_categories(column)
        else:
            self._add_numbers(column)

    def _add_categories(self, column: pl.Series) -> None:
        name, values = column.name, column.to_list()
        allowed = self.categories.get(name)
        if allowed is None and not self.public:
            expected = f"numbers, or categories={{{name!r}: [...]}} with its possible values"
            if column.dtype == pl.String:
                is_number = column.cast(pl.Float64, strict=False).is_not_null().to_numpy()
                if is_number.any():
                    self.locate.require(is_number, name, values, expected)
            raise InvalidInput(f"data.{name}", f"a column of {column.dtype}", expected)
        limits = self.bounds.get(name) if isinstance(self.bounds, Mapping) else None
        require(limits is None, f"bounds.{name}", limits, "no bounds of a column of categories")
        if allowed is None:
            allowed = _in_order(values)
            self.from_records.append(f"categories of {name}")
        allowed = arguments.items(f"categories.{name}", allowed, SCALARS, "a list of values")
        expected = "a list of at least one value, each once"
        require(0 < len(set(allowed)) == len(allowed), f"categories.{name}", allowed, expected)
        listed = ", ".join(map(repr, allowed))
        fits = np.array([value in allowed for value in values])
        self.locate.require(fits, name, values, f"one of {listed}")
        for category in allowed:
            self.values.append(np.array([value == category for value in values], float))
            self.columns.append(f"{name}={category}")
            self.indicators.append(True)
            self.ranges.append(None)
        self.squares += 1.0

    def _add_numbers(self, column: pl.Series) -> None:
        name = column.name
        numbers = column.cast(pl.Float64).fill_null(math.nan).to_numpy()
        self.locate.require(np.isfinite(numbers), name, column, "a finite number")
        limits = self._limits(name)
        self.columns.append(name)
        self.ranges.append(limits)
        self.indicators.append(False)
        if limits is None:
            self.values.append(numbers)
            self.squares = math.inf
            return
        low, high = limits
        if self.clips:
            numbers = np.clip(numbers, low, high)
        expected = f"a number in [{low:g}, {high:g}], its bounds; clip=NORM replaces it"
        self.locate.require((numbers >= low) & (numbers <= high), name, numbers, expected)
        self.values.append(np.clip((2.0 * numbers - low - high) / (high - low), -1.0, 1.0))
        self.squares += 1.0

    def _limits(self, name: str) -> tuple[float, float] | None:
        """Return the bounds of a column; None if the caller stated none."""
        bounds = self.bounds
        limits = bounds.get(name) if isinstance(bounds, Mapping) else bounds
        if limits is None:
            return None
        key = f"bounds.{name}"
        expected = f"a pair (low, high) of numbers in [-{MAX_BOUND:g}, {MAX_BOUND:g}], low < high"
        pair = arguments.array(key, limits, expected, lambda v: np.abs(v) <= MAX_BOUND)
        require(pair.shape == (2,) and pair[0] < pair[1], key, limits, expected)
        return float(pair[0]), float(pair[1])


def _within_norm(
    rows: np.ndarray, bound: Any, clip: Any, encoder: _Encoder
) -> tuple[np.ndarray, float]:
    """Return the records, scaled on request, and a bound on their l2 norms."""
    require(bound is None or clip is None, "bound", bound, "either bound or clip")
    norms = np.linalg.norm(rows, axis=-1)
    if clip is not None:
        clip = arguments.number("clip", clip, "a finite number > 0", lambda v: 0 < v < math.inf)
        return rows * np.minimum(1.0, clip / np.maximum(norms, clip))[:, None], clip
    if bound is None:
        if math.isfinite(encoder.squares):
            return rows, math.sqrt(encoder.squares)
        names = ", ".join(_unscaled(encoder.columns, encoder.ranges, encoder.indicators))
        expected = f"bound or clip (an l2 norm), or bounds of {names}; public=True computes bound"
        require(encoder.public, "bound", None, expected)
        encoder.from_records.append("bound on the l2 norm")
        return rows, float(norms.max()) or 1.0
    bound = arguments.number("bound", bound, "a finite number > 0", lambda v: 0 < v < math.inf)
    expected = f"an l2 norm of at most {bound:g}, the bound; clip={bound:g} scales longer records"
    within = norms <= bound * (1 + tolerance_of(norms))
    encoder.locate.require(within, "norm", norms, expected)
    return rows, bound


def _arranged_by_agent(
    rows: np.ndarray, signs: np.ndarray | None, owners: np.ndarray, names: tuple,
    test_fraction: float, seed: int, **encoding: Any,
) -> Shares:  # fmt: skip
    """Arrange the records by agent, and hold out test records."""
    random = generator(seed, "split", "test")
    training, tests = [], []
    for number in range(len(names)):
        agent_rows = np.flatnonzero(owners == number)
        count = int(len(agent_rows) * test_fraction)
        order = random.permutation(len(agent_rows)) if count else np.arange(len(agent_rows))
        tests.append(np.sort(agent_rows[order[:count]]))
        training.append(np.sort(agent_rows[order[count:]]))
    sizes = np.array([len(agent_rows) for agent_rows in training])
    features = np.zeros((len(names), sizes.max(), rows.shape[-1]))
    labels = None if signs is None else np.full(features.shape[:-1], -1.0)
    for number, agent_rows in enumerate(training):
        features[number, : len(agent_rows)] = rows[agent_rows]
        if labels is not None and signs is not None:
            labels[number, : len(agent_rows)] = signs[agent_rows]
    test = np.concatenate(tests).astype(int)
    return Shares(
        features, labels, sizes, rows[test], None if signs is None else signs[test],
        tuple(names), **encoding,
    )  # fmt: skip
