"""Jobs as forks of one process that has imported what they need.  Needs: HOME, SCRIPTS."""

import shlex
import subprocess

FEW_JOBS = 8


def can_watch_processes():
    """Whether the system lets a process be waited for like a file; some containers forbid it."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True


def start_forkserver():
    """Start the process that jobs are forks of, and that ends with this one; returns what runs a script in a fork."""
    programs = HOME / "workflow"
    socket = Path(".snakemake", f"forkserver.{os.getpid()}")
    # Kept, since its standard input is open as long as somebody holds it.
    workflow.forkserver = subprocess.Popen(
        [
            sys.executable,
            programs / "forkserver.py",
            socket,
            *sorted(SCRIPTS.glob("*.py")),
        ],
        stdin=subprocess.PIPE,
    )
    return shlex.join(
        [sys.executable, "-IS", str(programs / "run_in_fork.py"), str(socket)]
    )
