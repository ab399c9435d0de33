"""Calls of Snakemake in a temporary copy of the repository.

Each call is a separate process with its own folder, arguments and output. It is forked from a
process that has imported Snakemake and third-party libraries, but no module of the project.
Importing these libraries would take half of the time of each call.
"""

import contextlib
import importlib
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Timer
from typing import Self

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
SNAKEMAKE = [sys.executable, "-m", "snakemake"]
COMMAND = ["private-consensus"]
PATIENCE = 300
"""Seconds after which a call that hangs is killed."""

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload([
    "snakemake.cli", "numpy", "polars", "pydantic", "scipy.stats", "jinja2", "numba", "rich",
    # Modules that Snakemake imports in its functions.
    "snakemake.profiles", "snakemake.report.html_reporter", "pandas", "nbformat.v4", "smart_open",
    # Third-party modules that rules import.
])  # fmt: skip

FIGURE = "showkatbakhsh_extra_reconstruction"
OTHER = "showkatbakhsh_fig3"


def copy_to(folder: Path) -> Path:
    """Copy the inputs of a reproduction, including compiled modules, without any results."""
    for path in PARTS:
        source = ROOT / path
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, folder / path, ignore=shutil.ignore_patterns("*.egg-info"))
        else:
            shutil.copy(source, folder / path)
    return folder


def command(*arguments: str, runs: int = 2, cores: int = 1) -> list[str]:
    """Return the command line of Snakemake for one paper at smoke scale."""
    small = ["--configfile", "config/smoke.yaml", "--config", f"runs={runs}"]
    paper = "papers=[showkatbakhsh]"
    options = ["--quiet", "host", "reason", "--executor", "forks"]  # show the table of jobs
    return [*SNAKEMAKE, "--cores", str(cores), *options, *arguments, *small, paper]


def environment() -> dict[str, str]:
    """Return the environment variables without the path to the installed library.

    The copy uses its own library.
    """
    variables = dict(os.environ)
    variables.pop("PYTHONPATH", None)
    return variables


def call(folder: Path, arguments: list[str]) -> subprocess.CompletedProcess:
    """Run Snakemake, the command or ``python`` with a text, and return the result with output."""
    readers, writers = zip(*(FORKS.Pipe(duplex=False) for _ in range(2)), strict=True)
    process = FORKS.Process(target=_called, args=(folder, arguments, environment(), writers))
    process.start()
    for end in writers:
        end.close()
    watch = Timer(PATIENCE, process.kill)
    watch.start()
    with ThreadPoolExecutor(2) as listeners:
        texts = list(listeners.map(_all_of, readers))
    process.join()
    watch.cancel()
    return subprocess.CompletedProcess(arguments, process.exitcode, *texts)


class Begun:
    """Running call in its own session, which a test may stop, kill or wait for."""

    def __init__(self, folder: Path, arguments: list[str]) -> None:
        self._heard, writer = FORKS.Pipe(duplex=False)
        call_arguments = (folder, arguments, environment(), (writer, writer), True)
        self._process = FORKS.Process(target=_called, args=call_arguments)
        self._process.start()
        writer.close()
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()

    def output(self) -> str:
        """Return the printed output, after the call and its child processes have ended."""
        watch = Timer(PATIENCE, self.kill)
        watch.start()
        output_text = _all_of(self._heard)
        self._process.join()
        watch.cancel()
        return output_text


def _all_of(pipe: Connection) -> str:
    with os.fdopen(os.dup(pipe.fileno()), encoding="utf-8") as stream:
        return stream.read()


def _called(
    folder: Path,
    arguments: list[str],
    variables: dict,
    writers: Sequence[Connection],
    own_session: bool = False,
) -> None:
    """Run Snakemake in a new process that has not imported the project."""
    if own_session:
        os.setsid()
    assert not any(name.startswith("private_consensus") for name in sys.modules)
    _settled(folder, variables, writers)
    if arguments[: len(SNAKEMAKE)] == SNAKEMAKE:
        _snakemake(arguments)
    sys.path.insert(0, str(folder / "src"))
    if arguments[: len(COMMAND)] == COMMAND:
        from private_consensus.cli import main

        sys.exit(main(arguments[len(COMMAND) :]))
    name, text = arguments
    assert name == "python"
    exec(text, {"__name__": "__main__"})


