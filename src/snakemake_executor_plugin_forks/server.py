"""Process that imports libraries and forks for each job."""

import ast
import gc
import importlib
import os
import pickle
import runpy
import signal
import sys
from contextlib import suppress
from functools import cache
from multiprocessing import get_context
from multiprocessing.connection import wait
from multiprocessing.managers import BaseManager
from pathlib import Path
from threading import Lock

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


class Jobs:
    """Jobs of the server; each one is a fork. Calls may come from several threads."""

    def __init__(self) -> None:
        self._started, self._lock = 0, Lock()

    def run(self, script: str, content: bytes) -> int:
        """Run a script with a pickled snakemake object, and return the exit code."""
        process = get_context("fork").Process(target=run_script, args=(script, content))
        # No thread imports a module or ends a process while another one forks.
        with self._lock:
            import_modules_of(script)
            self._started += 1
            if self._started == PRELOAD_AFTER:
                preload()
            process.start()
        wait([process.sentinel])
        with self._lock:
            process.join()
        return process.exitcode or 0


class Server(BaseManager):
    """Process with :class:`Jobs`. It ignores SIGINT, which a terminal also sends to the jobs."""


Server.register("Jobs", Jobs, exposed=["run"])


def start_server(method: str = "spawn") -> Server:
    """Start the process that runs jobs; it ends with this process."""
    # Imported here: Snakemake imports this module before it reads a workflow.
    from private_consensus.kernels.forks import end_with_parent

    server = Server(ctx=get_context(method))
    server.start(end_with_parent)
    return server


def run_script(script: str, content: bytes) -> None:
    """Run a script in a forked process, which ends with the server."""
    from private_consensus.kernels.forks import end_with_parent

    signal.signal(signal.SIGINT, signal.default_int_handler)
    end_with_parent()
    sys.argv = [script]
    sys.path.append(os.path.dirname(script))
    runpy.run_path(script, {"snakemake": pickle.loads(content)}, "__main__")


@cache
def import_modules_of(script: str) -> None:
    """Import the modules that a script imports. A failure is left to the job."""
    with suppress(Exception):
        tree = ast.parse(Path(script).read_bytes())
        imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
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
