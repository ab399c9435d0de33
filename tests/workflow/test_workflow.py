"""Snakemake as its users call it, in a scratch copy of the repository."""

import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import polars as pl
import pytest
import yaml
from scratch import (
    FIGURE,
    OTHER,
    SNAKEMAKE,
    append,
    call,
    command,
    copy_to,
    environment,
    make,
    planned,
    said,
)

from private_consensus.datasets import Provenance, write_provenance

pytestmark = pytest.mark.workflow

AUDIT = f"results/smoke/audit/settings/{FIGURE}.parquet"


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A copy in which two figures and a short audit have been made at smoke scale."""
    folder = with_short_audits(copy_to(tmp_path_factory.mktemp("made")))
    done = make(folder, FIGURE, OTHER, AUDIT)
    assert done.returncode == 0, said(done)
    return folder


def test_a_figure_is_a_target_by_name(made):
    for kind in ("svg", "png", "pdf", "json"):
        assert (made / f"results/smoke/figures/{FIGURE}.{kind}").stat().st_size > 500
    assert (made / f"results/smoke/data/{FIGURE}.parquet").exists()
    assert (made / f"results/smoke/logs/{FIGURE}.gradient_descent.log").read_text().strip()
    assert (made / f"results/smoke/timings/{FIGURE}.gradient_descent.tsv").exists()
    assert not (made / "results/smoke/figures/showkatbakhsh_fig1.svg").exists()
    assert planned(made) == {}


@pytest.fixture
def edited(made, tmp_path):
    """A second copy with the results, to be edited."""
    return Path(shutil.copytree(made, tmp_path / "edited", copy_function=shutil.copy2))


def with_short_audits(folder: Path) -> Path:
    """Few runs, and of all settings the first, which is one of ``FIGURE``."""
    file = folder / "config/audits.yaml"
    asked = yaml.safe_load(file.read_text())
    asked["runs"]["smoke"] = 40
    asked["settings"] = asked["settings"][:1]
    assert asked["settings"][0]["experiment"] == FIGURE
    file.write_text(yaml.safe_dump(asked))
    return folder


def replaced(folder: Path, file: str, before: str, after: str) -> None:
    """Another edit."""
    path = folder / file
    assert before in path.read_text()
    path.write_text(path.read_text().replace(before, after))


LIBRARY = "src/private_consensus"
ADDED = "\nADDED = 1\n"
DRAWING = {"draw_figure": 2}


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (f"{LIBRARY}/networks.py", {"run_cell": 2, **DRAWING}),
        (f"{LIBRARY}/plotting/curves.py", DRAWING),
        ("workflow/scripts/draw_figure.py", DRAWING),
        ("workflow/scripts/run_cell.py", {"run_cell": 2, **DRAWING}),
    ],
)
def test_an_edit_reruns_what_depends_on_it_and_nothing_else(edited, file, expected):
    append(edited, file, ADDED)
    assert planned(edited) == expected


def test_remarks_and_code_that_results_do_not_depend_on_rerun_nothing(edited):
    append(edited, f"{LIBRARY}/algorithms/gradient_descent.py", "\n# a remark\n")
    for module in ("problems/logistic_regression", "claims/judging"):
        append(edited, f"{LIBRARY}/{module}.py", ADDED)
    assert planned(edited) == {}


def test_an_edit_to_an_algorithm_reruns_its_cells_and_its_audit(edited):
    append(edited, f"{LIBRARY}/algorithms/gradient_descent.py", ADDED)
    expected = {"run_cell": 2, **DRAWING, "audit_settings": 1}
    assert planned(edited, FIGURE, OTHER, AUDIT) == expected


def test_an_edit_to_one_experiment_reruns_that_one(edited):
    before = "problem: {dim: 20, box: 2.0}"
    after = before.replace("2.0", "3.0")
    replaced(edited, "config/papers/showkatbakhsh.yaml", before, after)
    assert planned(edited) == {"run_cell": 1, "draw_figure": 1}


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
def test_a_bad_configuration_stops_before_anything_is_written(tmp_path, options, messages):
    folder = copy_to(tmp_path)
    done = call(folder, [*SNAKEMAKE, "--cores", "1", "--config", *options])
    assert done.returncode == 1
    for message in messages:
        assert re.search(message, done.stderr)
    assert "Traceback" not in done.stderr
    assert not (folder / "results").exists()


def test_data_of_a_mirror_stay_when_none_is_named_any_more(tmp_path, monkeypatch):
    monkeypatch.delenv("PRIVATE_CONSENSUS_MIRROR", raising=False)
    folder = copy_to(tmp_path)
    file = folder / "results/smoke/raw/adult.provenance.json"
    unsaid = dict.fromkeys(("where", "version", "checksum", "because", "licence"), "")
    write_provenance(file, Provenance(dataset="adult", source="mirror", **unsaid))
    done = make(folder, FIGURE, "--dry-run")
    assert done.returncode != 0
    assert "data.mirror: found None, expected the mirror that adult in results/smoke/raw" in said(
        done
    )
    write_provenance(file, Provenance(dataset="adult", source="surrogate", **unsaid))
    assert make(folder, FIGURE, "--dry-run").returncode == 0


def test_an_unknown_figure_is_named(made):
    done = make(made, "showkatbakhsh_fig99")
    assert done.returncode == 1
    assert "showkatbakhsh_fig99" in done.stderr


def test_numbers_do_not_depend_on_cores_or_on_the_number_of_runs(made, tmp_path):
    folder = copy_to(tmp_path)
    files = [f"results/smoke/runs/{name}/gradient_descent.parquet" for name in (FIGURE, OTHER)]
    done = make(folder, *files, runs=3, cores=2)
    assert done.returncode == 0, said(done)
    for file in files:
        first, second = pl.read_parquet(made / file), pl.read_parquet(folder / file)
        assert second.filter(pl.col("run") < 2).equals(first)
        assert second["run"].max() == 2


def test_a_stale_result_is_refused_even_where_the_records_were_lost(edited):
    """Without .snakemake only times are compared, and an old file looks as good as a new one."""
    shutil.rmtree(edited / ".snakemake")
    assert make(edited, FIGURE).returncode == 0
    append(edited, f"{LIBRARY}/networks.py", "\nADDED = 1\n")
    assert planned(edited) == {}
    done = make(edited, FIGURE)
    assert done.returncode == 1
    assert "made with other code" in said(done)
    assert "run `snakemake" in said(done)


def test_kept_results_with_new_times_are_kept(edited):
    for file in sorted((edited / "results").rglob("*")):
        os.utime(file)
    assert planned(edited) == {}


def test_a_fresh_clone_makes_everything_anew(tmp_path):
    folder = copy_to(tmp_path)
    assert planned(folder) == {"run_cell": 2, "draw_figure": 2}


def interrupted(folder: Path, *targets: str, runs: int) -> None:
    """A call that is stopped politely once its first cell is there."""
    process = subprocess.Popen(
        command(*targets, runs=runs, cores=2), cwd=folder, env=environment(),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip
    for _ in range(1200):
        if list((folder / "results/smoke/runs").rglob("[!.]*.parquet")):
            break
        time.sleep(0.05)
    process.terminate()
    output = process.communicate(timeout=120)[0]
    assert process.returncode != 0, output


def test_two_reproductions_are_the_same_bytes(tmp_path):
    """On 1 and on 2 cores, in another order, after an interruption; short audits, pictures of some
    figures."""
    targets = ("results/smoke/claims.parquet", FIGURE, "showkatbakhsh_fig2")
    kinds = ("runs", "privacy", "claims", "data", "figures")
    found = []
    with_short_audits(copy_to(tmp_path / "first"))
    shutil.copytree(tmp_path / "first", tmp_path / "second")
    for name, cores in (("first", 1), ("second", 2)):
        folder = tmp_path / name
        if name == "second":
            targets = targets[::-1]
            interrupted(folder, *targets, runs=3)
        done = make(folder, *targets, runs=3, cores=cores)
        assert done.returncode == 0, said(done)
        files = [f for kind in kinds for f in (folder / "results/smoke" / kind).rglob("*.*")]
        files += (folder / "results/smoke").glob("*.parquet")
        found.append({str(f.relative_to(folder)): f.read_bytes() for f in files})
    first, second = found
    assert first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name]] == []
    assert len(first) == 7 * 2 + 1 + 2 + 2 * 4 + 2
