r"""Compare the numbers of a run with the reference results.

By default, a number has changed if the difference exceeds its Monte-Carlo error. Two means
y, y' with standard errors s, s' changed if

.. math:: |y - y'| > q \sqrt{s^2 + s'^2},

where q is the quantile of Student's distribution with the degrees of freedom of the smaller run.
Its level of 5 % is divided (Bonferroni) among all compared random numbers. Runs with the same
seed are correlated, which makes the test conservative. A number without an error is exact and must
be equal up to rounding.

An exact comparison ignores Monte-Carlo errors. It compares all tables (figure data, claims,
privacy, statements, audits). Numbers may differ by a relative :data:`ROUNDING`; words, counts and
truth values must be identical. Statistics of claims may also differ by :data:`ROUNDING_OF_CLAIMS`.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from scipy.stats import norm, t

from private_consensus.common.errors import Refused, arguments, require
from private_consensus.common.multiplicity import ALPHA
from private_consensus.common.readable import read_json
from private_consensus.common.secrets import redacted
from private_consensus.reproduction.results.files import rows_of
from private_consensus.reproduction.results.numbers import INTERVAL, QUARTILES, RANGE, SPREAD

ROUNDING = 1e-6
"""Largest relative difference of two equal numbers, due to linear algebra libraries."""
ROUNDING_OF_CLAIMS = 1e-9
"""Largest absolute difference of two equal statistics of claims. A statistic such as the logarithm
of a ratio is 0 up to rounding if two numbers are equal."""
RESULT_COLUMNS = (
    "y", "low", "high", "runs", "interval", "guarantee", "value", "std", "se", "difference",
)  # fmt: skip
"""Columns with results; the other columns identify the number."""
EPSILONS = (
    "epsilon_claimed", "epsilon_formula", "epsilon_accountant", "epsilon_lower",
    "epsilon_empirical",
)  # fmt: skip
"""Columns with claimed, computed and accounted epsilon, and its lower bounds."""
SCALE = "paper"
"""Scale of the reference."""
PROVENANCE = ("source", "commit", "seconds", "date")
"""Columns with the origin of a number, which are not compared."""


@dataclass(frozen=True)
class Comparison:
    """Result of a comparison: number of compared values, and one line per difference.

    Parameters
    ----------
    compared : int
        Number of values that both the run and the reference have.
    changed : tuple of str
        Numbers that changed; in an exact comparison, columns and entries that changed.
    missing : tuple of str
        Numbers or tables of the reference that the run lacks.
    verdicts : tuple of str
        Verdicts that changed; an exact comparison lists them in ``changed``.
    """

    compared: int
    changed: tuple[str, ...]
    missing: tuple[str, ...]
    verdicts: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """True if no number and no verdict differs, and none is missing."""
        return not (self.changed or self.missing or self.verdicts)


def compare(run: str | Path, reference: str | Path, *, exact: bool = False) -> Comparison:
    """Compare numbers, privacy and verdicts of a run, ``results/<scale>``, with the reference.

    If ``exact``, every published value is compared, without regard to Monte-Carlo errors. A folder
    that lacks its results, and different scales raise ``InvalidInput``.
    """
    run, reference = _require_comparable(run, reference)
    return _compare_exactly(run, reference) if exact else _compare_within_errors(run, reference)


def _compare_within_errors(run: Path, reference: Path) -> Comparison:
    names, missing = _shared(sorted((reference / "data").glob("*.parquet")), run, reference)
    pairs = []
    for name in names:
        joined = paired(rows_of(reference / name), rows_of(run / name), name.stem)
        one_sided = joined["y"].is_null() != joined["y_run"].is_null()
        missing += [
            f"{label}: missing in the run or in the reference"
            for label in joined.filter(one_sided)["label"]
        ]
        pairs.append(joined.filter(~one_sided & joined["y"].is_not_null()))
    numbers = pl.concat(pairs) if pairs else pl.DataFrame()
    before, after = (rows_of(folder / "privacy.parquet") for folder in (reference, run))
    epsilons = before.select(name for name in EPSILONS if name in before.columns)
    losses = table_differences(epsilons, after, relative=1e-4, absolute=1e-9)
    return Comparison(
        compared=numbers.height + epsilons.height * epsilons.width,
        changed=(*changed(numbers), *(f"privacy: {line}" for line in losses)),
        missing=tuple(missing),
        verdicts=tuple(_verdicts(run, reference)),
    )


def _compare_exactly(run: Path, reference: Path) -> Comparison:
    names, missing = _shared(sorted(reference.rglob("*.parquet")), run, reference)
    compared, lines = 0, []
    for name in names:
        before, after = rows_of(reference / name), rows_of(run / name)
        compared += before.height * before.width * (before.height == after.height)
        absolute = ROUNDING_OF_CLAIMS if name.stem == "claims" else 0.0
        differences = table_differences(before, after, absolute=absolute)
        lines += [f"{name}: {difference}" for difference in differences]
    verdicts = tuple(_verdicts(run, reference))
    return Comparison(compared, tuple(lines), tuple(missing), verdicts)


def _shared(files: Iterable[Path], run: Path, reference: Path) -> tuple[list[Path], list[str]]:
    """Return the relative paths of files that are in both folders, and lines for the others."""
    names = [file.relative_to(reference) for file in files]
    missing = [f"{name}: not in the run" for name in names if not (run / name).is_file()]
    return [name for name in names if (run / name).is_file()], missing


def _require_comparable(run: str | Path, reference: str | Path) -> tuple[Path, Path]:
    """Return the folders of a run and of a reference; refuse a run of another scale."""
    run = arguments.path("run", run, "the path of a folder")
    reference = arguments.path("reference", reference, "the path of a folder")
    for folder, name, command in (
        (run, "claims.parquet", "`make reproduce` computes results/paper"),
        (reference, "manifest.json", "`make publish` writes results/reference"),
    ):
        # Path.is_file raises an error if a name is too long.
        if not os.path.isfile(folder / name):
            problem = f"has no {name}" if os.path.isdir(folder) else "is no folder"
            raise Refused([f"{redacted(str(folder))} {problem}: {command}"])
    plan = run / "plan.json"
    scale = read_json(plan)["config"]["scale"] if plan.is_file() else SCALE
    require(scale == SCALE, f"scale of {run}", scale, f"{SCALE}, the scale of the reference")
    return run, reference


def paired(reference: pl.DataFrame, run: pl.DataFrame, name: str) -> pl.DataFrame:
    """Join the numbers of a figure or table in the reference and in the run by their labels.

    The columns ``y``, ``error`` and ``runs`` are of the reference; ``y_run``, ``error_run`` and
    ``runs_run`` are of the run.
    """
    published, rerun = _numbers(reference, name), _numbers(run, name)
    joined = published.join(rerun, on="label", how="full", suffix="_run", coalesce=True)
    return joined.sort("label")


def _numbers(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    value = "y" if "y" in frame.columns else "value"
    keys = [column for column in frame.columns if column not in (*RESULT_COLUMNS, "source")]
    # Coordinates are rounded to ten digits in labels, so that rounding errors change no label.
    labels = [pl.format("{}={}", pl.lit(key), _label(frame, key).fill_null("")) for key in keys]
    label = pl.concat_str([pl.lit(f"{name}:"), *labels], separator=" ")
    numbers = frame.select(
        label=label,
        y=pl.col(value).cast(pl.Float64),
        error=_error(frame),
        runs=pl.col("runs").fill_null(0).cast(pl.Float64),
    )
    # Points with equal labels are distinguished by their order.
    occurrence = pl.col("label").cum_count().over("label")
    return numbers.with_columns(
        label=pl.when(occurrence > 1)
        .then(pl.format("{} #{}", "label", occurrence))
        .otherwise("label")
    )


def _label(frame: pl.DataFrame, key: str) -> pl.Expr:
    if not frame.schema[key].is_float():
        return pl.col(key).cast(pl.String)
    return pl.col(key).map_elements(lambda v: f"{v:.10g}", return_dtype=pl.String)


def _error(frame: pl.DataFrame) -> pl.Expr:
    """Compute standard errors from the plotted intervals."""
    if "se" in frame.columns:
        return pl.col("se").fill_null(0.0).cast(pl.Float64)
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
    """Return one line per number whose change exceeds its error, with the allowed change."""
    if numbers.is_empty():
        return []
    y, y_run = numbers["y"].to_numpy(), numbers["y_run"].to_numpy()
    errors = (np.nan_to_num(numbers[k].to_numpy(), posinf=np.inf) for k in ("error", "error_run"))
    error = np.hypot(*errors)
    runs = np.fmin(numbers["runs"].to_numpy(), numbers["runs_run"].to_numpy())
    allowed = np.where(error > 0, quantile(runs, int((error > 0).sum())) * error, 0.0)
    with np.errstate(invalid="ignore"):
        allowed += ROUNDING * np.fmax(np.abs(y), np.abs(y_run))
        same = (y == y_run) | (np.isnan(y) & np.isnan(y_run)) | (np.abs(y - y_run) <= allowed)
    return [
        f"{numbers['label'][i]}: {y[i]:.6g} became {y_run[i]:.6g}, allowed +- {allowed[i]:.3g}"
        for i in np.flatnonzero(~same).tolist()
    ]


def quantile(runs: np.ndarray, count: int) -> np.ndarray:
    """Return the two-sided quantile of Student's distribution for one of ``count`` values.

    The level :data:`ALPHA` is divided among them (Bonferroni). Below 2 runs, the quantile is that
    of the normal distribution.
    """
    tail_probability = ALPHA / (2 * max(1, count))
    degrees_of_freedom = np.asarray(runs, float) - 1
    student = t.isf(tail_probability, np.maximum(degrees_of_freedom, 1))
    return np.where(degrees_of_freedom >= 1, student, norm.isf(tail_probability))


VERDICTS = {
    "claims": (("id", "variant"), "verdict"),
    "audit/audits": (
        ("algorithm", "variant", "experiment", "setting", "level", "copy"),
        "verdict",
    ),
    "statements": (("paper", "number", "erratum"), "verdict"),
}
"""Table to the columns that identify a row, and the column of its verdict."""


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
    """Map the identifying values of each row to its verdict; empty if the file is missing."""
    if not path.exists():
        return {}
    return {
        tuple(str(row[key]) for key in keys): str(row[column])
        for row in rows_of(path).iter_rows(named=True)
    }


def table_differences(
    before: pl.DataFrame, after: pl.DataFrame, *, relative: float = ROUNDING, absolute: float = 0.0
) -> Iterator[str]:
    """Yield one line per column in which two tables with the same order of rows differ.

    It has the number of rows that differ and the first of them. Values of tables with different
    numbers of rows are not compared.
    """
    if before.height != after.height:
        yield f"{before.height} rows became {after.height}, and values were not compared"
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