def _settled(folder: Path, variables: dict, writers: Sequence[Connection]) -> None:
    """Set the folder, the environment variables and the two output streams of this process."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    for stream, end in zip((1, 2), writers, strict=True):
        os.dup2(end.fileno(), stream)
    for end in writers:
        end.close()


def _snakemake(arguments: list[str]) -> None:
    from snakemake.cli import main

    sys.argv = ["snakemake", *arguments[len(SNAKEMAKE) :]]
    main()


def make(folder: Path, *targets: str, runs: int = 2, cores: int = 1) -> subprocess.CompletedProcess:
    """Run Snakemake for the targets."""
    return call(folder, command(*targets, runs=runs, cores=cores))


def output_of(done: subprocess.CompletedProcess) -> str:
    """Return the printed output of a call."""
    return done.stdout + done.stderr


def planned(folder: Path, *targets: str) -> dict[str, int]:
    """Return the number of jobs per rule that a dry run announces, without target rules."""
    targets = targets or (FIGURE, OTHER)
    return announced(make(folder, *targets, "--dry-run"), targets)


def announced(done: subprocess.CompletedProcess, targets: tuple[str, ...]) -> dict[str, int]:
    assert done.returncode == 0, output_of(done)
    table = re.search(r"job +count\n-+ +-+\n(.*?)\ntotal", output_of(done), re.S)
    rows = (row.split() for row in table[1].splitlines()) if table else ()
    return {name: int(count) for name, count in rows if name not in targets}


class Warm:
    """Process that has imported the library of a copy, and forks to run Snakemake.

    It serves calls in this copy and in copies with an equal library. Importing the library would
    take half of the time of each call and of each of its jobs. The code is read from the files.
    """

    def __init__(self, folder: Path) -> None:
        self._ends, theirs = FORKS.Pipe()
        self._process = FORKS.Process(target=_answering, args=(folder, environment(), theirs))
        self._process.start()
        theirs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.close()
        self._process.join(PATIENCE)

    def call(self, folder: Path, arguments: list[str]) -> subprocess.CompletedProcess:
        """Run Snakemake in the prepared process."""
        self._ends.send((folder, arguments, environment()))
        if not self._ends.poll(PATIENCE):
            self._process.kill()
        return subprocess.CompletedProcess(arguments, *self._ends.recv())

    def make(
        self, folder: Path, *targets: str, runs: int = 2, cores: int = 1
    ) -> subprocess.CompletedProcess:
        """Run Snakemake for the targets in the prepared process."""
        return self.call(folder, command(*targets, runs=runs, cores=cores))

    def planned(self, folder: Path, *targets: str) -> dict[str, int]:
        """Return the number of planned jobs per rule, computed in the prepared process."""
        targets = targets or (FIGURE, OTHER)
        return announced(self.make(folder, *targets, "--dry-run"), targets)


def _answering(home: Path, variables: dict, connection: Connection) -> None:
    os.environ.clear()
    os.environ.update(variables)
    sys.path.insert(0, str(home / "src"))
    for file in (home / "Snakefile", *(home / "workflow/rules").glob("*.smk")):
        for name in re.findall(r"^ *from (private_consensus[\w.]*) import", file.read_text(), re.M):
            importlib.import_module(name)
    from private_consensus import algorithms, problems
    from private_consensus.reproduction.configuration.plan import modules_of

    for name in modules_of(algorithms.names(), problems.names()):
        importlib.import_module(name)
    from snakemake_executor_plugin_forks import server

    for script in sorted((home / "workflow/scripts").glob("*.py")):
        server.import_modules_of(str(script))
    server.preload()
    with contextlib.suppress(EOFError):
        while True:
            connection.send(_answered(*connection.recv()))


def _answered(folder: Path, arguments: list[str], variables: dict) -> tuple[int, str, str]:
    """Run Snakemake in a fork and return its exit code and the text of its two streams.

    Another fork runs its jobs, so that they need not wait for imports.
    """
    import snakemake_executor_plugin_forks as executor

    readers, writers = zip(*(FORKS.Pipe(duplex=False) for _ in range(2)), strict=True)
    child = os.fork()
    if not child:
        _settled(folder, variables, writers)
        server = executor.start_server("fork")
        executor.start_server = lambda: server
        with _leaving():
            _snakemake(arguments)
    for end in writers:
        end.close()
    with ThreadPoolExecutor(2) as listeners:
        texts = list(listeners.map(_all_of, readers))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), *texts


@contextlib.contextmanager
def _leaving() -> Iterator[None]:
    """End the forked process after the block instead of returning to the caller."""
    code = 1
    try:
        yield
        code = 0
    except SystemExit as end:
        code = end.code or 0
        if isinstance(code, str):
            print(code, file=sys.stderr)
            code = 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


Edits = Mapping[str, str | tuple[str, str]]


@contextlib.contextmanager
def edited_for_now(folder: Path, edits: Edits) -> Iterator[None]:
    """Append to or replace texts in files within the block, then restore files and times."""
    before = {folder / name: (folder / name).stat() for name in edits}
    original_contents = {path: path.read_bytes() for path in before}
    try:
        for name, text in edits.items():
            if isinstance(text, str):
                append(folder, name, text)
            else:
                original_text = (folder / name).read_text()
                assert text[0] in original_text
                (folder / name).write_text(original_text.replace(*text))
        yield
    finally:
        for path, content in original_contents.items():
            path.write_bytes(content)
            os.utime(path, ns=(before[path].st_atime_ns, before[path].st_mtime_ns))


def append(folder: Path, file: str, text: str) -> None:
    """Append text to a file."""
    path = folder / file
    path.write_text(path.read_text() + text)
