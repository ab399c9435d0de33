"""Test the data and the drawing of the figure of records and labels per agent."""

import json
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from pydantic import ValidationError

from private_consensus.reproduction import plotting
from private_consensus.reproduction.experiments.numbers import figure_numbers, partition_summary
from private_consensus.reproduction.experiments.schema import FigurePanel, Partition

DATA = SimpleNamespace(labels=np.where(np.arange(4000) % 4 == 0, 1, -1).astype(np.int8))
PARTITION = {"prepared": "adult-onehot104", "kind": "iid", "agents": 8, "records": 100}
KINDS = {
    "iid": PARTITION,
    "dirichlet": {**PARTITION, "kind": "dirichlet", "concentration": 0.3},
    "unequal": {**PARTITION, "kind": "unequal", "concentration": 1.0},
}


def points(kind: str, **changes) -> pl.DataFrame:
    return partition_summary(DATA, Partition(**{**KINDS[kind], **changes}).model_dump(), seed=7)


@pytest.mark.parametrize("kind", KINDS)
def test_every_agent_and_label_has_a_row_and_all_records_are_counted(kind):
    summary = points(kind)
    assert summary.height == 8 * 2
    assert summary["y"].sum() == 8 * 100
    sums = summary.group_by("agent").agg(pl.col("y").sum(), pl.col("share").sum(), pl.first("size"))
    assert sums["y"].to_list() == sums["size"].to_list()
    assert np.allclose(sums["share"], 1)
    assert summary.equals(points(kind))


def test_unequal_partitions_vary_in_sizes_and_dirichlet_partitions_in_labels():
    spread = {k: points(k).filter(pl.col("label") == 1) for k in KINDS}
    assert spread["iid"]["size"].n_unique() == spread["dirichlet"]["size"].n_unique() == 1
    assert spread["unequal"]["size"].max() > 3 * spread["unequal"]["size"].min()
    assert spread["dirichlet"]["share"].std() > 3 * spread["iid"]["share"].std()


def test_each_image_class_is_a_separate_series():
    images = SimpleNamespace(labels=np.arange(500) % 10)
    summary = partition_summary(
        images, Partition(**{**PARTITION, "records": 20}).model_dump(), seed=7
    )
    assert summary["series"].n_unique() == 10
    assert "class 3" in summary["series"]


@pytest.mark.parametrize(
    "changes", [{"concentration": 1.0}, {"kind": "dirichlet"}, {"agents": 1}, {"prepared": "x"}]
)
def test_an_invalid_partition_is_refused(changes):
    with pytest.raises(ValidationError):
        Partition(**{**PARTITION, **changes})


@pytest.mark.parametrize(
    "panel",
    [
        {"experiment": "e", "partition": PARTITION},
        {"graph": True, "partition": PARTITION},
        {"experiment": "e"},
    ],
)
def test_a_panel_must_have_exactly_one_kind_of_content(panel):
    with pytest.raises(ValidationError):
        FigurePanel(title="", **panel)


def test_the_partition_figure_states_its_source_and_marks_surrogate_data():
    panels = [
        FigurePanel(
            title=kind, partition=Partition(**partition), x_title="agent", y_title="records"
        ).model_dump()
        for kind, partition in KINDS.items()
    ]
    partitions = pl.concat(points(kind).with_columns(panel=pl.lit(kind)) for kind in KINDS)
    numbers = figure_numbers(panels, {}, source="adult (surrogate)", other_points=partitions)
    assert set(numbers["panel"]) == set(KINDS)
    assert set(numbers["source"]) == {"adult (surrogate)"}
    figure = {"title": "Shares", "panels": panels}
    chart = plotting.draw("data_extra_partitions", "data", numbers, figure, {})
    assert chart["title"]["subtitle"][0].startswith("SURROGATE DATA")
    assert '["label -1", "label +1"]' in json.dumps(chart)
