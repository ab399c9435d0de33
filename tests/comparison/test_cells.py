"""Test the expansion of the design to cells, and the errors for invalid results."""

import json
from dataclasses import asdict, replace

import polars as pl
import pytest
from synthetic import ROOT, rows, smoke, write

from private_consensus.common import yamls
from private_consensus.common.errors import InvalidInput
from private_consensus.comparison.design import (
    BASE,
    SAMPLE,
    Axes,
    ComparisonDesign,
    cells,
    network_of,
    read_comparison,
)
from private_consensus.comparison.schema import COLUMNS, checked, read_results

RAW = yamls.read(ROOT / "config" / "comparison.yaml")
DESIGN = read_comparison(RAW)
CELLS = cells(DESIGN)


def test_each_problem_has_one_base_environment_at_every_budget():
    base = [cell for cell in CELLS if cell.axis == BASE]
    assert len(base) == len(DESIGN.problems) * len(DESIGN.epsilons)
    for cell in base:
        of_axes = {key: value[0] for key, value in DESIGN.axes.model_dump().items()}
        assert asdict(cell.environment) == {"problem": cell.environment.problem, **of_axes}


def test_each_axis_is_varied_separately_at_every_budget():
    bases = {cell.environment.problem: cell.environment for cell in CELLS if cell.axis == BASE}
    for axis in Axes.model_fields:
        varied = [cell for cell in CELLS if cell.axis == axis]
        values = getattr(DESIGN.axes, axis)[1:]
        assert len(varied) == len(DESIGN.problems) * len(values) * len(DESIGN.epsilons)
        for cell in varied:
            base = bases[cell.environment.problem]
            value = getattr(cell.environment, axis)
            assert value != getattr(base, axis)
            assert replace(base, **{axis: value}) == cell.environment


def test_sampled_cells_are_distinct_and_determined_by_the_seed():
    sampled = [cell for cell in CELLS if cell.axis == SAMPLE]
    assert 0 < len(sampled) == DESIGN.sample.cells <= 60
    assert len({(cell.environment, cell.epsilon) for cell in CELLS}) == len(CELLS)
    assert cells(DESIGN) == CELLS
    other_seed = DESIGN.model_copy(update={"sample": DESIGN.sample.model_copy(update={"seed": 1})})
    assert [cell for cell in cells(other_seed) if cell.axis == SAMPLE] != sampled
    for cell in sampled:
        base = next(
            c.environment for c in CELLS if c.environment.problem == cell.environment.problem
        )
        assert sum(v != asdict(base)[k] for k, v in asdict(cell.environment).items()) > 1


def test_too_few_private_records_per_public_record_are_refused():
    for problem in DESIGN.problems.values():
        assert problem.records >= 20 * DESIGN.tuning.public_records
    assert {*DESIGN.tuning.checked} <= {*DESIGN.methods} and len(DESIGN.tuning.checked) == 3
    tuning = {**RAW["tuning"], "public_records": 301}
    with pytest.raises(InvalidInput, match=r"problems\.logistic_brazil\.records"):
        read_comparison({**RAW, "tuning": tuning})


def test_a_sample_larger_than_the_design_contains_all_cells():
    axes = {"agents": [10, 50], "graph": ["ring"], "partition": ["iid"], "missing": [0.0]}
    small = read_comparison(
        {**RAW, "axes": {**axes, "links": [0.0, 0.2]}, "epsilons": [1.0], "scales": {}}
    )
    assert len(cells(small)) == len(DESIGN.problems) * 4


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"epsilons": [0.0]}, "epsilons"),
        ({"axes": {**RAW["axes"], "graph": ["moebius"]}}, "axes.graph"),
        ({"axes": {**RAW["axes"], "links": [1.0]}}, "axes.links"),
        ({"graphs": {**RAW["graphs"], "grid": {"title": "grid", "rows": 3}}}, "network.rows"),
        (
            {"methods": {"x": {"title": "x", "baseline": "data_free", "observer": "sums"}}},
            "methods.observer",
        ),
        ({"methods": {"x": {"title": "x"}}}, "methods.algorithm"),
        ({"sample": {"cells": 61, "seed": 0}}, "sample.cells"),
        ({"relation": {"unit": "house", "change": "replace"}}, "relation.unit"),
    ],
)
def test_an_invalid_design_is_refused_with_its_key(change, key):
    with pytest.raises(InvalidInput, match=key):
        read_comparison({**RAW, **change})


