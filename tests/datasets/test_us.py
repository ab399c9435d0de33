"""Test that both sources of the US data give one canonical table, on synthetic records."""

import io

import polars as pl
import pytest
from test_adult import zipped

from private_consensus.reproduction.data import acquisition, us
from private_consensus.reproduction.data.acquisition import Acquisition, acquire
from private_consensus.reproduction.data.catalogue import entry
from private_consensus.reproduction.data.tables import decoded

# Each source codes the same five persons. The sixth person has no income and is omitted.
CANONICAL = pl.DataFrame(
    {
        "age": [34, 71, 19, 45, 28],
        "sex": ["Male", "Female", "Female", "Male", "Female"],
        "marital_status": ["Married", "Widowed", "Never-married", "Divorced", "Separated"],
        "hispanic": ["Not-Hispanic", "Mexican", "Other-Hispanic", "Puerto-Rican", "Cuban"],
        "race": ["White", "Black", "Asian-Pacific", "Native", "Two-or-more"],
        "children": [2, 0, 0, 1, 0],
        "family_size": [4, 1, 1, 3, 2],
        "tenure": ["Own", "Rent", "Group-quarters", "Rent", "Own"],
        "education": ["Bachelor", "Grade-1-8", "Some-college", "GED", "Doctorate"],
        "industry": ["Construction", "None", "Unemployed", "Arts-food", "Education"],
        "employed": [1, 0, 0, 1, 1],
        "difficulties": [0, 3, 0, 1, 0],
        "income": [25_001, 12_000, 0, 25_000, -500],
    }
)

EXCERPT = """\
PUMA,AGEP,SEX,MSP,HISP,RAC1P,NOC,NPF,HOUSING_TYPE,OWN_RENT,DENSITY,INDP,INDP_CAT,EDU,PINCP,\
PINCP_DECILE,POVPIP,DVET,DREM,DPHY,DEYE,DEAR,PWGTP,WGTP
01-1,34,1,1,0,1,2,4,1,1,9.5,770,3,9,25001.0,4,100,N,2,2,2,2,1,1
01-1,71,2,3,1,2,0,N,1,2,9.5,N,N,3,12000.0,4,100,N,1,1,2,1,1,1
01-1,19,2,6,4,6,N,N,3,0,9.5,9920,18,7,0.0,4,100,N,2,2,2,2,1,1
01-1,45,1,4,2,3,1,3,1,2,9.5,8680,14,6,25000.0,4,100,2,2,2,1,2,1,1
01-1,28,2,5,3,9,0,2,1,1,9.5,7860,11,12,-500.0,4,100,N,2,2,2,2,1,1
01-1,9,2,N,0,1,0,4,1,1,9.5,N,N,3,N,N,100,N,2,2,2,2,1,1
"""

PERSONS = """\
SERIALNO,SPORDER,AGEP,SEX,MSP,HISP,RAC1P,SCHL,INDP,DREM,DPHY,DEYE,DEAR,PINCP
A1,1,34,1,1,1,1,21,770,2,2,2,2,25001
B1,1,71,2,3,2,2,9,,1,1,2,1,12000
G1,1,19,2,6,24,6,19,9920,2,2,2,2,0
C1,1,45,1,4,3,4,17,8590,2,2,1,2,25000
D1,1,28,2,5,4,9,24,7870,2,2,2,2,-500
A1,2,9,2,,1,1,5,,2,2,2,2,
"""
HOUSES = """\
SERIALNO,NOC,NPF,TEN,VALP
G1,,,,
A1,2,4,1,9
B1,0,,3,9
C1,1,3,4,9
D1,0,2,2,9
"""


def numbers(text: str) -> pl.DataFrame:
    table = pl.read_csv(io.StringIO(text), infer_schema=False)
    return table.with_columns(pl.exclude("SERIALNO").cast(pl.Int64))


def test_the_excerpt_maps_to_the_canonical_table():
    table = pl.read_csv(io.StringIO(EXCERPT), infer_schema=False)
    assert us.from_excerpt(table).equals(CANONICAL)


def test_census_bureau_files_map_to_the_canonical_table():
    assert us.from_census(numbers(PERSONS), numbers(HOUSES)).equals(CANONICAL)


def test_every_industry_code_of_the_excerpt_lies_in_its_category(mirror_path):
    table = pl.read_csv(f"{mirror_path}/acs-us/national2019.csv", infer_schema=False)
    employed = table.filter(pl.col("INDP") != "N").select(pl.col("INDP", "INDP_CAT").cast(pl.Int64))
    industries = employed.select(
        by_code=decoded("INDP", us.INDUSTRY_OF_CODE),
        by_category=pl.col("INDP_CAT").replace_strict(
            dict(enumerate(us.INDUSTRY)), return_dtype=pl.String
        ),
    )
    assert industries["by_code"].equals(industries["by_category"])


EDUCATION_CODES = {
    "No-schooling": [1], "Preschool": [2, 3], "Grade-1-8": [4, 7, 8, 11], "Grade-9-12": [12, 15],
    "High-school": [16], "GED": [17], "Some-college": [18, 19], "Associate": [20],
    "Bachelor": [21], "Master": [22], "Professional": [23], "Doctorate": [24],
}  # fmt: skip


@pytest.mark.parametrize("education", us.EDUCATION)
def test_education_codes_map_to_their_canonical_category(education):
    person = numbers(PERSONS).head(1)
    for code in EDUCATION_CODES[education]:
        row = us.from_census(person.with_columns(SCHL=pl.lit(code)), numbers(HOUSES))
        assert row["education"].to_list() == [education], code


@pytest.fixture
def bureau(publisher, monkeypatch):
    """Start a local server of Census Bureau data: two states with the same five persons."""
    catalogue_entry = entry("us")
    files = ("csv_pxx.zip", "csv_hxx.zip", "csv_pyy.zip", "csv_hyy.zip")
    changes = {"url": publisher.url, "files": dict.fromkeys(files)}
    census = catalogue_entry.publishers[0].model_copy(update=changes)
    monkeypatch.setattr(us, "STATES", {"xx": 77, "yy": 78})
    for state, number in us.STATES.items():
        for kind, text in (("p", PERSONS), ("h", HOUSES)):
            files = {"README.pdf": "x", f"psam_{kind}{number}.csv": text}
            publisher.files[f"/csv_{kind}{state}.zip"] = zipped(files)
    changed = catalogue_entry.model_copy(update={"publishers": (census,)})
    monkeypatch.setattr(acquisition, "entry", lambda _: changed)
    return publisher


def test_census_bureau_files_are_fetched_once(bureau, tmp_path):
    raw, provenance = acquire("us", Acquisition(cache=str(tmp_path), source="official"))
    assert raw.equals(pl.concat([CANONICAL, CANONICAL]))
    assert "no checksum is published" in provenance.because
    n_requests = len(bureau.requests)
    assert acquire("us", Acquisition(cache=str(tmp_path), source="official"))[0].equals(raw)
    assert len(bureau.requests) == n_requests == 4
