"""Brazil: workers in the 2000 census (IPUMS International); label: monthly income over 300.

The file of the mirror is the preprocessed extract that accompanies Lee and Kifer (KDD 2018): 52
numbers and a label per line, without column names. The names here are inferred: the blocks of
indicators have the sizes, the order and the frequencies of IPUMS International's harmonised codes.
A row with unknown religion or race has zeros in the block. The licence forbids publishing records.
"""

from __future__ import annotations

import gzip
import zlib

import numpy as np
import polars as pl

from private_consensus.common.errors import InvalidInput

from . import ipums, surrogates
from .catalogue import Publisher, aggregates
from .downloads import Downloads
from .mirror import Mirror
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


def from_mirror(mirror: Mirror) -> pl.DataFrame:
    """Build the canonical table from the extract of a mirror."""
    return from_text(mirror.file("ipums-br/IPUMS-BR.dat.gz").read_bytes())


def from_text(contents: bytes) -> pl.DataFrame:
    """Build the canonical table from a gzip file with 52 numbers and a label per line."""
    try:
        text = gzip.decompress(contents)
    except (OSError, EOFError, zlib.error) as error:
        damage = f"an unreadable file ({type(error).__name__})"
        raise InvalidInput("ipums-br", damage, "a complete gzip file") from None
    values = np.fromstring(text.decode("ascii"), sep=" ", dtype=np.float64)
    if values.size % (FEATURES + 1):
        raise InvalidInput(
            "ipums-br", f"{values.size} numbers", f"{FEATURES + 1} numbers in every line"
        )
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


def from_ipums(table: pl.DataFrame) -> pl.DataFrame:
    """Build the canonical table from an IPUMS International extract (harmonised integer codes).

    The table contains employed persons with a known monthly income, in the currency of the census.
    """
    persons = table.filter(
        (pl.col("EMPSTAT") == 1) & (pl.col("INCTOT") < 9_999_998) & (pl.col("HRSWORK1") < 998)
    )
    codes = {
        "region": "REGNBR",
        "marital_status": "MARST",
        "education": "EDATTAIN",
        "occupation": "OCCISCO",
        "class_of_worker": "CLASSWK",
    }
    return expand(
        COLLAPSED.check(
            persons.select(
                **{name: _by_rank(code, BLOCKS[name]) for name, code in codes.items()},
                religion=_by_rank("RELIGION", BLOCKS["religion"]),
                race=pl.col("RACE").replace_strict(
                    {10: "White", 20: "Black", 30: "Indigenous", 40: "Asian", 51: "Brown"},
                    default="Unknown",
                    return_dtype=pl.String,
                ),
                ownership=_one_or_two("OWNERSHIP"),
                autos=pl.when(pl.col("AUTOS") > 6).then(0).otherwise(pl.col("AUTOS")),
                computer=pl.when(pl.col("COMPUTER") == 2).then(2).otherwise(1),
                rooms=pl.col("ROOMS").clip(1, 30),
                persons=pl.col("PERSONS"),
                children=pl.col("NCHILD"),
                young_children=pl.col("NCHLT5"),
                age=pl.col("AGE").clip(0, 100),
                sex=pl.col("SEX"),
                nativity=_one_or_two("NATIVITY"),
                hours=pl.col("HRSWORK1"),
                disabled=_one_or_two("DISABLED"),
                years_resident=pl.col("MIGYRS1").clip(0, 98),
                **{LABEL: (pl.col("INCTOT") > 300).cast(pl.Int64)},
            )
        )
    )


def _by_rank(column: str, values: tuple[str, ...]) -> pl.Expr:
    """Convert a column of codes 1, 2, ... to the values in this order."""
    names = dict(enumerate(values, start=1))
    return pl.col(column).replace_strict(names, default="Unknown", return_dtype=pl.String)


def _one_or_two(column: str) -> pl.Expr:
    return pl.when(pl.col(column) == 1).then(1).otherwise(2)
