"""Process that imports libraries and forks for each job.

    python -m snakemake_executor_plugin_forks.server FILE_DESCRIPTOR

The server receives ``(job id, script, pickled snakemake object)``, and answers with
``(job id, exit code)``.
It receives ``None`` when no further job follows.
"""

import ast
import gc
import importlib
import os
import pickle
import runpy
import signal
import sys
import traceback
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path

PRELOAD_AFTER = 4
"""Number of jobs after which the server imports modules that few jobs need."""
MODULES = (
    "pandas",
    "scipy.signal",
    "scipy.sparse.linalg",
    "scipy.stats",
    "sklearn.ensemble",
    "sklearn.linear_model",
    "sklearn.pipeline",
    "vl_convert",
)
"""Modules that the library imports inside functions."""


def serve(connection: Connection) -> None:
    """Run jobs until no further job follows or Snakemake has ended."""
    from private_consensus.kernels.forks import end_with_parent

    def run_job(script: str, content: bytes) -> None:
        """Run a script in a forked process."""
        signal.signal(signal.SIGINT, signal.default_int_handler)
        end_with_parent()
        sys.argv = [script]
        sys.path.append(os.path.dirname(script))
        runpy.run_path(script, {"snakemake": pickle.loads(content)}, "__main__")

    # A terminal interrupts the jobs too, and their exit codes are waited for.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    context = get_context("fork")
    scripts: set[str] = set()
    running: dict[int, tuple[int, object]] = {}
    started, is_open = 0, True
    while is_open or running:
        for ready in wait([connection, *running]):
            if ready is connection:
                message = connection.recv()
                if message is None:
                    is_open = False
                    continue
                jobid, script, content = message
                if script not in scripts:
                    scripts.add(script)
                    import_modules_of(script)
                started += 1
                if started == PRELOAD_AFTER:
                    preload()
                process = context.Process(target=run_job, args=(script, content))
                try:
                    process.start()
                except OSError as error:
                    print(f"Cannot start a process for {script}: {error}", file=sys.stderr)
                    connection.send((jobid, 1))
                else:
                    running[process.sentinel] = jobid, process
            else:
                jobid, process = running.pop(ready)
                process.join()
                connection.send((jobid, process.exitcode))
                process.close()


def import_modules_of(script: str) -> None:
    """Import the modules that a script imports. A failure is left to the job."""
    tree = ast.parse(Path(script).read_bytes())
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    with suppress(Exception):
        exec(compile(ast.Module(imports, []), script, "exec"), {})
    # Forks share the pages of modules as long as no garbage collection writes to them.
    gc.collect()
    gc.freeze()


def preload() -> None:
    """Import modules that the library imports inside functions, and load the compiler."""
    from private_consensus import algorithms, problems
    from private_consensus.kernels import compiling
    from private_consensus.reproduction.configuration.plan import modules_of

    for name in (*MODULES, *modules_of(algorithms.names(), problems.names())):
        with suppress(Exception):
            importlib.import_module(name)
    compiling.begin()
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    try:
        serve(Connection(int(sys.argv[1])))
    except (EOFError, ConnectionError):
        pass  # Snakemake has ended.
    except Exception:
        traceback.print_exc()
    # Does not wait for jobs: they end with this process.
    os._exit(0)
