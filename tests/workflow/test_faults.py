"""Test interruptions and failures: no partial file is used, and the next call finishes."""

import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import psutil
import pytest
from scratch import (
    FIGURE,
    PATIENCE,
    SNAKEMAKE,
    Begun,
    Warm,
    command,
    copy_to,
    output_of,
)  # fmt: skip

pytestmark = pytest.mark.workflow

RUNS = 20
HOLD = """

def held(done, of):
    import time
    from pathlib import Path

    logging.info("%d of %d runs", done, of)
    while Path("hold").exists():
        time.sleep(0.02)

"""
"""Code that makes a cell wait between its runs while the file ``hold`` exists."""
PROGRESS = 'lambda done, total: logging.info("%d of %d runs", done, total)'
CELL = f"results/smoke/runs/{FIGURE}/gradient_descent.parquet"
CELL_FILE = Path(CELL).name
LOG = f"results/smoke/logs/{FIGURE}.gradient_descent.log"
UNLOCK = ("--unlock",)


@pytest.fixture(scope="module")
def pristine(tmp_path_factory) -> Path:
    folder = copy_to(tmp_path_factory.mktemp("pristine"))
    script = folder / "workflow/scripts/run_cell.py"
    head, logged, body = script.read_text().partition("\nwith job_logging")
    assert PROGRESS in body
    script.write_text(head + HOLD + logged + body.replace(PROGRESS, "held"))
    return folder


@pytest.fixture(scope="module")
def warm(pristine) -> Iterator[Warm]:
    """Return a process for calls in copies; calls to be stopped use :func:`begun`."""
    with Warm(pristine) as process:
        yield process


@pytest.fixture(scope="module")
def undisturbed(warm, pristine, tmp_path_factory) -> Path:
    """Return the folder of a run that ended without a fault."""
    folder = shutil.copytree(pristine, tmp_path_factory.mktemp("undisturbed") / "copy")
    assert warm.make(folder, FIGURE, runs=RUNS).returncode == 0
    return folder


@pytest.fixture(scope="module")
def reference(undisturbed) -> dict[str, bytes]:
    """Return the files that a run without a fault writes."""
    return made_in(undisturbed)


@pytest.fixture(scope="module")
def terminated(pristine, tmp_path_factory) -> Path:
    """Return the folder of a run that ended after SIGTERM."""
    return stopped(shutil.copytree(pristine, tmp_path_factory.mktemp("terminated") / "copy"))


@pytest.fixture
def folder(pristine, tmp_path) -> Path:
    return shutil.copytree(pristine, tmp_path / "copy")


def made_in(folder: Path) -> dict[str, bytes]:
    kinds = ("runs", "privacy", "data", "figures")
    files = [f for kind in kinds for f in (folder / "results/smoke" / kind).rglob("*.*")]
    return {str(f.relative_to(folder)): f.read_bytes() for f in files}


def begun(folder: Path) -> Begun:
    """Start a run and return it when its cell waits in the middle of the computation."""
    (folder / "hold").touch()
    process = Begun(folder, command(FIGURE, runs=RUNS))
    log = folder / LOG
    end = time.monotonic() + PATIENCE
    while process.returncode is None and time.monotonic() < end:
        if log.exists() and " runs" in log.read_text():
            return process
        time.sleep(0.05)
    process.kill()
    raise AssertionError(f"the cell did not begin: {process.output()}")


def stopped(folder: Path, number: int = signal.SIGTERM) -> Path:
    """Stop a run with a signal, and assert that the result of the cell is complete or absent."""
    process = begun(folder)
    os.kill(process.pid, number)
    let_go(folder)
    process.output()
    assert process.returncode != 0
    if (folder / CELL).exists():
        assert pl.read_parquet(folder / CELL)["run"].n_unique() == RUNS
    return folder


def let_go(folder: Path) -> None:
    (folder / "hold").unlink()


def server_and_job(process: Begun) -> tuple[psutil.Process, psutil.Process]:
    """Return the process that runs jobs, and its only job."""
    [job] = [job for child in psutil.Process(process.pid).children() for job in child.children()]
    return job.parent(), job


