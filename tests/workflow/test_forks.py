"""Test the executor `forks`: no job outlives the server or Snakemake."""

import os
import pickle
import signal
import textwrap
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock

import psutil
import pytest

from snakemake_executor_plugin_forks import handle_termination_in_thread, start_server

TIMEOUT_S = 300


class Server:
    """Fork server in a folder, with the calls that Snakemake makes."""

    def __init__(self, folder: Path, threads: ThreadPoolExecutor) -> None:
        self.manager, self.folder, self._threads = start_server(), folder, threads
        self._jobs = self.manager.Jobs()
        self.process = psutil.Process().children()[-1]

    def send(self, name: str, text: str, content: bytes = pickle.dumps("snakemake")) -> Future[int]:
        script = self.folder / f"{name}.py"
        script.write_text(textwrap.dedent(text))
        return self._threads.submit(self._jobs.run, str(script), content)

    def run(self, text: str, name: str = "job", **options) -> int:
        return self.send(name, text, **options).result(TIMEOUT_S)

    def started(self, name: str) -> list[psutil.Process]:
        """Wait until jobs have written their process ids to files named ``name``."""
        wait_for(lambda: list(self.folder.glob(name)))
        return [psutil.Process(int(path.read_text())) for path in self.folder.glob(name)]


@pytest.fixture
def server(tmp_path, monkeypatch) -> Iterator[Server]:
    monkeypatch.chdir(tmp_path)
    with ThreadPoolExecutor() as threads:
        server = Server(tmp_path, threads)
        yield server
        for job in psutil.Process().children(recursive=True):
            if job.ppid() == server.process.pid:
                job.kill()
    server.manager.shutdown()


def wait_for(condition) -> None:
    end = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def has_ended(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.status() == psutil.STATUS_ZOMBIE
    return True


SLEEP = """
    import os, time
    from pathlib import Path
    Path("new").write_text(str(os.getpid()))
    Path("new").rename("{name}.pid")
    time.sleep(600)
    Path("{name}.result").write_text("late")
"""


def test_a_job_has_the_imports_of_the_server_and_its_own_snakemake_object(server):
    assert server.run("import colorsys\n", "first") == 0
    text = """
        import sys
        from pathlib import Path
        already = {"private_consensus.kernels.forks", "colorsys"} <= sys.modules.keys()
        seen = [already, snakemake, __name__, sys.argv, str(Path.cwd()), sys.stdin.read()]
        Path("seen").write_text(repr(seen))
        import colorsys
        colorsys.changed = True
    """
    assert server.run(text, content=pickle.dumps({"threads": 1})) == 0
    folder = str(server.folder)
    expected = [True, {"threads": 1}, "__main__", [f"{folder}/job.py"], folder, ""]
    assert (server.folder / "seen").read_text() == repr(expected)
    assert server.run("import colorsys; assert not hasattr(colorsys, 'changed')") == 0


@pytest.mark.parametrize(
    ("text", "exit_code"),
    [
        ("raise SystemExit(3)", 3),
        ("raise SystemExit('epsilon: expected a positive number')", 1),
        ("1 / 0", 1),
        ("import absent_module", 1),
        ("not Python", 1),
        ("import os; os._exit(7)", 7),
        ("import os; os.kill(os.getpid(), 9)", -9),
    ],
)
def test_a_failing_job_does_not_end_other_jobs(server, text, exit_code):
    server.send("other", SLEEP.format(name="other"))
    [other_job] = server.started("other.pid")
    assert server.run(text) == exit_code
    assert not has_ended(other_job)
    assert server.run("pass", "last") == 0


def test_sigint_ends_a_job_and_not_the_server(server):
    exit_code = server.send("sleep", SLEEP.format(name="job"))
    [job] = server.started("job.pid")
    for process in (server.process, job):
        process.send_signal(signal.SIGINT)
    assert exit_code.result(TIMEOUT_S) == 1
    assert server.run("pass") == 0


def test_a_job_ends_with_the_server(server):
    outcome = server.send("sleep", SLEEP.format(name="job"))
    [job] = server.started("job.pid")
    server.process.kill()
    assert isinstance(outcome.exception(TIMEOUT_S), EOFError | OSError)
    wait_for(lambda: has_ended(job))


def test_worker_processes_of_a_job_end_with_it(server):
    text = """
        import os, time
        from pathlib import Path
        from private_consensus.kernels.forks import map_in_forks

        def work(name):
            Path(f"{name}.new").write_text(str(os.getpid()))
            Path(f"{name}.new").rename(f"{name}.pid")
            time.sleep(600)

        Path("job.new").write_text(str(os.getpid()))
        Path("job.new").rename("job.pid")
        list(map_in_forks(work, ["first", "second"], 2))
    """
    exit_code = server.send("job", text)
    for name in ("job", "first", "second"):
        wait_for((server.folder / f"{name}.pid").exists)
    processes = server.started("*.pid")
    server.started("job.pid")[0].kill()
    assert exit_code.result(TIMEOUT_S) == -9
    wait_for(lambda: all(map(has_ended, processes)))


def test_sigterm_causes_no_deadlock_while_the_main_thread_holds_a_lock():
    """Terminate while the main thread holds the lock that Snakemake's handler acquires."""
    lock, handled = Lock(), Event()

    def exit_gracefully(*_: object) -> None:
        if lock.acquire(timeout=10):
            handled.set()

    before = signal.signal(signal.SIGTERM, exit_gracefully)
    try:
        handle_termination_in_thread()
        with lock:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.1)
            assert not handled.is_set()
        assert handled.wait(10)
    finally:
        signal.signal(signal.SIGTERM, before)
