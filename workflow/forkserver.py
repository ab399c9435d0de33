"""Jobs as forks of one process that has imported what they need.

    python workflow/forkserver.py SOCKET RENDERERS SCRIPTS

To import libraries takes longer than most small jobs. A fork has them already, and is otherwise a
process like one that was started for its job: folder, variables, open files and exit code are those
of the caller (`run_in_fork.py`), and whoever kills the caller kills the job. The server ends when
its standard input does, that is, with the process that has started it.

A fork has no threads, so that each figure would start Vega's renderer anew: some forks stay, and
draw for all figures at the socket SOCKET.svg (`plotting/rendering.py`).
"""

import ast
import atexit
import contextlib
import gc
import importlib
import os
import runpy
import select
import signal
import socket
import sys
import threading
import warnings
from pathlib import Path
from typing import NamedTuple

STANDARD = (0, 1, 2)
IMPORTED_IN_FUNCTIONS = (
    "dp_accounting",
    "pandas",
    "scipy.signal",
    "scipy.sparse.linalg",
    "scipy.stats",
    "sklearn.ensemble",
    "sklearn.linear_model",
    "sklearn.pipeline",
    "snakemake.script",
    "vl_convert",
)
"""What the library imports where few callers get, and Snakemake at the head of a script."""
PATIENCE = 60
"""Seconds in which a caller says what it wants; it says so at once."""
KILLED = 128
"""A shell adds it to the number of the signal that ended a process."""


class Job(NamedTuple):
    """Who waits for a fork, the fork, and what can be read once it has ended."""

    caller: socket.socket
    process: int
    ended: int


def serve(path, renderers, scripts):
    """Answer callers; returns what to run, in each fork that was made for a job."""
    drawings = f"{path}.svg"
    asked_to_draw, listener = listening(drawings), listening(path)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    preload(scripts)
    # Threads of polars free memory, and begin anew in a fork; Python 3.12 warns of any thread.
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
    for _ in range(renderers):
        if os.fork() == 0:
            listener.close()
            draw(asked_to_draw)
    asked_to_draw.close()
    jobs, sources = [], [listener, sys.stdin]
    while sources or jobs:
        watched = [each for job in jobs for each in (job.caller, job.ended)]
        ready, _, _ = select.select([*sources, *watched], [], [])
        jobs = [job for job in jobs if not answered(job, ready)]
        if listener in ready:
            script = attend(listener, jobs)
            if script is not None:
                return script
        if sys.stdin in ready:
            # Jobs that were begun are waited for.
            sources = []
            for name in (drawings, path):
                Path(name).unlink(missing_ok=True)
    sys.exit()


def listening(path):
    """A socket that has its name once it listens."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{path}.new")
    listener.listen(1024)
    os.rename(f"{path}.new", path)
    return listener


def draw(listener):
    """Render for jobs, until standard input ends as the server's does."""
    from private_consensus.plotting import rendering

    listener.setblocking(False)
    rendering.serve(listener, sys.stdin)
    os._exit(0)


def preload(scripts):
    """Import what scripts import, and what they find by name; begin what compiles."""
    for script in scripts:
        tree = ast.parse(Path(script).read_bytes())
        imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        exec(compile(ast.Module(imports, []), script, "exec"), {})
    from private_consensus import algorithms, problems
    from private_consensus.fast import compiling

    for module in (*IMPORTED_IN_FUNCTIONS, *algorithms.modules(), *problems.modules()):
        importlib.import_module(module)
    compiling.begin()
    # What is there now is never garbage; looking for some would copy these pages in each fork.
    gc.collect()
    gc.freeze()


def attend(listener, jobs):
    """Fork for one caller, and count the fork among the jobs; returns what to run, in that fork."""
    caller, _ = listener.accept()
    try:
        files, folder, script, variables = asked(caller)
    except (OSError, EOFError):  # it has ended, or was stopped, before it had asked
        caller.close()
        return None
    process = os.fork()
    if process == 0:
        for job in jobs:
            job.caller.close()
            os.close(job.ended)
        listener.close()
        caller.close()
        become(folder, variables, files)
        return script
    for file in files:
        os.close(file)
    jobs.append(Job(caller, process, os.pidfd_open(process)))
    return None


def asked(caller):
    """Open files, folder, script and variables that a job shall have."""
    caller.settimeout(PATIENCE)
    head, files, _, _ = socket.recv_fds(caller, 4, len(STANDARD))
    with caller.makefile("rb") as stream:
        size = int.from_bytes(head, "big")
        content = stream.read(size)
    if len(files) < len(STANDARD) or len(content) < size:
        raise EOFError
    folder, script, *variables = os.fsdecode(content).split("\0")
    return files, folder, script, variables


def become(folder, variables, files):
    """Take the place of the caller."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for given, place in zip(files, STANDARD, strict=True):
        os.dup2(given, place)
        os.close(given)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variable.split("=", 1) for variable in variables)


def answered(job, ready):
    """Whether a job has ended, which its caller is told, or its caller has, which ends the job."""
    if job.ended not in ready:
        if job.caller not in ready:
            return False
        os.kill(job.process, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(job.process, 0)[1])
    with contextlib.suppress(OSError):  # a caller that has ended at the same moment
        job.caller.send(bytes([code if code >= 0 else KILLED - code]))
    job.caller.close()
    os.close(job.ended)
    return True


def run(script):
    """Run a script as the interpreter would, and leave without taking apart what was imported.

    That takes longer than a small job, since it copies all pages that the fork shares with the
    server. A script that fails, or says how it ends, is left to the interpreter.
    """
    sys.argv = [script]
    sys.path[0] = os.path.dirname(script)
    runpy.run_path(script, run_name="__main__")
    # As multiprocessing ends its forks.
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    run(serve(sys.argv[1], int(sys.argv[2]), sys.argv[3:]))
