"""UCI Adult (Becker and Kohavi, 1996): 48,842 persons of the 1994 US census; label: income > 50K.

The canonical table has the 32,561 rows of the training file, then the 16,281 rows of the test file.
Missing values (``?``) are null, and labels have no trailing dot.
"""

import io
import zipfile
from pathlib import Path

import numpy as np
import polars as pl

from . import surrogates
from .catalogue import aggregates
from .tables import SEX_RACE_AGE, Protected, Schema

FILES = ("adult.data", "adult.test")
TRAIN, ROWS = 32_561, 48_842

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
            "1 = married", pl.col("marital_status").str.starts_with("Married-")
        ),
        "relationship": Protected(
            "1 = husband or wife", pl.col("relationship").is_in(["Husband", "Wife"])
        ),
    },
    train=TRAIN,
)


def read(folder: Path) -> pl.DataFrame:
    """Read the two files of UCI, from a folder or from the archive in it."""
    archive = folder / "adult.zip"
    files = zipfile.Path(archive) if archive.is_file() else folder
    return from_files(*((files / name).read_bytes() for name in FILES))


def from_files(*contents: bytes) -> pl.DataFrame:
    """Build the canonical table from the contents of ``adult.data`` and of ``adult.test``."""
    text = b"\n".join(content.strip() for content in contents).replace(b", ", b",")
    table = pl.read_csv(
        io.BytesIO(text),
        has_header=False,
        comment_prefix="|",
        new_columns=list(SCHEMA.columns),
        schema_overrides={c: pl.String for c in SCHEMA.categories},
        null_values="?",
    )
    return SCHEMA.check(table.with_columns(pl.col("income").str.strip_chars_end(".")))


def surrogate(rows: int | None, generator: np.random.Generator) -> pl.DataFrame:
    """Sample a table with Adult's schema, marginals and number of rows; no row is a person."""
    drawn = surrogates.draw(aggregates("adult"), rows or ROWS, generator)
    return SCHEMA.check(_with_gaps(drawn, generator))


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
