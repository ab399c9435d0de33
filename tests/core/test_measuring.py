"""Test that pages of benchmarks follow from the stored measurements."""

import json

import numpy as np
import pytest
from benchmarks import growth, measuring
from benchmarks.worlds import INAPPLICABLE, WORLDS


def test_a_power_has_its_exponent_as_slope():
    values = np.array([10.0, 70.0, 500.0])
    for power in (0.0, 1.0, 2.5):
        assert np.isclose(growth.slope(values, 3 * values**power), power)


def test_a_measurement_takes_the_place_of_the_earlier_one(tmp_path):
    kept = tmp_path / "kept.jsonl"
    for name, seconds in (("a", 1.0), ("b", 2.0), ("a", 3.0)):
        measuring.keep(kept, {"name": name, "seconds": seconds}, ["name"])
    assert {line["name"]: line["seconds"] for line in measuring.read(kept)} == {"a": 3.0, "b": 2.0}
    assert len(kept.read_text().splitlines()) == 2


def test_a_page_stands_between_its_marks_alone():
    text = "a\n<!-- x -->\nold\n<!-- end of x -->\nb\n<!-- y -->\nc\n<!-- end of y -->\n"
    assert measuring.replaced(text, "x", "new\n") == text.replace("old", "new")
    with pytest.raises(SystemExit, match="no <!-- z -->"):
        measuring.replaced(text, "z", "")


def test_who_is_beyond_a_limit_is_named():
    found = (("d_zoa", 60.5, 10.0), ("admm", 59.0, 1001.0), ("pdop", 10.5, 999.0))
    lines = [{"name": name, "cpu": cpu, "mb": mb} for name, cpu, mb in found]
    assert growth.beyond(lines) == (
        "Beyond their seconds: d_zoa (60.5 of 60 s), pdop (10.5 of 10 s). "
        "Beyond 1,000 MB: admm (1001 MB)."
    )


def test_the_published_tables_are_those_of_the_kept_measurements():
    """All algorithms are measured or have a reason, and the page is up to date."""
    lines = measuring.read(growth.KEPT)
    page = measuring.GROWTH_PAGE.read_text()
    assert "\n".join(growth.pages(lines)) in page
    measured = {line["name"] for line in lines if line["kind"] == "table"}
    assert measured == set(WORLDS) and measured.isdisjoint(INAPPLICABLE)
    against = {(line["name"], line["size"]) for line in lines if line["kind"] == "exponents"}
    assert against == {(name, size) for name in growth.EXPECTED for size in growth.GROWN}
    assert all(json.dumps(line, allow_nan=False) for line in lines)
