"""Brazil: workers in the 2000 census (IPUMS International); label: monthly income over 300.

The file of the mirror is the preprocessed extract that accompanies Lee and Kifer (KDD 2018): 52
numbers and a label per line, without column names. The names here are inferred: the blocks of
indicators have the sizes, the order and the frequencies of IPUMS International's harmonised codes.
A row with unknown religion or race has zeros in the block. The licence forbids publishing records.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import polars as pl

from . import ipums, surrogates
from .catalogue import Publisher, aggregates
from .downloads import Downloads
from .tables import Protected, Schema

ROWS, FEATURES = 38_000, 52
LABEL = "income_over_300"

# Indicator columns by attribute, with values in the order of the IPUMS codes.
BLOCKS = {
    "region": ("North", "Northeast", "Southeast", "South", "Central-West"),
    "marital_status": ("Single", "Married", "Separated", "Widowed"),
    "religion": ("None", "Buddhist", "Hindu", "Jewish", "Muslim", "Christian", "Other"),
    "race": ("White", "Black", "Indigenous", "Asian", "Brown"),
    "education": ("Less-than-primary", "Primary", "Secondary", "University"),
    "occupation": (
        "Legislators-managers", "Professionals", "Technicians", "Clerks", "Service-sales",
        "Agriculture", "Crafts", "Machine-operators", "Elementary", "Armed-forces", "Other",
    ),
    "class_of_worker": ("Self-employed", "Employee", "Unpaid"),
}  # fmt: skip

# Attributes in the order of the file; an attribute in BLOCKS has one column per value.
ORDER = (
    "region", "ownership", "autos", "computer", "rooms", "persons", "children", "young_children",
    "age", "sex", "marital_status", "nativity", "religion", "race", "education", "occupation",
    "class_of_worker", "hours", "disabled", "years_resident",
)  # fmt: skip

COLUMNS = tuple(
    column for name in ORDER for column in ([f"{name}={v}" for v in BLOCKS.get(name, ())] or [name])
)

SCHEMA = Schema(
    columns=(*COLUMNS, LABEL),
    categories={},
    label=LABEL,
    positive=0,
    protected={"sex": Protected(column="sex", ones=(1,), meaning="1 = male")},
)

# The same attributes with one categorical column per block, for sampling the surrogate.
COLLAPSED = Schema(
    columns=(*ORDER, LABEL),
    categories={name: ("Unknown", *values) for name, values in BLOCKS.items()},
    label=LABEL,
    positive=0,
)


def from_mirror(folder: Path) -> pl.DataFrame:
    """Build the canonical table from the extract of a mirror."""
    return from_text(gzip.decompress((folder / "IPUMS-BR.dat.gz").read_bytes()))


def from_text(text: bytes) -> pl.DataFrame:
    """Build the canonical table from lines with 52 numbers and a label."""
    values = np.fromstring(text.decode("ascii"), sep=" ", dtype=np.float64)
    rows = values.reshape(-1, FEATURES + 1).astype(np.int64)
    return SCHEMA.check(pl.DataFrame(rows, schema=list(SCHEMA.columns), orient="row"))


def fetch(downloads: Downloads, publisher: Publisher) -> pl.DataFrame:
    """Order an extract of IPUMS International and build the canonical table from it."""
    return from_ipums(ipums.extract(downloads, publisher))


def surrogate(rows: int | None, generator: np.random.Generator) -> pl.DataFrame:
    """Sample a table with the schema and the marginals of the extract, 38,000 rows by default."""
    return expand(surrogates.draw(aggregates("brazil"), rows or ROWS, generator))


def expand(table: pl.DataFrame) -> pl.DataFrame:
    """Replace each categorical column by its indicator columns; ``Unknown`` has only zeros."""
    columns = [
        (pl.col(name) == value).cast(pl.Int64).alias(f"{name}={value}")
        for name in BLOCKS
        for value in BLOCKS[name]
    ]
    return SCHEMA.check(table.with_columns(columns))


# First and last code of known numbers; other codes are "unknown" or "not in universe".
KNOWN_CODES = {
    "OWNERSHIP": (1, 2), "AUTOS": (0, 7), "COMPUTER": (1, 2), "ROOMS": (0, 97), "PERSONS": (1, 97),
    "NCHILD": (0, 97), "NCHLT5": (0, 97), "AGE": (0, 997), "SEX": (1, 2), "NATIVITY": (1, 2),
    "HRSWORK1": (0, 997), "DISABLED": (1, 2), "MIGYRS1": (0, 97), "INCTOT": (-9_999_997, 9_999_997),
}  # fmt: skip


def from_ipums(table: pl.DataFrame) -> pl.DataFrame:
    """Build the canonical table from an IPUMS International extract (harmonised integer codes).

    The table contains employed persons with known hours and a known monthly income, in the currency
    of the census. Other unknown numbers are null; an unknown category has zeros in its block.
    """
    numbers = {
        name: pl.when(pl.col(name).is_between(*ends)).then(pl.col(name))
        for name, ends in KNOWN_CODES.items()
    }
    persons = table.with_columns(**numbers).filter(
        pl.col("EMPSTAT") == 1, pl.col("INCTOT").is_not_null(), pl.col("HRSWORK1").is_not_null()
    )
    codes = {
        "region": "REGNBR",
        "marital_status": "MARST",
        "religion": "RELIGION",
        "education": "EDATTAIN",
        "occupation": "OCCISCO",
        "class_of_worker": "CLASSWK",
    }
    return expand(
        COLLAPSED.check(
            persons.select(
                **{name: _by_rank(code, BLOCKS[name]) for name, code in codes.items()},
                race=pl.col("RACE").replace_strict(
                    {10: "White", 20: "Black", 30: "Indigenous", 40: "Asian", 51: "Brown"},
                    default="Unknown",
                    return_dtype=pl.String,
                ),
                ownership=pl.col("OWNERSHIP"),
                autos=pl.col("AUTOS"),
                computer=pl.col("COMPUTER"),
                rooms=pl.col("ROOMS").clip(1, 30),
                persons=pl.col("PERSONS"),
                children=pl.col("NCHILD"),
                young_children=pl.col("NCHLT5"),
                age=pl.col("AGE").clip(upper_bound=100),
                sex=pl.col("SEX"),
                nativity=pl.col("NATIVITY"),
                hours=pl.col("HRSWORK1"),
                disabled=pl.col("DISABLED"),
                years_resident=pl.col("MIGYRS1"),
                **{LABEL: (pl.col("INCTOT") > 300).cast(pl.Int64)},
            )
        )
    )


def _by_rank(column: str, values: tuple[str, ...]) -> pl.Expr:
    """Convert a column of codes 1, 2, ... to the values in this order."""
    names = dict(enumerate(values, start=1))
    return pl.col(column).replace_strict(names, default="Unknown", return_dtype=pl.String)
