"""Jobs as forks of one process that has imported what they need.  Needs: HOME, SCRIPTS."""

import shlex
import subprocess
from functools import cache

from private_consensus.plotting.rendering import RENDERER

# What the process imports takes as long as what three jobs import.
FEW_JOBS = 4
# Of a figure's time a third is the renderer's, which keeps its memory.
MOST_RENDERERS = 4


def can_watch_processes():
    """Whether the system lets a process be waited for like a file; some containers forbid it."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True


def imports_begin(wildcards):
    """No files: whoever asks for everything has many jobs, whose imports are read while they are still being planned."""
    runs = workflow.local_exec and not workflow.dryrun and not workflow.touch
    if runs and (workflow.resource_settings.cores or 1) > 1 and can_watch_processes():
        start_forkserver()
    return []


@cache
def start_forkserver():
    """Start the process that jobs are forks of, and that ends with this one; returns what runs a script in a fork."""
    programs = HOME / "workflow"
    socket = Path(".snakemake", f"forkserver.{os.getpid()}")
    os.environ[RENDERER] = f"{socket}.svg"
    # Kept, since its standard input is open as long as somebody holds it.
    workflow.forkserver = subprocess.Popen(
        [
            sys.executable,
            programs / "forkserver.py",
            socket,
            str(min(workflow.resource_settings.cores or 1, MOST_RENDERERS)),
            *sorted(SCRIPTS.glob("*.py")),
        ],
        stdin=subprocess.PIPE,
    )
    return shlex.join(
        [sys.executable, "-IS", str(programs / "run_in_fork.py"), str(socket)]
    )
