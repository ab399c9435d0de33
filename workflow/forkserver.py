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
KILLED = 128
"""A shell adds it to the number of the signal that ended a process."""


def serve(path, renderers, scripts):
    """Answer callers; returns what to run, in each fork that was made for a job."""
    drawings = f"{path}.svg"
    asked_to_draw, listener = listening(drawings), listening(path)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    preload(scripts)
    # Threads of polars free memory, and begin anew in a fork; Python 3.12 warns of any thread.
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
    # Nobody waits for those who wait for a job.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for _ in range(renderers):
        if os.fork() == 0:
            listener.close()
            draw(asked_to_draw)
    asked_to_draw.close()
    while True:
        ready, _, _ = select.select([listener, sys.stdin], [], [])
        if sys.stdin in ready:
            os.unlink(drawings)
            os.unlink(path)
            sys.exit()
        caller, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            return attend(caller)
        caller.close()


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

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
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


def attend(caller):
    """Answer one caller with the exit code of a fork; returns what to run, in that fork."""
    head, files, _, _ = socket.recv_fds(caller, 4, len(STANDARD))
    with caller.makefile("rb") as stream:
        content = os.fsdecode(stream.read(int.from_bytes(head, "big")))
    folder, script, *variables = content.split("\0")
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    job = os.fork()
    if job == 0:
        caller.close()
        become(folder, variables, files)
        return script
    answer(caller, job)
    os._exit(0)


def become(folder, variables, files):
    """Take the place of the caller."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for given, place in zip(files, STANDARD, strict=True):
        os.dup2(given, place)
        os.close(given)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variable.split("=", 1) for variable in variables)


def answer(caller, job):
    """Wait for a job, or for the end of its caller, which is the job's too."""
    ended = os.pidfd_open(job)
    ready, _, _ = select.select([caller, ended], [], [])
    if ended not in ready:
        os.kill(job, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(job, 0)[1])
    if ended in ready:
        caller.send(bytes([code if code >= 0 else KILLED - code]))


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
