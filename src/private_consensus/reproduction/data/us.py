"""US: persons with an income in the American Community Survey 2019; label: income over 25,000.

The survey replaces the extracts of the dissertation, which are not public. It has two sources with
one canonical schema: the excerpt of the mirror (NIST's Diverse Communities Data Excerpts), and the
public person and housing files of the Census Bureau. Columns derived from income (decile, poverty
ratio), weights and places are omitted. Persons without a family are a family of one; persons
without an industry have the industry ``None``.
"""

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from . import surrogates
from .catalogue import aggregates
from .tables import SEX_RACE_AGE, Protected, Schema, decoded

MARITAL = (
    "Married", "Married-spouse-absent", "Widowed", "Divorced", "Separated", "Never-married",
)  # fmt: skip
HISPANIC = ("Not-Hispanic", "Mexican", "Puerto-Rican", "Cuban", "Other-Hispanic")
RACE = ("White", "Black", "Native", "Asian-Pacific", "Other", "Two-or-more")
TENURE = ("Group-quarters", "Own", "Rent")
EDUCATION = (
    "No-schooling", "Preschool", "Grade-1-8", "Grade-9-12", "High-school", "GED", "Some-college",
    "Associate", "Bachelor", "Master", "Professional", "Doctorate",
)  # fmt: skip
INDUSTRY = (
    "Agriculture", "Extraction", "Utilities", "Construction", "Manufacturing", "Wholesale",
    "Retail", "Transport", "Information", "Finance", "Professional", "Education", "Health",
    "Social", "Arts-food", "Other-services", "Administration", "Military", "Unemployed", "None",
)  # fmt: skip


def values_of_ranges(values: Sequence[str], ranges: Sequence[tuple[int, int]]) -> dict[int, str]:
    """Map each code to its value; ``ranges`` has the first and the last code of each value."""
    return {
        code: value
        for value, (first, last) in zip(values, ranges, strict=True)
        for code in range(first, last + 1)
    }


# First and last Census industry code (2018 scheme) of each industry but None.
INDUSTRY_OF_CODE = values_of_ranges(INDUSTRY[:-1], [
    (170, 290), (370, 490), (570, 690), (770, 770), (1070, 3990), (4070, 4590), (4670, 5790),
    (6070, 6390), (6470, 6780), (6870, 7190), (7270, 7790), (7860, 7890), (7970, 8290),
    (8370, 8470), (8560, 8690), (8770, 9290), (9370, 9590), (9670, 9870), (9920, 9920),
])  # fmt: skip

SCHEMA = Schema(
    columns=(*aggregates("us")["columns"], "income"),
    categories={
        "sex": ("Female", "Male"),
        "marital_status": MARITAL,
        "hispanic": HISPANIC,
        "race": RACE,
        "tenure": TENURE,
        "education": EDUCATION,
        "industry": INDUSTRY,
    },
    label="income",
    positive=25_000,
    protected={
        **SEX_RACE_AGE,
        "marital_status": Protected(
            "1 = married", pl.col("marital_status").str.starts_with("Married")
        ),
        "employed": Protected("1 = employed", pl.col("employed") == 1),
    },
)

STATES = {"pa": 42, "il": 17, "ga": 13, "wa": 53}
"""Names and numbers of states in the names of the Census Bureau's files."""


def read(folder: Path) -> pl.DataFrame:
    """Read the excerpt or the files of the Census Bureau."""
    excerpt = folder / "national2019.csv"
    if excerpt.is_file():
        return from_excerpt(pl.read_csv(excerpt, glob=False, infer_schema=False))
    return pl.concat(
        from_census(
            _member(folder / f"csv_p{state}.zip", f"psam_p{number}.csv", _PERSON),
            _member(folder / f"csv_h{state}.zip", f"psam_h{number}.csv", _HOUSE),
        )
        for state, number in STATES.items()
    )


def surrogate(rows: int | None, generator: np.random.Generator) -> pl.DataFrame:
    """Sample a table with schema, marginals and, by default, size of the mirror's excerpt."""
    about = aggregates("us")
    return SCHEMA.check(surrogates.draw(about, rows or about["rows"], generator))


def from_excerpt(table: pl.DataFrame) -> pl.DataFrame:
    """Build the canonical table from NIST's excerpt: columns of text, where ``N`` is missing."""
    return _canonical(
        table.cast(pl.Float64, strict=False).cast(pl.Int64, strict=False),
        **_SHARED,
        marital_status=decoded("MSP", MARITAL),
        hispanic=decoded("HISP", HISPANIC, first=0),
        tenure=decoded("OWN_RENT", TENURE, first=0),
        education=decoded("EDU", EDUCATION),
        industry=decoded("INDP_CAT", INDUSTRY, first=0, default="None"),
    )


def from_census(persons: pl.DataFrame, houses: pl.DataFrame) -> pl.DataFrame:
    """Build the canonical table from the Census Bureau's records (PUMS 2019, integers).

    Household records are joined to the persons on ``SERIALNO``.
    """
    schooling = [(1, 1), (2, 3), (4, 11), (12, 15), (16, 16), (17, 17), (18, 19)]
    schooling += [(n, n) for n in range(20, 25)]
    return _canonical(
        persons.join(houses, on="SERIALNO", how="left", maintain_order="left"),
        **_SHARED,
        marital_status=decoded(pl.col("MSP").fill_null(6), MARITAL),
        hispanic=decoded(pl.col("HISP").clip(upper_bound=len(HISPANIC)), HISPANIC),
        tenure=decoded("TEN", ("Own", "Own", "Rent", "Rent"), default="Group-quarters"),
        education=decoded("SCHL", values_of_ranges(EDUCATION, schooling)),
        industry=decoded("INDP", INDUSTRY_OF_CODE, default="None"),
    )


def _canonical(table: pl.DataFrame, **columns: pl.Expr) -> pl.DataFrame:
    """Select the persons with an income, and derive ``employed`` from the industry."""
    idle = pl.col("industry").is_in(["None", "Unemployed"])
    persons = table.select(**columns).filter(pl.col("income").is_not_null())
    return SCHEMA.check(persons.with_columns(employed=(~idle).cast(pl.Int64)))


def _member(archive: Path, name: str, columns: tuple[str, ...]) -> pl.DataFrame:
    with zipfile.ZipFile(archive) as opened:
        text = opened.read(name)
    table = pl.read_csv(io.BytesIO(text), columns=list(columns), infer_schema=False)
    return table.with_columns(pl.exclude("SERIALNO").cast(pl.Int64))


_SHARED = {
    "age": pl.col("AGEP"),
    "sex": decoded("SEX", ("Male", "Female")),
    "race": decoded(
        "RAC1P", values_of_ranges(RACE, [(1, 1), (2, 2), (3, 5), (6, 7), (8, 8), (9, 9)])
    ),
    "children": pl.col("NOC").fill_null(0),
    "family_size": pl.col("NPF").fill_null(1),
    "difficulties": pl.sum_horizontal(
        pl.col(column).eq_missing(1).cast(pl.Int64) for column in ("DREM", "DPHY", "DEYE", "DEAR")
    ),
    "income": pl.col("PINCP"),
}
"""Columns with equal codes in the excerpt and in the files of the Census Bureau."""
_PERSON = (
    "SERIALNO", "AGEP", "SEX", "MSP", "HISP", "RAC1P", "SCHL", "INDP", "DREM", "DPHY", "DEYE",
    "DEAR", "PINCP",
)  # fmt: skip
_HOUSE = ("SERIALNO", "NOC", "NPF", "TEN")
