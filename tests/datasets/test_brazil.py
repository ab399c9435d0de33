"""Test the table of Brazil (52 columns and a label) from a file and from an extract."""

import gzip

import numpy as np
import polars as pl
import pytest
from brazil_categories import collapse
from polars.testing import assert_frame_equal

from private_consensus.reproduction.data import brazil
from private_consensus.reproduction.data.acquisition import Acquisition, acquire

IPUMS = pl.DataFrame(
    {
        "REGNBR": [3, 1, 3],
        "OWNERSHIP": [1, 2, 1],
        "AUTOS": [2, 0, 9],
        "COMPUTER": [2, 1, 9],
        "ROOMS": [6, 3, 98],
        "PERSONS": [4, 5, 1],
        "NCHILD": [2, 3, 0],
        "NCHLT5": [1, 0, 0],
        "AGE": [38, 22, 40],
        "SEX": [1, 2, 1],
        "MARST": [2, 1, 2],
        "NATIVITY": [1, 1, 1],
        "RELIGION": [6, 9, 1],
        "RACE": [10, 51, 99],
        "EDATTAIN": [4, 1, 2],
        "OCCISCO": [2, 6, 5],
        "CLASSWK": [2, 1, 2],
        "HRSWORK1": [40, 60, 998],
        "DISABLED": [2, 1, 2],
        "MIGYRS1": [5, 22, 3],
        "EMPSTAT": [1, 1, 1],
        "INCTOT": [301, 300, 900],
    }
)


def test_an_ipums_extract_maps_to_the_canonical_table():
    table = brazil.from_ipums(IPUMS)
    # The third person's hours are unknown.
    assert table.height == 2
    first, second = table.rows(named=True)
    on = {c for c, v in first.items() if "=" in c and v}
    assert on == {
        "region=Southeast",
        "marital_status=Married",
        "religion=Christian",
        "race=White",
        "education=University",
        "occupation=Professionals",
        "class_of_worker=Employee",
    }
    assert not any(second[f"religion={r}"] for r in brazil.BLOCKS["religion"])
    assert second["race=Brown"] == 1 and second["sex"] == 2 and second["hours"] == 60
    assert (first["autos"], first["computer"], first["disabled"]) == (2, 2, 2)
    assert table[brazil.LABEL].to_list() == [1, 0]


UNKNOWN = {
    "OWNERSHIP": (0, 9), "AUTOS": (8, 9), "COMPUTER": (0, 9), "ROOMS": (98, 99), "PERSONS": (98,),
    "NCHILD": (98, 99), "NCHLT5": (98, 99), "AGE": (999,), "SEX": (9,), "NATIVITY": (0, 9),
    "DISABLED": (0, 9), "MIGYRS1": (98, 99),
}  # fmt: skip


@pytest.mark.parametrize(("variable", "code"), [(v, c) for v in UNKNOWN for c in UNKNOWN[v]])
def test_codes_for_unknown_numbers_are_missing(variable, code):
    complete = brazil.from_ipums(IPUMS).head(1)
    table = brazil.from_ipums(IPUMS.head(1).with_columns(pl.lit(code).alias(variable)))
    missing = [c for c in table.columns if table[c].has_nulls()]
    assert len(missing) == 1
    assert table.drop(missing).equals(complete.drop(missing))


@pytest.mark.parametrize("variable", ["MARST", "RELIGION", "EDATTAIN", "OCCISCO", "CLASSWK"])
@pytest.mark.parametrize("code", [0, 97, 98, 99])
def test_codes_for_unknown_categories_have_zeros_in_their_block(variable, code):
    complete = brazil.from_ipums(IPUMS).head(1)
    table = brazil.from_ipums(IPUMS.head(1).with_columns(pl.lit(code).alias(variable)))
    changed = [c for c in table.columns if not table[c].equals(complete[c])]
    assert len(changed) == 1 and table[changed[0]].to_list() == [0]


@pytest.mark.parametrize(
    ("variable", "code"), [("HRSWORK1", 998), ("HRSWORK1", 999), ("INCTOT", 9_999_998)]
)
def test_persons_with_unknown_hours_or_income_are_removed(variable, code):
    person = IPUMS.head(1)
    unknown = person.with_columns(pl.lit(code, IPUMS.schema[variable]).alias(variable))
    assert_frame_equal(brazil.from_ipums(pl.concat([unknown, person])), brazil.from_ipums(person))


def test_reading_a_written_file_returns_the_same_table(tmp_path):
    table = brazil.from_ipums(IPUMS)
    text = table.write_csv(include_header=False, separator=" ")
    (tmp_path / "IPUMS-BR.dat.gz").write_bytes(gzip.compress(text.encode()))
    assert brazil.read(tmp_path).equals(table)


def test_indicator_blocks_of_the_real_data_sum_to_at_most_one(mirror_path, tmp_path):
    raw, _ = acquire("brazil", Acquisition(mirror=mirror_path, cache=str(tmp_path)))
    assert raw.shape == (38_000, 53)
    for name, values in brazil.BLOCKS.items():
        block = raw.select(f"{name}={v}" for v in values).to_numpy()
        sums = block.sum(axis=1)
        assert set(np.unique(sums)) <= {0, 1} and sums.mean() > 0.99
    assert brazil.expand(collapse(raw)).equals(raw)
