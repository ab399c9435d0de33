"""Test Snakemake in a temporary copy of the repository, from the command line."""

import os
import re
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
import yaml
from scratch import (
    FIGURE,
    OTHER,
    PATIENCE,
    SNAKEMAKE,
    Begun,
    Warm,
    append,
    command,
    copy_to,
    edited_for_now,
    make,
    output_of,
    planned,
)

from private_consensus.common.errors import InvalidInput
from private_consensus.common.readable import read_json
from private_consensus.reproduction.results.freshness import require_current

pytestmark = pytest.mark.workflow

AUDIT = f"results/smoke/audit/settings/{FIGURE}.parquet"
CLAIMS = "results/smoke/claims/showkatbakhsh.parquet"
STUDY = (FIGURE, OTHER, AUDIT, CLAIMS)


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory) -> Path:
    """Return a copy of the project with the results of a small study.

    The study has two cells, figures, an audit and a verdict.
    """
    folder = with_a_small_study(copy_to(tmp_path_factory.mktemp("made")))
    done = make(folder, *STUDY)
    assert done.returncode == 0, output_of(done)
    return folder


@pytest.fixture(scope="module")
def warm(run_folder) -> Iterator[Warm]:
    """Return a process whose calls read the current rules, configuration and code of the copy."""
    with Warm(run_folder) as process:
        yield process


def test_a_figure_can_be_requested_by_its_name(run_folder):
    for kind in ("svg", "png", "pdf"):
        assert (run_folder / f"results/smoke/figures/{FIGURE}.{kind}").stat().st_size > 500
    assert (run_folder / f"results/smoke/data/{FIGURE}.parquet").exists()
    assert (run_folder / f"results/smoke/logs/{FIGURE}.gradient_descent.log").read_text().strip()
    assert (run_folder / f"results/smoke/logs/{FIGURE}.gradient_descent.tsv").exists()
    assert not (run_folder / "results/smoke/figures/showkatbakhsh_fig1.svg").exists()


@pytest.fixture
def edited(run_folder, tmp_path):
    """Return a second copy with the results, which a test may edit."""
    return Path(shutil.copytree(run_folder, tmp_path / "edited", copy_function=shutil.copy2))


def with_a_small_study(folder: Path) -> Path:
    """Reduce the configuration to one audited setting and one claim, those of ``FIGURE``."""
    file = folder / "config/audits.yaml"
    audits = yaml.safe_load(file.read_text())
    audits["settings"] = audits["settings"][:1]
    assert audits["settings"][0]["experiment"] == FIGURE
    file.write_text(yaml.safe_dump(audits))
    file = folder / "config/papers/showkatbakhsh.yaml"
    head, *claims = re.split(r"^(?=  showkatbakhsh_c\d+:\n)", file.read_text(), flags=re.M)
    [claim] = (text for text in claims if f"figure: {FIGURE}\n" in text)
    file.write_text(head + claim)
    return folder


LIBRARY = "src/private_consensus"
ADDED = "\nADDED = 1\n"
DRAWING = {"draw_figure": 2}
OF_CELLS = {"run_cell": 2, **DRAWING, "audit_settings": 1, "judge_claims": 1}
EDITS = {
    "a module of all cells": ({f"{LIBRARY}/core/networks.py": ADDED}, OF_CELLS),
    "an algorithm": ({f"{LIBRARY}/core/algorithms/gradient_descent.py": ADDED}, OF_CELLS),
    "the script of a cell": (
        {"workflow/scripts/run_cell.py": ADDED},
        {"run_cell": 2, **DRAWING, "judge_claims": 1},
    ),
    "how curves are drawn": ({f"{LIBRARY}/reproduction/figures/curves.py": ADDED}, DRAWING),
    "the script of a figure": ({"workflow/scripts/draw_figure.py": ADDED}, DRAWING),
    "how claims are judged": (
        {f"{LIBRARY}/reproduction/claims/judging.py": ADDED},
        {"judge_claims": 1},
    ),
    "another problem, attacks on another algorithm, and downloads of data sets": (
        {
            f"{LIBRARY}/reproduction/data/downloads.py": ADDED,
            f"{LIBRARY}/core/problems/lasso.py": ADDED,
            f"{LIBRARY}/audits/universes/lasso.py": ADDED,
            f"{LIBRARY}/core/lower_bounds/approximate_admm.py": ADDED,
        },
        {},
    ),
    "the data sets that audits of the problem try": (
        {f"{LIBRARY}/audits/universes/mean_estimation.py": ADDED},
        OF_CELLS,
    ),
    "one experiment": (
        {"config/papers/showkatbakhsh.yaml": ("[10, 30, 100]", "[10, 30, 99]")},
        {"run_cell": 1, "draw_figure": 1},
    ),
    "remarks, and code that no result depends on": (
        {
            f"{LIBRARY}/core/algorithms/gradient_descent.py": "\n# a remark\n",
            f"{LIBRARY}/reproduction/statements/sgd.py": ADDED,
        },
        {},
    ),
    "nothing": ({}, {}),
}
"""For each edit, the texts to append to or replace in files, and the jobs that are planned."""


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_reruns_only_the_jobs_that_depend_on_it(run_folder, warm, name):
    edits, expected = EDITS[name]
    with edited_for_now(run_folder, edits):
        assert warm.planned(run_folder, *STUDY) == expected


