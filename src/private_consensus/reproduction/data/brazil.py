"""Brazil: workers in the 2000 census (IPUMS International); label: monthly income over 300.

The file of the mirror is the preprocessed extract that accompanies Lee and Kifer (KDD 2018): 52
numbers and a label per line, without column names. The names here are inferred: the blocks of
indicators have the sizes, the order and the frequencies of IPUMS International's harmonised codes.
A row with unknown religion or race has zeros in the block. The licence forbids publishing records.
"""

from pathlib import Path

import numpy as np
import polars as pl

from . import surrogates
from .catalogue import aggregates
from .downloads import EXTRACT
from .tables import Protected, Schema, decoded

ROWS = 38_000
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
    protected={"sex": Protected("1 = male", pl.col("sex") == 1)},
)


def read(folder: Path) -> pl.DataFrame:
    """Read the extract of Lee and Kifer, or an extract from IPUMS."""
    if (folder / EXTRACT).is_file():
        return from_ipums(pl.read_parquet(folder / EXTRACT, glob=False))
    file, names = folder / "IPUMS-BR.dat.gz", list(SCHEMA.columns)
    table = pl.read_csv(file, separator=" ", has_header=False, new_columns=names, glob=False)
    return SCHEMA.check(table)


def surrogate(rows: int | None, generator: np.random.Generator) -> pl.DataFrame:
    """Sample a table with the schema and the marginals of the extract, 38,000 rows by default."""
    return expand(surrogates.draw(aggregates("brazil"), rows or ROWS, generator))


def expand(table: pl.DataFrame) -> pl.DataFrame:
    """Replace each categorical column by its indicator columns; ``Unknown`` has only zeros."""
    indicators = {
        f"{name}={value}": pl.col(name) == value
        for name, values in BLOCKS.items()
        for value in values
    }
    return SCHEMA.check(table.with_columns(**indicators))


# Variable of each number, with the first and last known code; others mean unknown.
NUMBERS = {
    "ownership": ("OWNERSHIP", 1, 2),
    "autos": ("AUTOS", 0, 7),
    "computer": ("COMPUTER", 1, 2),
    "rooms": ("ROOMS", 0, 97),
    "persons": ("PERSONS", 1, 97),
    "children": ("NCHILD", 0, 97),
    "young_children": ("NCHLT5", 0, 97),
    "age": ("AGE", 0, 997),
    "sex": ("SEX", 1, 2),
    "nativity": ("NATIVITY", 1, 2),
    "hours": ("HRSWORK1", 0, 997),
    "disabled": ("DISABLED", 1, 2),
    "years_resident": ("MIGYRS1", 0, 97),
    "income": ("INCTOT", -9_999_997, 9_999_997),
}
# Variable of each category, whose codes are 1, 2, ... in the order of BLOCKS.
CATEGORIES = {
    "region": "REGNBR",
    "marital_status": "MARST",
    "religion": "RELIGION",
    "education": "EDATTAIN",
    "occupation": "OCCISCO",
    "class_of_worker": "CLASSWK",
}


def from_ipums(table: pl.DataFrame) -> pl.DataFrame:
    """Build the canonical table from an IPUMS International extract (harmonised integer codes).

    The table contains employed persons with known hours and a known monthly income, in the currency
    of the census. Other unknown numbers are null; an unknown category has zeros in its block.
    """
    races = dict(zip((10, 20, 30, 40, 51), BLOCKS["race"], strict=True))
    persons = table.filter(pl.col("EMPSTAT") == 1).select(
        **{
            name: pl.when(pl.col(code).is_between(first, last)).then(pl.col(code))
            for name, (code, first, last) in NUMBERS.items()
        },
        **{
            name: decoded(code, BLOCKS[name], default="Unknown")
            for name, code in CATEGORIES.items()
        },
        race=decoded("RACE", races, default="Unknown"),
    )
    workers = persons.drop_nulls(["income", "hours"]).with_columns(
        pl.col("rooms").clip(1, 30),
        pl.col("age").clip(upper_bound=100),
        (pl.col("income") > 300).alias(LABEL),
    )
    return expand(workers)
