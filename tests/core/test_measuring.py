"""Test that stored measurements are complete, within their limits, and listed in tables."""

import json

import numpy as np
from benchmarks import growth, jobs, measuring
from benchmarks.worlds import INAPPLICABLE, WORLDS

JOB = {"wall s": 9.0, "CPU s": 12.0, "memory MB": 1200}


def test_the_fitted_slope_of_a_power_function_is_its_exponent():
    values = np.array([10.0, 70.0, 500.0])
    for power in (0.0, 1.0, 2.5):
        assert np.isclose(growth.slope(values, 3 * values**power), power)


def test_a_new_measurement_replaces_the_earlier_one_of_the_same_name(tmp_path):
    path = tmp_path / "kept.jsonl"
    for name, seconds in (("a", 1.0), ("b", 2.0), ("a", 3.0)):
        measuring.keep(path, {"name": name, "seconds": seconds}, ["name"])
    assert {line["name"]: line["seconds"] for line in measuring.read(path)} == {"a": 3.0, "b": 2.0}
    assert len(path.read_text().splitlines()) == 2


def test_each_applicable_algorithm_is_measured_within_its_time_and_memory_limits():
    lines = measuring.read(growth.KEPT)
    table = [line for line in lines if line["kind"] == "table"]
    assert {line["name"] for line in table} == set(WORLDS)
    assert INAPPLICABLE.keys().isdisjoint(WORLDS)
    assert all(line["cpu"] <= growth.SECONDS[WORLDS[line["name"]][2]] for line in table)
    sizes = [line for line in lines if "agents" in line]
    assert all(line["mb"] <= growth.MEGABYTES[line["agents"]] for line in sizes)
    against = {(line["name"], line["size"]) for line in lines if line["kind"] == "exponents"}
    assert against == {(name, size) for name in growth.EXPECTED for size in growth.GROWN}
    assert all(json.dumps(line, allow_nan=False) for line in lines)


def test_a_measurement_of_an_algorithm_has_finite_values():
    seconds = growth.simulated("gradient_descent", {**growth.SIZES, "agents": 12}, growth.RING)
    assert seconds.keys() == {"network", "noise", "run", "value"}
    assert np.isfinite(list(seconds.values())).all()


def test_the_scaling_tables_have_times_memory_and_exponents():
    text = growth.tables(measuring.read(growth.KEPT))
    assert "| d_zoa | 10,000 | 43.0 | 60 | 296 |" in text
    assert "| muffliato | 0.94 (1) |" in text and "one core of AMD EPYC" in text


def test_the_tables_of_jobs_have_totals_groups_and_the_heaviest_jobs():
    rows = [{"job": f"ding_fig{i}.dsgd", **JOB} for i in range(3)] + [
        {**JOB, "job": "figure.a", "CPU s": 4.0},
        {**JOB, "job": "gather", "CPU s": 1.0},
    ]
    origin = {"day": "2026-01-01", "machine": "M", "cores": 2, "commit": "abc", "wall": 40.0}
    text = jobs.tables({**origin, "jobs": rows})
    where = "2026-01-01, 2 cores of M, commit abc |"
    assert f"| 5 | 40 | 41 | 1,200 | {where}" in text
    assert "| `ding` | 3 | 36 |\n| other jobs | 2 | 5 |" in text
    assert "| `ding_fig0.dsgd` | 9 | 12 | 1,200 |" in text


def test_a_job_lasts_at_most_its_wall_time():
    assert jobs.seconds([{"job": "a", **JOB}]) == {"a": 9.0}