@pytest.mark.parametrize(
    ("options", "messages"),
    [
        (
            ["seed=many", "sead=1", "data={source: web}"],
            ["seed: .*'many'", "sead: unknown key", "data.source: .*'web'"],
        ),
        (["papers=[nobody]"], ["papers: found 'nobody'"]),
        (
            ["papers=[showkatbakhsh]", "data={mirror: no/such}"],
            ["data.mirror: found 'no/such', expected an existing"],
        ),
    ],
)
def test_an_invalid_configuration_is_reported_before_any_result(warm, tmp_path, options, messages):
    folder = copy_to(tmp_path)
    done = warm.call(folder, [*SNAKEMAKE, "--cores", "1", "--config", *options])
    assert done.returncode == 1
    for message in messages:
        assert re.search(message, done.stderr)
    assert "Traceback" not in done.stderr
    assert not (folder / "results").exists()


def test_numbers_do_not_depend_on_cores_or_on_the_number_of_runs(run_folder, warm, tmp_path):
    folder = copy_to(tmp_path)
    files = [f"results/smoke/runs/{name}/gradient_descent.parquet" for name in (FIGURE, OTHER)]
    done = warm.make(folder, *files, runs=3, cores=2)
    assert done.returncode == 0, output_of(done)
    for file in files:
        first, second = pl.read_parquet(run_folder / file), pl.read_parquet(folder / file)
        assert second.filter(pl.col("run") < 2).equals(first)
        assert second["run"].max() == 2


PLANNED = "results/smoke/plan.json"


def test_an_outdated_result_is_rejected_without_snakemake_records(edited, warm, monkeypatch):
    """Without .snakemake, Snakemake compares only file times, which hide outdated results."""
    monkeypatch.chdir(edited)
    shutil.rmtree(edited / ".snakemake")
    assert warm.make(edited, *STUDY, PLANNED).returncode == 0
    expected = read_json(PLANNED)["expected"]
    kinds = {Path(file).parts[2] for file in expected}
    assert kinds == {"runs", "privacy", "data", "audit", "claims"}
    require_current(expected, scale="smoke")
    append(edited, f"{LIBRARY}/core/networks.py", "\nADDED = 1\n")
    assert planned(edited) == {}
    (edited / PLANNED).unlink()
    assert make(edited, *STUDY, PLANNED).returncode == 0
    with pytest.raises(InvalidInput, match=r"made with other code.*run `snakemake"):
        require_current(read_json(PLANNED)["expected"], scale="smoke")


def test_results_with_new_modification_times_are_not_recomputed(edited, warm):
    for file in sorted((edited / "results").rglob("*")):
        os.utime(file)
    assert warm.planned(edited) == {}


def test_a_fresh_clone_plans_all_jobs(warm, tmp_path):
    folder = copy_to(tmp_path)
    assert warm.planned(folder) == {"run_cell": 2, "draw_figure": 2}


def interrupted(folder: Path, *targets: str, runs: int) -> None:
    """Start a run and terminate it after its first cell."""
    process = Begun(folder, command(*targets, runs=runs, cores=2))
    end = time.monotonic() + PATIENCE
    while not list((folder / "results/smoke/runs").rglob("[!.]*.parquet")):
        assert process.returncode is None and time.monotonic() < end
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGTERM)
    output = process.output()
    assert process.returncode != 0, output


def results_in(folder: Path) -> dict[str, bytes]:
    """Return the result files of the study, without logs and target files."""
    kinds = ("runs", "privacy", "claims", "audit", "data", "figures")
    files = [f for kind in kinds for f in (folder / "results/smoke" / kind).rglob("*.*")]
    return {str(f.relative_to(folder)): f.read_bytes() for f in files}


def test_two_reproductions_are_byte_identical(run_folder, warm, tmp_path):
    """Vary the number of cores, the order and the hash seed, and interrupt one run."""
    folder = with_a_small_study(copy_to(tmp_path))
    interrupted(folder, *STUDY[::-1], runs=2)
    done = warm.make(folder, *STUDY[::-1], runs=2, cores=2)
    assert done.returncode == 0, output_of(done)
    first, second = results_in(run_folder), results_in(folder)
    assert first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name]] == []
    assert len(first) == 2 * 2 + 1 + 1 + 2 + 2 * 3
