"""UCI Adult (Becker and Kohavi, 1996): 48,842 persons of the 1994 US census; label: income > 50K.

The canonical table has the 32,561 rows of the training file, then the 16,281 rows of the test file.
Missing values (``?``) are null, and labels have no trailing dot.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import polars as pl

from . import surrogates
from .catalogue import Publisher, aggregates
from .downloads import Downloads, Unavailable
from .tables import SEX_RACE_AGE, Protected, Schema

FILES = ("adult.data", "adult.test")
TRAIN, ROWS = 32_561, 48_842

UCIMLREPO_SECONDS = 60.0
"""Time limit of ``ucimlrepo``."""
_FETCH = """
import sys
from ucimlrepo import fetch_ucirepo
fetch_ucirepo(id=2).data.original.to_csv(sys.argv[1], index=False)
"""

# The aggregates list all columns and all values of the publisher's code book.
_COLUMNS = aggregates("adult")["columns"]

SCHEMA = Schema(
    columns=(*_COLUMNS, "income"),
    categories={
        **{name: tuple(about) for name, about in _COLUMNS.items() if "quantiles" not in about},
        "income": ("<=50K", ">50K"),
    },
    label="income",
    positive=">50K",
    # Persons who never worked have no occupation.
    only_incomplete={"workclass": ("Never-worked",)},
    protected={
        **SEX_RACE_AGE,
        "marital_status": Protected(
            column="marital_status",
            values=("Married-AF-spouse", "Married-civ-spouse", "Married-spouse-absent"),
            meaning="1 = married",
        ),
        "relationship": Protected(
            column="relationship", values=("Husband", "Wife"), meaning="1 = husband or wife"
        ),
    },
    train=TRAIN,
)


def from_mirror(folder: Path) -> pl.DataFrame:
    """Build the canonical table from the two UCI files of a mirror."""
    return from_files(*((folder / name).read_bytes() for name in FILES))


def from_files(train: bytes, test: bytes) -> pl.DataFrame:
    """Build the canonical table from the contents of ``adult.data``, then of ``adult.test``."""
    return canonical(pl.concat([_read(train), _read(test)]))


def canonical(table: pl.DataFrame) -> pl.DataFrame:
    """Convert UCI's table, from its files or from ``ucimlrepo``, to the canonical table.

    Column names may contain dashes, values may have surrounding blanks, and labels a trailing dot.
    Missing values may be ``?``, NaN, empty or null.
    """
    text = pl.selectors.string()
    table = table.rename({name: name.replace("-", "_") for name in table.columns})
    table = table.with_columns(text.str.strip_chars()).with_columns(
        pl.when(text.is_in(["?", "nan", ""])).then(None).otherwise(text).name.keep()
    )
    return SCHEMA.check(table.with_columns(pl.col("income").str.strip_chars_end(".")))


def fetch(downloads: Downloads, publisher: Publisher) -> pl.DataFrame:
    """Download Adult through ``ucimlrepo`` or as the archive of the UCI repository."""
    if publisher.name == "ucimlrepo":
        return _from_ucimlrepo(downloads, publisher.url)
    with zipfile.ZipFile(downloads.fetch(publisher.url, "uci-adult.zip")) as archive:
        return from_files(*(archive.read(name) for name in FILES))


def _from_ucimlrepo(downloads: Downloads, url: str) -> pl.DataFrame:
    # The package has no time limit, so it runs in a process that can be stopped.
    downloads.check_reachable(url)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "adult.csv"
        command = [sys.executable, "-c", _FETCH, str(path)]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=UCIMLREPO_SECONDS)
            return canonical(pl.read_csv(path, glob=False, infer_schema_length=None))
        except subprocess.TimeoutExpired as error:
            raise Unavailable(f"no table within {error.timeout:g} s") from None
        except subprocess.CalledProcessError as error:
            lines = error.stderr.decode(errors="replace").strip().splitlines()
            raise Unavailable(
                lines[-1] if lines else "ucimlrepo failed without a message"
            ) from None


def surrogate(rows: int | None, generator: np.random.Generator) -> pl.DataFrame:
    """Sample a table with Adult's schema, marginals and number of rows; no row is a person."""
    rows = rows or ROWS
    drawn = surrogates.draw(aggregates("adult"), rows, generator, make_consistent=_make_consistent)
    return SCHEMA.check(_with_gaps(drawn, generator))


def _read(contents: bytes) -> pl.DataFrame:
    lines = [line for line in contents.splitlines() if line.strip() and not line.startswith(b"|")]
    return pl.read_csv(
        io.BytesIO(b"\n".join(lines).replace(b", ", b",")),
        has_header=False,
        new_columns=list(SCHEMA.columns),
        schema_overrides={c: pl.String for c in SCHEMA.categories},
    )


def _make_consistent(
    columns: dict[str, np.ndarray], generator: np.random.Generator
) -> dict[str, np.ndarray]:
    """Make columns consistent (a husband is male and married); keep the counts of values."""
    number = {
        "Preschool": 1, "1st-4th": 2, "5th-6th": 3, "7th-8th": 4, "9th": 5, "10th": 6, "11th": 7,
        "12th": 8, "HS-grad": 9, "Some-college": 10, "Assoc-voc": 11, "Assoc-acdm": 12,
        "Bachelors": 13, "Masters": 14, "Prof-school": 15, "Doctorate": 16,
    }  # fmt: skip
    columns["education_num"] = np.array([number[e] for e in columns["education"]])
    husband = columns["relationship"] == "Husband"
    wife = columns["relationship"] == "Wife"
    married = columns["marital_status"] == "Married-civ-spouse"
    single = np.flatnonzero(~(husband | wife) & married)
    # Unmarried persons receive the marital states of spouses, so that the counts are unchanged.
    replaced_states = columns["marital_status"][(husband | wife) & ~married]
    count = min(len(single), len(replaced_states))
    columns["marital_status"][single[:count]] = generator.permutation(replaced_states)[:count]
    columns["marital_status"][husband | wife] = "Married-civ-spouse"
    males = int((columns["sex"] == "Male").sum()) - int(husband.sum())
    unmarried_rows = np.flatnonzero(~(husband | wife))
    sex = np.where(np.arange(len(unmarried_rows)) < max(males, 0), "Male", "Female")
    columns["sex"][husband], columns["sex"][wife] = "Male", "Female"
    columns["sex"][unmarried_rows] = generator.permutation(sex)
    return columns


def _with_gaps(table: pl.DataFrame, generator: np.random.Generator) -> pl.DataFrame:
    """Remove values as in UCI's files, in which 45,222 of 48,842 rows are complete."""
    rows = table.height
    fraction = rows / ROWS
    order = generator.permutation(rows)
    jobless, never, abroad, both = (round(count * fraction) for count in (2799, 10, 857, 46))
    names = ("workclass", "occupation", "native_country")
    work, occupation, country = (table[name].to_numpy().copy() for name in names)
    work[order[:jobless]] = None
    occupation[order[: jobless + never]] = None
    work[work == "Never-worked"] = "Private"
    work[order[jobless : jobless + never]] = "Never-worked"
    start = jobless + never - both
    country[order[start : start + abroad]] = None
    return table.with_columns(
        pl.Series(name, values.tolist(), dtype=pl.String)
        for name, values in zip(names, (work, occupation, country), strict=True)
    )
