r"""Find the numbers of a later run that changed.

By default a number counts as changed if the difference is beyond its Monte-Carlo error. Two means
y, y' with standard errors s, s' changed if

.. math:: |y - y'| > q \sqrt{s^2 + s'^2},

where q is the quantile of Student's distribution with the degrees of freedom of the smaller run.
Its level of 5 % is shared (Bonferroni) among all random numbers compared. Two runs with the same
seed are correlated, which makes the test conservative. A number without an error is exact, and may
change within rounding only.

An exact comparison disregards errors and compares all tables (figure data, claims, privacy,
statements, audits, observers) and the answers of the comparison of methods. Numbers may then differ
by a relative :data:`ROUNDING`; words, counts and truth values must be identical.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import norm, t

from private_consensus.common.errors import InvalidInput, arguments
from private_consensus.common.multiplicity import ALPHA
from private_consensus.common.readable import read_json
from private_consensus.common.secrets import redacted

from ..experiments.numbers import INTERVAL, QUARTILES, RANGE, SPREAD
from ..experiments.results import rows_of
from .manifest import THIS_PROCESSOR, machine

ROUNDING = 1e-6
"""Relative difference that libraries of linear algebra may make."""
MEASURED = (
    "y", "low", "high", "runs", "interval", "guarantee", "value", "std", "se", "difference",
)  # fmt: skip
"""Columns that are outcomes; the others say which number it is."""
EPSILONS = (
    "epsilon_claimed", "epsilon_formula", "epsilon_accountant", "epsilon_lower",
    "epsilon_empirical",
)  # fmt: skip
"""Claimed and accounted privacy loss, and its lower bounds by attack or by audit."""
PROVENANCE = ("source", "commit", "seconds", "date")
"""Columns that state where a number comes from."""
SEPARATE = ("mutants",)
"""Tables that another target computes."""


@dataclass(frozen=True)
class Comparison:
    """The result of a comparison: what was compared, and one line for each difference.

    Parameters
    ----------
    compared : int
        Number of values that are in both.
    changed : tuple of str
        Numbers that changed; in an exact comparison, columns and entries.
    missing : tuple of str
        Numbers or tables of the reference that the run lacks.
    verdicts : tuple of str
        Verdicts that changed; empty in an exact comparison, which lists them as columns.
    machines : tuple of str
        Differences between the processors, which may change the last digits.
    """

    compared: int
    changed: tuple[str, ...]
    missing: tuple[str, ...]
    verdicts: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """True if no number and no verdict differs, and none is missing."""
        return not (self.changed or self.missing or self.verdicts)


def compare(run: str | Path, reference: str | Path, *, exact: bool = False) -> Comparison:
    """Compare a run's numbers, privacy and verdicts with the reference.

    Parameters
    ----------
    run : path
        ``results/<scale>``.
    reference : path
        Folder that :func:`..reference.publish` wrote.
    exact : bool, default False
        True to compare every published value without regard to its error.

    Returns
    -------
    Comparison
        Number of compared values, and one line per difference.

    Raises
    ------
    InvalidInput
        If a folder lacks its results, or the scales differ.
    """
    run, reference = _require_comparable(run, reference)
    return _compare_exactly(run, reference) if exact else _compare_within_errors(run, reference)


def _compare_within_errors(run: Path, reference: Path) -> Comparison:
    names, missing = _shared(sorted((reference / "data").glob("*.parquet")), run, reference)
    pairs = []
    for name in names:
        joined = paired(rows_of(reference / name), rows_of(run / name), name.stem)
        lacking = joined["y"].is_null() != joined["y_run"].is_null()
        missing += [f"{label}: in one of the two only" for label in joined.filter(lacking)["where"]]
        pairs.append(joined.filter(~lacking & joined["y"].is_not_null()))
    numbers = pl.concat(pairs) if pairs else pl.DataFrame()
    before, after = (rows_of(folder / "privacy.parquet") for folder in (reference, run))
    epsilons = before.select(name for name in EPSILONS if name in before.columns)
    losses = table_differences(epsilons, after, relative=1e-4, absolute=1e-9)
    return Comparison(
        compared=numbers.height + epsilons.height * epsilons.width,
        changed=(*changed(numbers), *(f"privacy: {line}" for line in losses)),
        missing=tuple(missing),
        verdicts=tuple(_verdicts(run, reference)),
        machines=tuple(_machines(read_json(reference / "manifest.json"))),
    )


def _compare_exactly(run: Path, reference: Path) -> Comparison:
    tables = [file for file in sorted(reference.rglob("*.parquet")) if file.stem not in SEPARATE]
    documents = sorted((reference / "comparison").glob("*.json"))
    names, missing = _shared([*tables, *documents], run, reference)
    compared, lines = 0, []
    for name in names:
        files = (reference / name, run / name)
        if name.suffix == ".parquet":
            before, after = map(rows_of, files)
            compared += before.height * before.width
            differences = table_differences(before, after)
        else:
            old, new = (dict(_entries(read_json(file))) for file in files)
            compared += len(old)
            differences = (
                f"{path}: {value} became {new.get(path)}"
                for path, value in old.items()
                if not _is_same_entry(value, new.get(path))
            )
        lines += [f"{name}: {difference}" for difference in differences]
    return Comparison(compared, tuple(lines), tuple(missing))


def _shared(files: Iterable[Path], run: Path, reference: Path) -> tuple[list[Path], list[str]]:
    """Return the relative paths of files that are in both folders, and lines for the others."""
    names = [file.relative_to(reference) for file in files]
    missing = [f"{name}: not in the run" for name in names if not (run / name).is_file()]
    return [name for name in names if (run / name).is_file()], missing


def _require_comparable(run: str | Path, reference: str | Path) -> tuple[Path, Path]:
    """Return the folders of a run and of a reference of the same scale."""
    run = arguments.path("run", run, "the path of a folder")
    reference = arguments.path("reference", reference, "the path of a folder")
    for key, file, expected in (
        ("reference", reference / "manifest.json", "a folder that `make publish` has written"),
        ("run", run / "claims.parquet", "results of a whole run, e.g. results/paper"),
    ):
        if not _is_file(file):
            raise InvalidInput(key, redacted(str(file.parent)), expected)
    scales = [_scale_of(folder) for folder in (run, reference)]
    if None not in scales and scales[0] != scales[1]:
        same = f"{scales[1]}, the scale of the reference"
        raise InvalidInput(f"another scale, {run}", scales[0], same)
    return run, reference


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that is too long
        return False


def _scale_of(folder: Path) -> str | None:
    """Return the scale that the plan of a run, or the manifest of a reference, states."""
    for name, keys in (("plan.json", ("config", "scale")), ("manifest.json", ("scale",))):
        if not (file := folder / name).is_file():
            continue
        value = read_json(file)
        for key in keys:
            value = value.get(key) if isinstance(value, Mapping) else None
        return value if isinstance(value, str) else None
    return None


def _machines(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Describe how this machine differs from that of a reference, if the difference can change
    digits.
    """
    before, now = manifest.get("machine", {}), machine()
    before = {"compiled for": THIS_PROCESSOR, **before}
    for key in ("architecture", "processor", "features", "compiled for", "kernels"):
        if key in before and before[key] != now[key]:
            yield f"{key}: {before[key]} became {now[key]}"


