"""Distribution of the records of a user's table to agents, and problems on these records.

The names of columns, the agents and the number of records of each agent are public. Bounds, labels
and categories are arguments, so that no public number depends on a record.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from private_consensus.common.arrays import tolerance_of
from private_consensus.common.errors import InvalidInput, arguments, require

from .problems.logistic_regression import LogisticRegression
from .problems.mean_estimation import MeanEstimation
from .randomness import generator

SOURCES = "a table that polars.DataFrame accepts, or the path of a CSV file"
SCALARS = (str, int, float, np.generic)
"""Types of labels and categories."""
Encoded = tuple[str, tuple[float, float] | None, np.ndarray]
"""Name of an encoded column, the range that is scaled to [-1, 1], and the values."""
UNIT = (-1.0, 1.0)
"""Range of a column whose values are not scaled."""


@dataclass(frozen=True, eq=False)
class Shares:
    """Records of agents, encoded as numbers, and the bounds that hold for every record.

    Parameters
    ----------
    features : ndarray, shape (agents, largest size, columns)
        Encoded records; rows after an agent's last record are zeros.
    labels : ndarray, shape (agents, largest size)
        Labels -1 and +1; -1 in padding and for records without labels.
    sizes : ndarray of int, shape (agents,)
        Number of records of each agent.
    test_features, test_labels : ndarray
        Records that no agent holds, in the order of the table.
    agents : tuple
        Name or number of each agent, in the order of the arrays.
    ranges : dict of str to (float, float) or None
        For each encoded column the range that is scaled to [-1, 1]; None: not scaled. The column of
        a category is named ``column=category``; its range (-1, 1) leaves 0 and 1 unchanged.
    bound : float
        l2 norm that no encoded record exceeds.
    clip : float or None
        l2 norm to which longer records were scaled. None: no record was changed.
    label_names : tuple or None
        Labels of the table that became -1 and +1, in this order. None: records without labels.
    """

    features: np.ndarray = field(repr=False)
    labels: np.ndarray = field(repr=False)
    sizes: np.ndarray
    test_features: np.ndarray = field(repr=False)
    test_labels: np.ndarray = field(repr=False)
    agents: tuple[Any, ...]
    ranges: dict[str, tuple[float, float] | None]
    bound: float
    clip: float | None
    label_names: tuple[Any, ...] | None

    @property
    def n_agents(self) -> int:
        return len(self.sizes)

    def logistic_regression(self, ridge: float = 0.001) -> LogisticRegression:
        r"""Return a validated logistic regression on the records.

        Every record has the weight :math:`w = n/N`, with n agents and N records in total. The mean
        of the n objectives is the mean loss of all N records plus
        :math:`\frac\lambda2\|x\|_2^2`. A row of the problem is (record/bound, 1), divided by the
        square root of 2, so that its norm is at most 1. The gradient of an agent therefore changes
        by at most 2w if one of its records is replaced, for any number of its records.

        Parameters
        ----------
        ridge : float, default 0.001
            Coefficient :math:`\lambda` of the regulariser, which includes the constant coordinate.

        Returns
        -------
        LogisticRegression
            Agents with fewer records have padding rows, which influence no result.

        Raises
        ------
        InvalidInput
            If the records have no labels.
        """
        require(self.label_names is not None, "label", None, "labels for logistic regression")
        arrays, end = (self.features, self.test_features), len(self.ranges)
        rows, test_rows = (np.insert(a / self.bound, end, 1.0, -1) / math.sqrt(2.0) for a in arrays)
        rows[np.arange(rows.shape[1]) >= self.sizes[:, None]] = 0.0
        weight = self.n_agents / float(self.sizes.sum())
        return LogisticRegression(
            rows, self.labels, test_rows, self.test_labels, weight, ridge, sizes=self.sizes
        )

    def mean_estimation(self) -> MeanEstimation:
        """Return the problem of estimating the mean of all records, in scaled columns.

        All records have equal weights. With ``clip``, the result is the mean of the clipped
        records. :meth:`unscaled` converts the mean to the units of the table.

        Raises
        ------
        InvalidInput
            If a numeric column has no bounds, or N is no multiple of n.
        """
        unscaled = [name for name, limits in self.ranges.items() if limits is None]
        require(not unscaled, "bounds", None, _bounds_of(unscaled))
        total, largest = int(self.sizes.sum()), int(self.sizes.max())
        records, remainder = divmod(total, self.n_agents)
        require(remainder == 0, "number of records", total, f"a multiple of {self.n_agents}")
        means = self.features.sum(1)[None] / records
        return MeanEstimation(means, records, 1.0, size_ratio=largest / records)

    def unscaled(self, values: np.ndarray) -> np.ndarray:
        """Convert values of the encoded columns, (..., columns), to the units of the table."""
        low, high = np.transpose([limits or UNIT for limits in self.ranges.values()])
        return (low + high) / 2 + values * (high - low) / 2

    def prediction_rule(self, model: np.ndarray) -> dict[str, Any]:
        """Return the values that determine the prediction of any record of the table.

        First, values outside of the bounds are replaced by the nearest bound if ``clip`` is a
        number. Columns with bounds are then scaled to [-1, 1]; the column of a category is 1 or 0.
        An encoded record longer than ``clip`` is scaled to this norm. The log odds of the second
        label are the intercept plus the sum of encoded coefficient times encoded value.

        Parameters
        ----------
        model : ndarray, shape (columns + 1,)
            Model of :meth:`logistic_regression`; the last coordinate is that of the constant.

        Returns
        -------
        dict
            ``labels`` (labels of the table by ``-1`` and ``+1``), ``bounds`` by column (None: not
            scaled), ``clip`` (None: no clipping), ``encoded_coefficients`` by column and
            ``encoded_intercept``.

        Raises
        ------
        InvalidInput
            For a model of another shape.
        """
        expected = f"an array of {len(self.ranges) + 1} coefficients"
        model = arguments.array("model", model, expected) / math.sqrt(2.0)
        require(model.shape == (len(self.ranges) + 1,), "model", model.shape, expected)
        encoded, intercept = model[:-1] / self.bound, float(model[-1])
        return {
            "labels": dict(zip(("-1", "+1"), self.label_names or (), strict=False)),
            "bounds": self.ranges,
            "clip": self.clip,
            "encoded_coefficients": dict(zip(self.ranges, encoded.tolist(), strict=True)),
            "encoded_intercept": intercept,
        }


@arguments.known_keywords
def split(
    data: Any,
    *,
    agent: str | int,
    label: str | None = None,
    labels: Sequence[Any] = (0, 1),
    features: Sequence[str] | None = None,
    categories: Mapping[str, Sequence[Any]] | None = None,
    bounds: Mapping[str, tuple[float, float]] | tuple[float, float] | None = None,
    bound: float | None = None,
    clip: float | None = None,
    test: float = 0.0,
    seed: int = 0,
) -> Shares:
    """Distribute the records of a table to agents.

    Records outside of the bounds are refused. Only ``clip`` changes them. The method
    :meth:`Shares.logistic_regression` states the weights of the records.

    Parameters
    ----------
    data : DataFrame, mapping, ndarray or path
        Table that ``polars.DataFrame`` accepts, such as a mapping of columns or a DataFrame of
        pandas, or path of a CSV file.
    agent : str or int
        Column that names the agent of each record, or a number of agents to which the records are
        assigned at random. Numbers of records then differ by at most one.
    label : str, optional
        Column of the labels. None: records without labels.
    labels : pair, default (0, 1)
        The two labels, which become -1 and +1.
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
        ``bounds`` are replaced by the nearest bound. Numeric columns without ``bounds`` keep
        their scale, so that large values dominate a clipped record.
    test : float, default 0
        Fraction of each agent's records, rounded down, for the public test set.
    seed : int, default 0
        Seed of the random assignment and of the test set.

    Returns
    -------
    Shares

    Raises
    ------
    InvalidInput
        For an argument that does not fit the table, and for the first record that is incomplete or
        outside of the bounds, with its agent and row.
    """
    seed = arguments.whole("seed", seed, 0)
    fraction = arguments.number("test", test, "a fraction in [0, 1)", lambda v: 0 <= v < 1)
    records = _records(_table(data), agent, seed)
    signs, label_names = _signs(records, label, labels)
    selected = [name for name in records.table.columns if name not in (label, agent)]
    if features is not None:
        features = arguments.items("features", features, str, "names of columns, as text")
        selected = [arguments.choice("features", name, selected) for name in features]
    is_set = 0 < len(set(selected)) == len(selected)
    require(is_set, "features", selected, "at least one column, each once")
    expected = "a mapping of columns to their possible values"
    arguments.instance("categories", categories, Mapping | None, expected)
    categories = _by_column("categories", categories, selected)
    numeric = [name for name in selected if categories.get(name) is None]
    bounds = _by_column("bounds", bounds, numeric)
    encoded: list[Encoded] = []
    for name in selected:
        if name in numeric:
            encoded.append(_scaled(records, name, bounds.get(name), clip is not None))
        else:
            encoded += _indicators(records, name, categories[name])
    titles, limits, values = zip(*encoded, strict=True)
    require(len(set(titles)) == len(titles), "data", titles, "different names of encoded columns")
    ranges = dict(zip(titles, limits, strict=True))
    unscaled = [name for name in titles if ranges[name] is None]
    if bound is None and clip is None:
        expected = (
            f"clip=NORM, which scales longer records to this l2 norm, or {_bounds_of(unscaled)}, "
            "or bound=NORM, which no record exceeds"
        )
        require(not unscaled, "clip", None, expected)
        bound = math.sqrt(len(selected))
    require(bound is None or clip is None, "bound", bound, "either bound or clip")
    key, limit = ("bound", bound) if clip is None else ("clip", clip)
    limit = arguments.number(key, limit, "a finite number > 0", lambda v: 0 < v < math.inf)
    rows = _within_norm(records, np.stack(values, axis=-1), limit, clip is not None)
    is_test = records.is_test(fraction, seed)
    order = np.argsort(records.owners, kind="stable")
    order = order[~is_test[order]]
    sizes = np.bincount(records.owners[order])
    is_record = np.arange(sizes.max()) < sizes[:, None]
    arranged, arranged_signs = np.zeros((*is_record.shape, len(ranges))), -np.ones(is_record.shape)
    arranged[is_record], arranged_signs[is_record] = rows[order], signs[order]
    return Shares(
        arranged, arranged_signs, sizes, rows[is_test], signs[is_test], records.agents, ranges,
        float(limit), clip, label_names,
    )  # fmt: skip


def _bounds_of(columns: Sequence[str]) -> str:
    """Return the argument that states public bounds of columns, for a message."""
    return f"bounds={{{', '.join(f'{name!r}: (low, high)' for name in columns)}}}"


class _Records(NamedTuple):
    """Table, names of the agents, and the index of the agent of each record."""

    table: pl.DataFrame
    agents: tuple[Any, ...]
    owners: np.ndarray

    def require(self, valid: Any, quantity: str, values: Any, expected: str) -> None:
        """Raise :class:`InvalidInput` for the first record that is not valid."""
        if not np.all(valid):
            row = int(np.argmin(valid))
            name = f"{quantity} of data[agent {self.agents[self.owners[row]]}, row {row}]"
            raise InvalidInput(name, values[row], expected)

    def is_test(self, fraction: float, seed: int) -> np.ndarray:
        """Return True for each test record, a random fraction of the records of each agent."""
        random, is_test = generator(seed, "split", "test"), np.zeros(len(self.owners), dtype=bool)
        for agent in range(len(self.agents)):
            rows = np.flatnonzero(self.owners == agent)
            is_test[random.choice(rows, int(len(rows) * fraction), replace=False)] = True
        return is_test


def _table(data: Any) -> pl.DataFrame:
    """Return the table of a CSV file, whose name is no pattern, or of an object in memory."""
    is_path = isinstance(data, str | Path)
    try:
        if is_path:
            table = pl.read_csv(Path(data), glob=False, infer_schema_length=None)
        else:
            table = pl.DataFrame(data)
    except (OSError, TypeError, ValueError, pl.exceptions.PolarsError) as error:
        source = str(data) if is_path else type(data).__name__
        raise InvalidInput("data", source, f"{SOURCES} ({error})") from error
    # The column of row numbers that pandas writes by default has no title.
    expected = "a title for each column; to_csv(index=False) omits row numbers"
    require(all(table.columns), "data", table.columns, expected)
    require(not table.is_empty(), "data", None, "at least one column and one record")
    return table


def _records(table: pl.DataFrame, agent: str | int, seed: int) -> _Records:
    """Return the records with the agents of a column, or of a random assignment."""
    if arguments.is_real(agent):
        count = arguments.whole("agent", agent, 1, table.height)
        owners = np.empty(table.height, dtype=int)
        order = generator(seed, "split", "agents").permutation(table.height)
        owners[order] = np.arange(table.height) * count // table.height
        return _Records(table, tuple(range(count)), owners)
    column = table[arguments.choice("agent", agent, table.columns)]
    missing = column.is_null().arg_max()
    require(not column.has_nulls(), f"agent of row {missing}", None, "the record's agent")
    agents, owners = np.unique(column.to_numpy(), return_inverse=True)
    return _Records(table, tuple(agents.tolist()), owners)


def _signs(records: _Records, label: str | None, labels: Any) -> tuple[np.ndarray, Any]:
    """Return the labels as -1 and +1, and the two labels of the table; -1 and None without."""
    if label is None:
        return -np.ones(records.table.height), None
    pair = arguments.items("labels", labels, SCALARS, "two different labels")
    require(len(pair) == 2 and pair[0] != pair[1], "labels", labels, "two different labels")
    values = records.table[arguments.choice("label", label, records.table.columns)].to_list()
    expected = f"{pair[0]!r} or {pair[1]!r}; labels=(first, second) names others"
    records.require([value in pair for value in values], label, values, expected)
    return np.array([1.0 if value == pair[1] else -1.0 for value in values]), pair


def _by_column(key: str, values: Any, names: Sequence[str]) -> Mapping[str, Any]:
    """Return a mapping by name of a column; a single value holds for all columns."""
    if not isinstance(values, Mapping):
        return dict.fromkeys(names, values)
    return {arguments.choice(key, name, names): value for name, value in values.items()}


def _indicators(records: _Records, name: str, categories: Any) -> list[Encoded]:
    """Return one column of 0 and 1 per category."""
    key, expected = f"categories.{name}", "different values, at least one"
    allowed = arguments.items(key, categories, SCALARS, expected)
    require(0 < len(set(allowed)) == len(allowed), key, allowed, expected)
    values, expected = records.table[name].to_list(), f"one of {', '.join(map(repr, allowed))}"
    records.require([value in allowed for value in values], name, values, expected)
    columns = [np.array([float(value == category) for value in values]) for category in allowed]
    return [(f"{name}={c}", UNIT, column) for c, column in zip(allowed, columns, strict=True)]


def _scaled(records: _Records, name: str, limits: Any, clips: bool) -> Encoded:
    """Return a numeric column, whose range is scaled to [-1, 1]."""
    column, expected = records.table[name], "a finite number"
    if not (column.dtype.is_numeric() or column.dtype == pl.Boolean):
        expected += f", or categories={{{name!r}: [...]}} with its possible values"
        records.require(np.zeros(len(column)), name, column, expected)
    numbers = column.cast(pl.Float64).fill_null(math.nan).to_numpy()
    records.require(np.isfinite(numbers), name, column, expected)
    if limits is None:
        return name, None, numbers
    expected = "a pair (low, high) of numbers in [-1e300, 1e300], low < high"
    pair = arguments.array(f"bounds.{name}", limits, expected, lambda v: np.abs(v) <= 1e300)
    require(pair.shape == (2,) and pair[0] < pair[1], f"bounds.{name}", limits, expected)
    low, high = map(float, pair)
    if clips:
        numbers = np.clip(numbers, low, high)
    expected = f"a number in [{low:g}, {high:g}], its bounds; clip=NORM replaces it"
    records.require((numbers >= low) & (numbers <= high), name, column, expected)
    return name, (low, high), np.clip((2.0 * numbers - low - high) / (high - low), -1.0, 1.0)


def _within_norm(records: _Records, rows: np.ndarray, limit: float, clips: bool) -> np.ndarray:
    """Return the records; longer ones are scaled to the norm ``limit``, or refused."""
    norms = np.linalg.norm(rows, axis=-1)
    if clips:
        return rows / np.maximum(norms / limit, 1.0)[:, None]
    expected = f"an l2 norm of at most {limit:g}, the bound; clip={limit:g} scales the record"
    valid = norms <= limit * (1 + tolerance_of(norms))
    records.require(valid, "norm", norms.tolist(), expected)
    return rows
