r"""Compare the tables of a run with those of the reference results.

Rows are joined by the columns that identify them. Only rows of both tables are compared; rows that
only one table has are counted. Two compared numbers may differ by a relative :data:`ROUNDING`.

An exact comparison compares all columns of all tables (figure data, claims, privacy, statements,
audits). Statistics of claims may also differ by :data:`ROUNDING_OF_CLAIMS`. Otherwise, the means of
figures and tables, epsilons (with :data:`ROUNDING_OF_EPSILONS`) and verdicts are compared. Means
may then differ by their Monte-Carlo error: means y, y' with standard errors s, s' changed if

.. math:: |y - y'| > q \sqrt{s^2 + s'^2},

where q is the quantile of Student's distribution with the degrees of freedom of the smaller run.
Its level of 5 % is divided (Bonferroni) among all random means of the reference. Runs with the same
seed are correlated, which makes the test conservative.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy.stats import t

from private_consensus.common.errors import arguments, require
from private_consensus.common.multiplicity import ALPHA
from private_consensus.common.readable import read_json
from private_consensus.reproduction.results.files import rows_of
from private_consensus.reproduction.results.numbers import INTERVAL, QUARTILES, RANGE, SPREAD

ROUNDING = 1e-6
"""Largest relative difference of two equal numbers, due to linear algebra libraries."""
ROUNDING_OF_CLAIMS = 1e-9
"""Largest absolute difference of two equal statistics of claims. A statistic such as the logarithm
of a ratio is 0 up to rounding if two numbers are equal."""
ROUNDING_OF_EPSILONS = 1e-4
"""Largest relative difference of two equal epsilons, unless the comparison is exact."""
SCALE = "paper"
"""Scale of the reference."""
MAX_LISTED = 20
"""Largest number of listed differences per column."""
HUGE = 1e300
"""Tolerance of a number with an infinite error."""
OCCURRENCE = "occurrence"
"""Column that numbers the rows with equal keys."""

KEYS = {
    "claims": ("id", "variant"),
    "statements": ("paper", "number", "erratum"),
    "audit/audits": ("algorithm", "variant", "experiment", "setting", "level", "copy"),
    "audit/observers": ("algorithm", "graph", "observer", "distance"),
    "audit/repairs": ("experiment", "published", "corrected", "quantity", "metric", "delta"),
    "comparison/losses": ("experiment", "algorithm", "variant", "metric", "epsilon", "agents",
                          "records", "run"),
    "comparison/means": ("experiment", "algorithm", "metric", "epsilon", "agents", "records"),
}  # fmt: skip
"""Table to the columns that identify its rows."""
TABLE_KEYS = ("block", "row", "method", "algorithm", "variant")
"""Columns that identify the rows of a table of a paper."""
EPSILONS = (
    "epsilon_claimed", "epsilon_formula", "epsilon_accountant", "epsilon_lower",
    "epsilon_empirical",
)  # fmt: skip
"""Columns with claimed, computed and accounted epsilon, and its lower bounds."""
RESULTS = frozenset((
    "y", "low", "high", "runs", "interval", "guarantee", *EPSILONS, "epsilon_under_assumption",
    "accountant", "lower_bound_method", "proven", "mechanisms", "notes", "verdict",
    "unaccounted_data_use", "errata", "audit", "audit_verdict", "audit_findings", "source",
))  # fmt: skip
"""Columns of figure data and of privacy with results; the other columns identify the row."""
MAIN = {
    "claims": ("verdict",), "statements": ("verdict",), "audit/audits": ("verdict",),
    "privacy": EPSILONS,
}  # fmt: skip
"""Table to its compared columns, unless the comparison is exact. Figures and tables of papers have
means in ``y`` or ``value``."""


@dataclass(frozen=True)
class Comparison:
    """Result of a comparison.

    Parameters
    ----------
    compared, changed : int
        Number of values that both the run and the reference have, and of those that differ.
    missing : int
        Number of tables and columns that only the reference has.
    absent, new : int
        Number of rows that only the reference, or only the run has, in the compared tables.
    lines : tuple of str
        Descriptions of the differences, at most :data:`MAX_LISTED` values per column.
    """

    compared: int
    changed: int
    missing: int
    absent: int
    new: int
    lines: tuple[str, ...]

    @property
    def same(self) -> bool:
        """True if there is no difference."""
        return not self.lines


class Pair(NamedTuple):
    """Table of the reference and of the run: common rows in one order, and labels of others."""

    name: str
    keys: Sequence[str]
    before: pl.DataFrame
    after: pl.DataFrame
    absent: Sequence[str]
    new: Sequence[str]


def compare(run: str | Path, reference: str | Path, *, exact: bool = False) -> Comparison:
    """Compare the tables of a run, ``results/<scale>``, with those of the reference.

    If ``exact``, all columns are compared, without regard to Monte-Carlo errors. A folder that does
    not exist, and a run of another scale raise ``InvalidInput``.
    """
    run, reference = _require_comparable(run, reference)
    names = [file.relative_to(reference) for file in sorted(reference.rglob("*.parquet"))]
    pairs = [
        paired(name.with_suffix("").as_posix(), rows_of(reference / name), rows_of(run / name))
        for name in names
        if (run / name).is_file()
    ]
    lines = [f"{name}: not in the run" for name in names if not (run / name).is_file()]
    counts = Counter(missing=len(lines))
    random = sum(int((standard_errors(pair.before) > 0).sum()) for pair in pairs)
    for pair in pairs:
        for kind, rows in (("absent", pair.absent), ("new", pair.new)):
            lines += _shortened([f"{pair.name}: {kind} row {row}" for row in rows])
            counts[kind] += len(rows)
        chance = 0.0 if exact else error_by_chance(pair, random)
        for column in _compared_columns(pair, exact):
            if column in pair.after.columns:
                differences = changed(pair, column, chance, exact=exact)
                lines += _shortened(differences)
                counts += Counter(changed=len(differences), compared=pair.before.height)
            else:
                lines.append(f"{pair.name}: {column} is missing")
                counts["missing"] += 1
    totals = (counts[name] for name in ("compared", "changed", "missing", "absent", "new"))
    return Comparison(*totals, lines=tuple(lines))


def _require_comparable(run: str | Path, reference: str | Path) -> tuple[Path, Path]:
    """Return the folders of a run and of a reference; refuse a run of another scale."""
    run = arguments.path("run", run, "the path of a folder")
    reference = arguments.path("reference", reference, "the path of a folder")
    for key, folder in (("run", run), ("reference", reference)):
        require(folder.is_dir(), key, str(folder), "a folder with results")
    plan = run / "plan.json"
    scale = read_json(plan)["config"]["scale"] if plan.is_file() else SCALE
    require(scale == SCALE, f"scale of {run}", scale, f"{SCALE}, the scale of the reference")
    return run, reference


def paired(name: str, before: pl.DataFrame, after: pl.DataFrame) -> Pair:
    """Join the rows of a table in the reference and in the run by their keys.

    Rows with equal keys are joined in their order.
    """
    default = TABLE_KEYS if "block" in before.columns else before.columns
    keys = [key for key in KEYS.get(name, default) if key not in RESULTS and key in after.columns]
    joined = _keys(before, keys).join(
        _keys(after.cast({key: before.schema[key] for key in keys}), keys),
        on=[*keys, OCCURRENCE], how="full", nulls_equal=True, coalesce=True,
    )  # fmt: skip
    common = joined.drop_nulls(["index", "index_right"]).sort("index")
    rows = joined.select(keys).rows(named=True)
    absent, new = (
        [_label(rows[i]) for i in joined[index].is_null().arg_true()]
        for index in ("index_right", "index")
    )
    return Pair(name, keys, before[common["index"]], after[common["index_right"]], absent, new)


def _keys(table: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Return the keys of all rows, rounded to ten digits, and the indices of the rows."""
    rounded = table.select(pl.col(keys)).with_columns(pl.col(pl.Float64).round_sig_figs(10))
    occurrence = pl.int_range(pl.len()).over(keys).alias(OCCURRENCE)
    return rounded.with_columns(occurrence).with_row_index()