@pytest.mark.parametrize("scale", ["paper", "smoke"])
def test_the_design_part_of_each_job_is_preserved_by_json(scale):
    design = read_comparison(yamls.read(ROOT / "config" / "comparison.yaml")).at(scale)
    job_designs = [
        ComparisonDesign.model_validate(json.loads(json.dumps(design.part(job))))
        for job in range(design.jobs)
    ]
    assert {name for job in job_designs for name in job.methods} == set(design.methods)
    for job in job_designs:
        assert cells(job) == cells(design)
        for name in job.graphs:
            for agents in job.axes.agents:
                built = network_of(job.graphs[name], name, agents)
                assert built == network_of(design.graphs[name], name, agents)


def test_a_problem_group_is_expanded_to_its_problems():
    method = {"title": "x", "algorithm": {"name": "admm"}}
    grouped = {**method, "problems": "two", "per_problem": {"two": {"eta": 1.0}}}
    listed = {
        **method,
        "problems": ["lasso", "mean_estimation"],
        "per_problem": {name: {"eta": 1.0} for name in ("lasso", "mean_estimation")},
    }
    groups = {"two": ["lasso", "mean_estimation"]}
    built = [
        read_comparison({**RAW, "groups": groups, "methods": {"one": method_config}})
        for method_config in (grouped, listed)
    ]
    assert built[0].methods == built[1].methods
    with pytest.raises(InvalidInput, match=r"methods\.one\.problems"):
        read_comparison({**RAW, "groups": {}, "methods": {"one": grouped}})
    with pytest.raises(InvalidInput, match=r"groups\.two"):
        read_comparison({**RAW, "groups": {"two": ["mars"]}, "methods": {"one": listed}})


def test_a_graph_without_a_parameter_for_some_number_of_agents_is_refused():
    raw = yamls.read(ROOT / "config" / "comparison.yaml")
    del raw["graphs"]["erdos_renyi"]["probability"][50]
    with pytest.raises(InvalidInput, match=r"graphs\.erdos_renyi\.probability.*50 agents"):
        read_comparison(raw)


def test_written_results_are_read_with_their_schema_and_cells(tmp_path):
    design = smoke()
    write(tmp_path, design)
    results_table = read_results(tmp_path / "results.parquet")
    assert dict(results_table.schema) == COLUMNS
    described = json.loads((tmp_path / "cells.json").read_text())
    keys = ["problem", "agents", "graph", "partition", "missing", "links", "epsilon"]
    written = {tuple(cell[key] for key in keys) for cell in described["cells"]}
    assert {*results_table.select(keys).unique().iter_rows()} == written
    assert {m["name"] for m in described["methods"]} == set(results_table["method"])


def test_results_that_violate_the_schema_or_the_budget_are_refused():
    good = rows(smoke(), runs=1)
    assert checked(good).height == good.height
    private = good.filter(pl.col("proven")).head(1)
    above = private.with_columns(epsilon_accountant=pl.col("epsilon") * 1.001)
    unknown = private.with_columns(measure=pl.lit("charm"))
    for bad in (above, pl.concat([private, private]), unknown, private.drop("run")):
        with pytest.raises(InvalidInput):
            checked(bad)
    # an unproven method may have any epsilon: it is not ranked
    assert checked(above.with_columns(proven=pl.lit(False))).height == 1
