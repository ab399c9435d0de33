"""Snakemake as its users call it, in a scratch copy of the repository."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARTS = (
    "Snakefile",
    "workflow",
    "config",
    "profiles",
    "src",
    "environment.yml",
    "requirements.txt",
)
FIGURE = "showkatbakhsh_extra_reconstruction"
OTHER = "showkatbakhsh_extra_box"
RUNS = ["--config", "runs=2", "papers=[showkatbakhsh]"]

pytestmark = pytest.mark.workflow


def snakemake(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("PYTHONPATH", None)
    command = [sys.executable, "-m", "snakemake", "--cores", "1", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def copy_to(folder: Path) -> Path:
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(source, folder / part, ignore=ignore)
        else:
            shutil.copy(source, folder / part)
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A copy in which two figures have been made at smoke scale."""
    folder = copy_to(tmp_path_factory.mktemp("made"))
    done = make(folder, FIGURE, OTHER)
    assert done.returncode == 0, done.stderr
    return folder


def make(folder: Path, *targets: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess:
    return snakemake(folder, *targets, *options, "--configfile", "config/smoke.yaml", *RUNS)


def jobs(done: subprocess.CompletedProcess) -> dict[str, int]:
    """Rule names and how often each would run, from a dry run's table."""
    text = done.stdout + done.stderr
    assert done.returncode == 0, text
    table = re.search(r"job +count\n-+ +-+\n(.*?)\ntotal", text, re.S)
    rows = table[1].splitlines() if table else []
    return {name: int(count) for name, count in (row.split() for row in rows)}


def planned(folder: Path) -> dict[str, int]:
    """Jobs besides the targets, which always ask whether what they rest on is current."""
    found = jobs(make(folder, FIGURE, OTHER, options=("--dry-run",)))
    return {name: count for name, count in found.items() if name not in (FIGURE, OTHER)}


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


def append(folder: Path, file: str, text: str) -> None:
    path = folder / file
    path.write_text(path.read_text() + text)


LIBRARY = "src/private_consensus"
DRAWING = {"draw_figure": 2}


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        (f"{LIBRARY}/algorithms/gradient_descent.py", "\nADDED = 1\n", {"run_cell": 2, **DRAWING}),
        (f"{LIBRARY}/networks.py", "\nADDED = 1\n", {"run_cell": 2, **DRAWING}),
        (f"{LIBRARY}/plotting/curves.py", "\nADDED = 1\n", DRAWING),
        (f"{LIBRARY}/algorithms/gradient_descent.py", "\n# a remark\n", {}),
        (f"{LIBRARY}/problems/logistic_regression.py", "\nADDED = 1\n", {}),
        (f"{LIBRARY}/claims.py", "\nADDED = 1\n", {}),
        ("workflow/scripts/draw_figure.py", "\nADDED = 1\n", DRAWING),
        ("workflow/scripts/run_cell.py", "\nADDED = 1\n", {"run_cell": 2, **DRAWING}),
    ],
)
def test_an_edit_reruns_what_depends_on_it_and_nothing_else(edited, file, text, expected):
    append(edited, file, text)
    assert planned(edited) == expected


def test_an_edit_to_one_experiment_reruns_that_one(edited):
    paper = edited / "config/papers/showkatbakhsh.yaml"
    before = "problem: {name: mean_estimation, records: 100, dim: 20, box: 2.0}"
    assert before in paper.read_text()
    paper.write_text(paper.read_text().replace(before, before.replace("2.0", "3.0")))
    assert planned(edited) == {"run_cell": 1, "draw_figure": 1}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--config", "seed=many"], "seed: .*'many'"),
        (["--config", "sead=1"], "sead: unknown key"),
        (["--config", "papers=[nobody]"], "papers: found 'nobody'"),
        (["--config", "data={source: web}"], "data.source: .*'web'"),
    ],
)
def test_a_bad_configuration_stops_before_anything_is_written(tmp_path, options, message):
    folder = copy_to(tmp_path)
    done = snakemake(folder, *options)
    assert done.returncode == 1
    assert re.search(message, done.stderr)
    assert "Traceback" not in done.stderr
    assert not (folder / "results").exists()


def test_an_unknown_figure_is_named(made):
    done = make(made, "showkatbakhsh_fig99")
    assert done.returncode == 1
    assert "showkatbakhsh_fig99" in done.stderr


def test_numbers_do_not_depend_on_cores_or_on_the_number_of_runs(made, tmp_path):
    import polars as pl

    folder = copy_to(tmp_path)
    more = [
        *("--configfile", "config/smoke.yaml"),
        *("--config", "runs=3", "papers=[showkatbakhsh]"),
    ]
    done = snakemake(folder, FIGURE, OTHER, "--cores", "2", *more)
    assert done.returncode == 0, done.stderr
    for name in (FIGURE, OTHER):
        file = f"results/smoke/runs/{name}/gradient_descent.parquet"
        first, second = pl.read_parquet(made / file), pl.read_parquet(folder / file)
        assert second.filter(pl.col("run") < 2).equals(first)
        assert second["run"].max() == 2


def test_a_stale_result_is_refused_even_where_the_records_were_lost(edited):
    """Without .snakemake only times are compared, and an old file looks as good as a new one."""
    shutil.rmtree(edited / ".snakemake")
    assert planned(edited) == {}
    assert make(edited, FIGURE).returncode == 0
    append(edited, f"{LIBRARY}/networks.py", "\nADDED = 1\n")
    assert planned(edited) == {}
    done = make(edited, FIGURE)
    assert done.returncode == 1
    text = done.stdout + done.stderr
    assert "made with other code" in text
    assert "run `snakemake" in text


def test_kept_results_with_new_times_are_kept(edited):
    for file in sorted((edited / "results").rglob("*")):
        os.utime(file)
    assert planned(edited) == {}


def test_a_fresh_clone_makes_everything_anew(tmp_path):
    folder = copy_to(tmp_path)
    assert planned(folder) == {"run_cell": 2, "draw_figure": 2}