def finishes_like(
    warm: Warm, folder: Path, reference: dict[str, bytes], target: str = CELL
) -> None:
    """Assert that the next run succeeds with byte-identical output."""
    done = warm.make(folder, target, runs=RUNS)
    assert done.returncode == 0, output_of(done)
    expected = {f: b for f, b in reference.items() if target == FIGURE or Path(f).name == CELL_FILE}
    assert made_in(folder) == expected


def test_a_killed_job_is_reported_and_leaves_no_result(warm, folder, reference):
    process = begun(folder)
    server_and_job(process)[1].kill()
    output = process.output()
    let_go(folder)
    assert process.returncode == 1
    assert "Error in rule run_cell" in output
    assert not (folder / CELL).exists()
    finishes_like(warm, folder, reference)


def test_killing_the_job_server_ends_its_jobs_and_snakemake(warm, folder, reference):
    process = begun(folder)
    server, job = server_and_job(process)
    server.kill()
    output = process.output()
    assert process.returncode == 1
    assert "Error in rule run_cell" in output
    assert psutil.wait_procs([job], timeout=PATIENCE)[1] == []
    let_go(folder)
    assert not (folder / CELL).exists()
    finishes_like(warm, folder, reference)


def test_the_next_call_reports_the_lock_of_a_killed_snakemake_process(warm, folder, reference):
    process = begun(folder)
    children = server_and_job(process)
    os.kill(process.pid, signal.SIGKILL)
    process.output()
    assert psutil.wait_procs(children, timeout=PATIENCE)[1] == []
    let_go(folder)
    assert not (folder / CELL).exists()
    blocked = warm.make(folder, FIGURE, runs=RUNS)
    assert blocked.returncode == 1
    assert "--unlock" in output_of(blocked)
    assert warm.make(folder, *UNLOCK, runs=RUNS).returncode == 0
    finishes_like(warm, folder, reference)


def test_a_run_resumes_after_sigterm_or_sigint(warm, terminated, folder, reference, tmp_path):
    finishes_like(warm, shutil.copytree(terminated, tmp_path / "terminated"), reference)
    finishes_like(warm, stopped(folder, signal.SIGINT), reference)


def test_a_corrupted_file_is_reported_with_advice(warm, undisturbed, tmp_path, reference):
    folder = shutil.copytree(undisturbed, tmp_path / "copy")
    path = folder / CELL
    path.write_bytes(path.read_bytes()[:-100])
    done = warm.make(folder, FIGURE, runs=RUNS)
    assert done.returncode == 1
    assert f"{CELL}: found 'a damaged file'" in output_of(done)
    assert "delete it and run the command again" in output_of(done)
    path.unlink()
    finishes_like(warm, folder, reference, FIGURE)


def test_a_run_resumed_without_snakemake_records_is_byte_identical(
    warm, terminated, reference, tmp_path
):
    folder = shutil.copytree(terminated, tmp_path / "copy")
    shutil.rmtree(folder / ".snakemake")
    finishes_like(warm, folder, reference, FIGURE)


def test_the_workflow_does_not_write_reference_results(warm, folder):
    reference_file = folder / "results/reference/claims.parquet"
    reference_file.parent.mkdir(parents=True)
    reference_file.write_bytes(b"kept")
    for arguments, message in (
        (["--config", "scale=reference"], "found 'reference'"),
        (["--config", "scale=smokey"], "found 'smokey'"),
        (["--force", str(reference_file.relative_to(folder)), "--config"], "no rule to produce"),
    ):
        done = warm.call(folder, [*SNAKEMAKE, "--cores", "1", *arguments, "papers=[showkatbakhsh]"])
        assert done.returncode == 1 and "Traceback" not in output_of(done)
        assert message.lower() in output_of(done).lower()
    assert reference_file.read_bytes() == b"kept"
    assert [f.name for f in (folder / "results").rglob("*") if f.is_file()] == [reference_file.name]