def paired(reference: pl.DataFrame, run: pl.DataFrame, name: str) -> pl.DataFrame:
    """Join the numbers of two tables by their description.

    Parameters
    ----------
    reference, run : DataFrame
        Numbers of one figure or table in the reference and in the run.
    name : str
        Name of the figure or table.

    Returns
    -------
    DataFrame
        Columns where, y, error and runs of the reference, and y_run, error_run and runs_run.
    """
    published, rerun = _numbers(reference, name), _numbers(run, name)
    joined = published.join(rerun, on="where", how="full", suffix="_run", coalesce=True)
    return joined.sort("where")


def _numbers(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    value = "y" if "y" in frame.columns else "value"
    if value not in frame.columns:
        return pl.DataFrame(schema=dict.fromkeys(("where",), pl.String) | _FLOATS)
    keys = [column for column in frame.columns if column not in (*MEASURED, "source")]
    # Floats that are coordinates are named to ten digits, so that rounding renames none.
    labels = [pl.format("{}={}", pl.lit(key), _label(frame, key).fill_null("")) for key in keys]
    where = pl.concat_str([pl.lit(f"{name}:"), *labels], separator=" ")
    numbers = frame.select(
        where=where,
        y=pl.col(value).cast(pl.Float64),
        error=_error(frame),
        runs=pl.col("runs").fill_null(0).cast(pl.Float64) if "runs" in frame.columns else 0.0,
    )
    # Points of one name are told apart by their order.
    nth = pl.col("where").cum_count().over("where")
    return numbers.with_columns(
        where=pl.when(nth > 1).then(pl.format("{} #{}", "where", nth)).otherwise("where")
    )


_FLOATS = dict.fromkeys(("y", "error", "runs"), pl.Float64)


def _label(frame: pl.DataFrame, key: str) -> pl.Expr:
    if not frame.schema[key].is_float():
        return pl.col(key).cast(pl.String)
    return pl.col(key).map_elements(lambda v: f"{v:.10g}", return_dtype=pl.String)


def _error(frame: pl.DataFrame) -> pl.Expr:
    """Return the standard errors that follow from the plotted intervals.

    Quartiles: sd = IQR / 1.349, and a median's error is 1.2533 sd / sqrt(runs). A range bounds the
    standard deviation by half of it. Intervals of other kinds are treated as exact.
    """
    if "se" in frame.columns:
        return pl.col("se").fill_null(0.0).cast(pl.Float64)
    if not {"low", "high", "interval", "runs"} <= set(frame.columns):
        return pl.lit(0.0)
    width = pl.col("high").cast(pl.Float64) - pl.col("low").cast(pl.Float64)
    root = pl.max_horizontal(pl.col("runs").fill_null(1).cast(pl.Float64), 1.0).sqrt()
    kind = pl.col("interval").fill_null("")
    return (
        pl.when(kind == INTERVAL).then(width / 2)
        .when(kind == SPREAD).then(width / (2 * root))
        .when(kind == QUARTILES).then(width * 1.2533 / 1.349 / root)
        .when(kind == RANGE).then(width / (2 * root))
        .otherwise(0.0).fill_null(0.0)
    )  # fmt: skip


def changed(numbers: pl.DataFrame) -> list[str]:
    """Return one line per number that changed beyond its error, with the interval of the error."""
    if numbers.is_empty():
        return []
    y, y_run = numbers["y"].to_numpy(), numbers["y_run"].to_numpy()
    either = (np.nan_to_num(numbers[k].to_numpy(), posinf=np.inf) for k in ("error", "error_run"))
    error = np.hypot(*either)
    runs = np.fmin(numbers["runs"].to_numpy(), numbers["runs_run"].to_numpy())
    allowed = np.where(error > 0, quantile(runs, int((error > 0).sum())) * error, 0.0)
    with np.errstate(invalid="ignore"):
        allowed += ROUNDING * np.fmax(np.abs(y), np.abs(y_run))
        same = (y == y_run) | (np.isnan(y) & np.isnan(y_run)) | (np.abs(y - y_run) <= allowed)
    return [
        f"{numbers['where'][i]}: {y[i]:.6g} became {y_run[i]:.6g}, allowed +- {allowed[i]:.3g}"
        for i in np.flatnonzero(~same).tolist()
    ]


def quantile(runs: np.ndarray, count: int) -> np.ndarray:
    """Return the two-sided quantile of Student's distribution at a level shared among numbers.

    Parameters
    ----------
    runs : ndarray
        Number of runs; fewer than 2 give the normal quantile.
    count : int
        Number of values among which the level is shared (Bonferroni).

    Returns
    -------
    ndarray
        Quantile for each entry of ``runs``.
    """
    tail = ALPHA / (2 * max(1, count))
    freedom = np.asarray(runs, float) - 1
    return np.where(freedom >= 1, t.isf(tail, np.maximum(freedom, 1)), norm.isf(tail))


VERDICTS = {
    "claims": (("id", "variant"), "verdict"),
    "audit/audits": (
        ("algorithm", "variant", "experiment", "setting", "level", "copy"),
        "flagged",
    ),
    "audit/errata": (("id",), "outcome_computed"),
    "theorems": (("paper", "number"), "verdict"),
}
"""Tables of verdicts: the columns that identify a row, and the column of the verdict."""


def _verdicts(run: Path, reference: Path) -> Iterator[str]:
    for file, (keys, column) in VERDICTS.items():
        before, after = (
            _verdicts_by_key(folder / f"{file}.parquet", keys, column)
            for folder in (reference, run)
        )
        for key in sorted(before.keys() | after.keys()):
            old, new = before.get(key, "absent"), after.get(key, "absent")
            if old != new:
                qualifiers = ", ".join(filter(None, key[1:]))
                yield f"{key[0]} ({qualifiers}): {old} became {new}".replace(" ()", "")


def _verdicts_by_key(path: Path, keys: tuple[str, ...], column: str) -> dict[tuple[str, ...], str]:
    """Return the verdict of each row; empty if there is no file."""
    if not path.exists():
        return {}
    words = {True: "flagged", False: "not flagged"}
    return {
        tuple(str(row[key]) for key in keys): str(words.get(row[column], row[column]))
        for row in rows_of(path).iter_rows(named=True)
    }


def table_differences(
    before: pl.DataFrame, after: pl.DataFrame, *, relative: float = ROUNDING, absolute: float = 0.0
) -> Iterator[str]:
    """Describe the columns in which two tables with the same order of rows differ.

    Parameters
    ----------
    before, after : DataFrame
        Table of the reference and of the run.
    relative, absolute : float
        Difference of two numbers that counts as equal.

    Yields
    ------
    str
        One line per column, with the number of rows that differ and the first of them.
    """
    if before.height != after.height:
        yield f"{before.height} rows became {after.height}"
        return
    for name in (column for column in before.columns if column not in PROVENANCE):
        if name not in after.columns:
            yield f"{name} is missing"
            continue
        rows = np.flatnonzero(_differs(before[name], after[name], relative, absolute))
        if len(rows):
            first = int(rows[0])
            yield (
                f"{name} differs in {len(rows)} of {before.height} rows, "
                f"e.g. {before[name][first]} became {after[name][first]}"
            )


def _differs(before: pl.Series, after: pl.Series, relative: float, absolute: float) -> np.ndarray:
    if not before.dtype.is_float():
        return ~before.eq_missing(after.cast(before.dtype)).to_numpy()
    y, y_run = (series.cast(pl.Float64).to_numpy() for series in (before, after))
    return ~np.isclose(y_run, y, rtol=relative, atol=absolute, equal_nan=True)


def _entries(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the path and the value of every leaf of a JSON document."""
    if isinstance(value, Mapping):
        for key, entry in value.items():
            yield from _entries(entry, f"{path}.{key}")
    elif isinstance(value, list):
        for number, entry in enumerate(value):
            yield from _entries(entry, f"{path}[{number}]")
    else:
        yield path.lstrip("."), value


def _is_same_entry(before: Any, after: Any) -> bool:
    if isinstance(before, float) and isinstance(after, float | int):
        return math.isclose(before, after, rel_tol=ROUNDING)
    return before == after
