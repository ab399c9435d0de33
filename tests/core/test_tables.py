"""Test tables that compare our results with the published numbers."""

import math

import numpy as np
import polars as pl
import pytest

from private_consensus.reproduction.configuration.schema import Table
from private_consensus.reproduction.results import tables

VALUES = np.array([0.1, 0.2, 0.4, 0.3])
METHOD = {
    "label": "ours & theirs",
    "method": "a",
    "variant": "one",
    "interpretation": "resolved",
    "published": [(1.0, 0.2, 0.06)],
}
TABLE = Table(
    title="Table",
    caption="What is shown.",
    row_axis="epsilon",
    row_title="epsilon",
    measure="released.error",
    extra_columns={"share": "released.share"},
    published_runs=9,
    blocks=[
        {"label": label, "experiment": "e", "methods": [METHOD]} for label in ("Adult", "Aardvark")
    ],
)


@pytest.fixture
def cells():
    frames = [
        pl.DataFrame(
            {
                "experiment": "e",
                "algorithm": "a",
                "variant": "one",
                "epsilon": epsilon,
                "quantity": "released",
                "metric": metric,
                "run": np.arange(4),
                "value": values,
                "source": "adult (mirror)",
            }
        )
        for epsilon in (1.0, 10.0)
        for metric, values in (("error", VALUES * epsilon), ("share", np.full(4, 0.5)))
    ]
    return {("e", "a"): pl.concat(frames)}


def test_differences_are_in_units_of_combined_standard_errors(cells):
    numbers = tables.table_numbers(TABLE.model_dump(mode="json"), cells)
    assert numbers["block"].to_list() == ["Adult"] * 2 + ["Aardvark"] * 2
    assert numbers["row"].to_list() == [1.0, 10.0] * 2
    first = numbers.row(0, named=True)
    error = VALUES.std(ddof=1) / 2
    assert first["value"] == pytest.approx(0.25)
    assert first["std"] == pytest.approx(VALUES.std(ddof=1))
    assert first["se"] == pytest.approx(error)
    assert first["difference"] == pytest.approx(0.05 / math.hypot(0.06 / 3, error))
    assert first["share"] == 0.5
    assert numbers.row(1, named=True)["difference"] is None