def _compared_columns(pair: Pair, exact: bool) -> list[str]:
    columns = [c for c in pair.before.columns if c not in (*pair.keys, "source")]
    main = MAIN.get(pair.name, ("y", "value") if pair.name.startswith("data/") else ())
    return columns if exact else [column for column in columns if column in main]


def standard_errors(table: pl.DataFrame) -> np.ndarray:
    """Return the standard errors of means from the plotted intervals; 0 for exact numbers."""
    if "se" in table.columns:
        return np.nan_to_num(table["se"].cast(float).to_numpy(), posinf=HUGE)
    if "interval" not in table.columns:
        return np.zeros(table.height)
    root = pl.max_horizontal("runs", 1).sqrt()
    factor = {
        INTERVAL: 0.5, SPREAD: 0.5 / root, RANGE: 0.5 / root, QUARTILES: 1.2533 / 1.349 / root,
    }  # fmt: skip
    cases = pl.coalesce(
        [pl.when(interval=kind).then(value) for kind, value in factor.items()] + [0.0]
    )
    errors = table.select((pl.col("high") - pl.col("low")).cast(float) * cases).to_series()
    return np.nan_to_num(errors.to_numpy(), posinf=HUGE)


def error_by_chance(pair: Pair, count: int) -> np.ndarray:
    """Return the largest insignificant difference of means, if ``count`` means are compared.

    The level :data:`ALPHA` is divided among them (Bonferroni). Means of one run have no error.
    """
    errors = np.hypot(standard_errors(pair.before), standard_errors(pair.after))
    if not errors.any():
        return errors
    runs = np.fmin(*(table["runs"].cast(float).to_numpy() for table in (pair.before, pair.after)))
    quantile = t.isf(ALPHA / (2 * count), np.fmax(runs - 1, 1))
    return np.where(errors > 0, quantile * errors, 0.0)


def changed(
    pair: Pair, column: str, chance: np.ndarray | float = 0.0, *, exact: bool = False
) -> list[str]:
    """Return one line per changed value of a column; ``chance`` is an allowed difference."""
    before, after = pair.before[column], pair.after[column]
    if before.dtype.is_float():
        relative = ROUNDING if exact or column not in EPSILONS else ROUNDING_OF_EPSILONS
        absolute = chance + (ROUNDING_OF_CLAIMS if pair.name == "claims" else 0.0)
        y, y_run = (values.cast(float).to_numpy() for values in (before, after))
        same = np.isclose(y_run, y, rtol=relative, atol=absolute, equal_nan=True)
    else:
        same = before.eq_missing(after.cast(before.dtype)).to_numpy()
    rows = pair.before.select(pair.keys).rows(named=True)
    return [
        f"{pair.name}: {column} of {_label(rows[i])}: {before[i]} became {after[i]}"
        for i in np.flatnonzero(~same).tolist()
    ]


def _label(row: Mapping[str, object]) -> str:
    return ", ".join(f"{key} {value}" for key, value in row.items() if value not in (None, ""))


def _shortened(lines: list[str]) -> list[str]:
    """Return the first lines of a list, and the number of the others."""
    omitted = len(lines) - MAX_LISTED
    return [*lines[:MAX_LISTED], f"and {omitted} more"] if omitted > 0 else lines
