r"""Find the numbers of a later run that changed beyond their Monte-Carlo error.

Two means y, y' with standard errors s, s' changed if

.. math:: |y - y'| > q \sqrt{s^2 + s'^2},

where q is the quantile of Student's distribution with the degrees of freedom of the smaller run.
Its level of 5 % is shared (Bonferroni) among all random numbers compared. Two runs with the same
seed are correlated, which makes the test conservative. A number without an error is exact, and may
change within rounding only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import norm, t

from private_consensus.common.errors import InvalidInput, require
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
"""What was promised, what was spent, and what is spent at least, by attack or by audit."""


@dataclass(frozen=True)
class Comparison:
    """The result of a comparison: what was compared, and one line for each difference.

    Parameters
    ----------
    compared : int
        Numbers that are in both.
    moved, missing, verdicts : tuple of str
        Numbers beyond their error; numbers of the reference that the run lacks; verdicts that
        changed.
    """

    compared: int
    moved: tuple[str, ...]
    missing: tuple[str, ...]
    verdicts: tuple[str, ...]
    machines: tuple[str, ...] = ()
    """What of the processors differs, after which the last digits may."""

    @property
    def same(self) -> bool:
        """True if no number and no verdict differs, and none is missing."""
        return not (self.moved or self.missing or self.verdicts)


def compare(run: str | Path, reference: str | Path) -> Comparison:
    """Compare a run's numbers, privacy and verdicts with the reference.

    Parameters
    ----------
    run : path
        ``results/<scale>``.
    reference : path
        Folder that :func:`..reference.publish` wrote.

    Returns
    -------
    Comparison
        Number of compared values, and one line per difference.
    """
    run, reference = require_comparable(run, reference)
    manifest = read_json(reference / "manifest.json")
    pairs, missing = [], []
    for file in sorted((reference / "data").glob("*.parquet")):
        if not (run / "data" / file.name).exists():
            missing.append(f"{file.stem}: not in the run")
            continue
        joined = paired(rows_of(file), rows_of(run / "data" / file.name), file.stem)
        lacking = joined["y"].is_null() != joined["y_run"].is_null()
        missing += [f"{where}: in one of the two only" for where in joined.filter(lacking)["where"]]
        pairs.append(joined.filter(~lacking & joined["y"].is_not_null()))
    both = pl.concat(pairs) if pairs else pl.DataFrame()
    privacy, moved_privacy = _privacy(run, reference)
    return Comparison(
        compared=both.height + privacy,
        moved=tuple(moved(both)) + tuple(moved_privacy),
        missing=tuple(missing),
        verdicts=tuple(_verdicts(run, reference)),
        machines=tuple(_machines(manifest)),
    )


def require_comparable(run: str | Path, reference: str | Path) -> tuple[Path, Path]:
    """Return the folders of a run and of a reference of the same scale.

    Parameters
    ----------
    run : path
        ``results/<scale>``.
    reference : path
        Folder that :func:`.reference.publish` wrote.

    Returns
    -------
    run, reference : Path

    Raises
    ------
    InvalidInput
        If a folder lacks its results, or the scales differ.
    """
    run, reference = _folder("run", run), _folder("reference", reference)
    if not _is_file(reference / "manifest.json"):
        expected = "a folder that `make publish` has written"
        raise InvalidInput("reference", redacted(str(reference)), expected)
    if not _is_file(run / "claims.parquet"):
        expected = "results of a whole run, e.g. results/paper"
        raise InvalidInput("run", redacted(str(run)), expected)
    _require_one_scale(run, read_json(reference / "manifest.json"))
    return run, reference


def _folder(key: str, path: str | Path) -> Path:
    is_path = isinstance(path, str | Path) and "\0" not in str(path)
    require(is_path, key, path, "the path of a folder")
    return Path(path)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that is too long
        return False


def _require_one_scale(run: Path, manifest: Mapping[str, Any]) -> None:
    """Refuse a run at another scale than that of the reference."""
    expected = manifest.get("scale") if isinstance(manifest, Mapping) else None
    scale = scale_of(run)
    if None not in (scale, expected) and scale != expected:
        same = f"{expected}, the scale of the reference: numbers of another scale differ"
        raise InvalidInput(f"another scale: {run}", scale, same)


def scale_of(run: str | Path) -> str | None:
    """Return the scale that the plan of a run states; None without a plan.

    Parameters
    ----------
    run : path
        ``results/<scale>``, or a reference, whose manifest states the scale.

    Returns
    -------
    str or None
    """
    for name, keys in (("plan.json", ("config", "scale")), ("manifest.json", ("scale",))):
        if not (file := Path(run, name)).is_file():
            continue
        value = read_json(file)
        for key in keys:
            value = value.get(key) if isinstance(value, Mapping) else None
        return value if isinstance(value, str) else None
    return None


def _machines(manifest: Mapping[str, Any]) -> Iterable[str]:
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


def moved(numbers: pl.DataFrame) -> list[str]:
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
    "audit/errata": (("id",), "outcome_found"),
    "theorems": (("paper", "number"), "verdict"),
}
"""Files with words in them: the columns that say of what, and the word."""


def _verdicts(run: Path, reference: Path) -> Iterable[str]:
    for file, (keys, word) in VERDICTS.items():
        before, after = (
            _words(folder / f"{file}.parquet", keys, word) for folder in (reference, run)
        )
        for key in sorted(before.keys() | after.keys()):
            before_word, two = before.get(key, "absent"), after.get(key, "absent")
            if before_word != two:
                qualifiers = ", ".join(filter(None, key[1:]))
                yield f"{key[0]} ({qualifiers}): {before_word} became {two}".replace(" ()", "")


def _words(path: Path, keys: tuple[str, ...], word: str) -> dict[tuple[str, ...], str]:
    """Return the words listed under each key; empty if there is no file."""
    if not path.exists():
        return {}
    names = {True: "flagged", False: "not flagged"}
    return {
        tuple(str(row[key]) for key in keys): str(names.get(row[word], row[word]))
        for row in rows_of(path).iter_rows(named=True)
    }


def _privacy(run: Path, reference: Path) -> tuple[int, list[str]]:
    """Compare the epsilons, which have no Monte-Carlo error.

    Returns the number of compared epsilons, and one line per difference.
    """
    published, two = (rows_of(f / "privacy.parquet") for f in (reference, run))
    keys = [key for key in ("experiment", "algorithm", "variant") if key in published.columns]
    compared, lines = 0, []
    groups = two.partition_by(keys, as_dict=True) if keys and keys[0] in two.columns else {}
    for key, rows in published.partition_by(keys, as_dict=True).items() if keys else ():
        rerun_rows = groups.get(key)
        name = " ".join(map(str, key))
        if rerun_rows is None or rerun_rows.height != rows.height:
            lines.append(f"privacy of {name}: {rows.height} settings became "
                         f"{0 if rerun_rows is None else rerun_rows.height}")  # fmt: skip
            continue
        for column in (epsilon for epsilon in EPSILONS if epsilon in published.columns):
            if column not in rerun_rows.columns:
                lines.append(f"privacy of {name}: {column} is missing")
                continue
            a, b = (np.sort(f[column].cast(pl.Float64).to_numpy()) for f in (rows, rerun_rows))
            compared += len(a)
            if not np.allclose(a, b, rtol=1e-4, atol=1e-9, equal_nan=True):
                lines.append(f"privacy of {name}: {column} differs")
    return compared, lines
