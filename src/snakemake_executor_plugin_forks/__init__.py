"""Snakemake executor that runs each job as a fork of one process with imported libraries.

Importing the libraries takes longer than most small jobs. Snakemake finds this package by its name;
``--executor forks`` selects it. Jobs run on this machine and must have a ``script:``.

Snakemake and the server exchange messages through an unnamed pair of sockets, to which no other
process can connect. The server ends with Snakemake, and each job ends with the server.
"""

import pickle
import signal
import subprocess
import sys
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Lock, Thread

from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.executors.real import RealExecutor
from snakemake_interface_executor_plugins.jobs import JobExecutorInterface
from snakemake_interface_executor_plugins.settings import CommonSettings, ExecMode

common_settings = CommonSettings(
    non_local_exec=False,
    implies_no_shared_fs=False,
    job_deploy_sources=False,
    auto_deploy_default_storage_provider=False,
)


def start_server() -> tuple[subprocess.Popen, Connection]:
    """Start the process that runs jobs, and return it with the connection to it."""
    connection, remote = Pipe()
    with remote:
        server = subprocess.Popen(
            [sys.executable, "-m", f"{__name__}.server", str(remote.fileno())],
            pass_fds=[remote.fileno()],
            stdin=subprocess.DEVNULL,
        )
    return server, connection


def handle_termination_in_thread() -> None:
    """Run the present handler of SIGTERM in a thread of its own.

    Snakemake's handler acquires a lock that the interrupted main thread may hold, for example while
    it selects jobs. In the main thread, the handler would then wait forever.
    """
    handler = signal.getsignal(signal.SIGTERM)
    if callable(handler):
        signal.signal(
            signal.SIGTERM, lambda *given: Thread(target=handler, args=given, daemon=True).start()
        )


class Executor(RealExecutor):
    """Executor that sends jobs to the server and reports their results to Snakemake."""

    def __post_init__(self) -> None:
        if self.workflow.deployment_settings.deployment_method:
            raise WorkflowError("executor forks: expected no --sdm; use --executor local with it")
        self._connection: Connection | None = None
        self._receiver: Thread | None = None
        self._running: dict[int, SubmittedJobInfo] = {}
        self._lock = Lock()
        self._terminates_in_thread = False

    def run_jobs(self, jobs: list[JobExecutorInterface]) -> None:
        """Run jobs; before the first ones, protect Snakemake's handler of SIGTERM."""
        if not self._terminates_in_thread:
            handle_termination_in_thread()
            self._terminates_in_thread = True
        super().run_jobs(jobs)

    def run_job(self, job: JobExecutorInterface) -> None:
        """Remove old outputs of a job, then send the job to the server."""
        if not job.is_group() and job.rule.norun:  # a target that only collects its inputs
            submitted = SubmittedJobInfo(job)
            self.report_job_submission(submitted)
            self.report_job_success(submitted)
            return
        if job.is_group() or not job.rule.script:
            raise WorkflowError(f"executor forks: expected a single job with a script: {job.name}")
        for path in map(Path, job.output):
            path.unlink(missing_ok=True)
            path.parent.mkdir(parents=True, exist_ok=True)
        script = Path(job.rule.snakefile).parent / job.rule.script
        message = job.jobid, str(script.resolve()), pickle.dumps(_script_object(job))
        submitted = SubmittedJobInfo(job)
        # Snakemake marks outputs as incomplete here, before the job can write them.
        self.report_job_submission(submitted)
        with self._lock:
            if self._connection is None:
                server, self._connection = start_server()
                self._receiver = Thread(target=self._receive, args=(server, self._connection))
                self._receiver.start()
            self._running[job.jobid] = submitted
            with suppress(OSError):  # The receiver reports the job if the server has ended.
                self._connection.send(message)

    def _receive(self, server: subprocess.Popen, connection: Connection) -> None:
        """Report results until the server ends; then report running jobs as failed."""
        with suppress(EOFError, OSError):
            while True:
                jobid, exit_code = connection.recv()
                submitted = self._running.pop(jobid)
                if exit_code == 0:
                    self.report_job_success(submitted)
                else:
                    self.report_job_error(submitted, msg=_failure(exit_code))
        server.wait()
        with self._lock:
            self._connection = None
            lost, self._running = self._running, {}
        for submitted in lost.values():
            self.report_job_error(submitted, msg="The process that runs jobs has ended.")

    def shutdown(self) -> None:
        """Wait for running jobs, then end the server."""
        with self._lock:
            connection, receiver = self._connection, self._receiver
            if connection is not None:
                with suppress(OSError):
                    connection.send(None)
        if receiver is not None:
            receiver.join()

    def cancel(self) -> None:
        """Wait for running jobs. A keyboard interrupt reaches them from the terminal."""
        self.shutdown()

    def get_python_executable(self) -> str:
        """Return the interpreter of this process."""
        return sys.executable

    def get_exec_mode(self) -> ExecMode:
        """Return the mode of jobs on this machine."""
        return ExecMode.SUBPROCESS

    @property
    def cores(self) -> int:
        """Number of cores that Snakemake may use."""
        return self.workflow.resource_settings.cores


def _script_object(job: JobExecutorInterface) -> object:
    # Imported here: Snakemake imports this package before its own modules.
    from snakemake.script import Snakemake

    return Snakemake(
        job.input, job.output, job.params, job.wildcards, job.threads, job.resources, job.log,
        {}, job.name, None,
    )  # fmt: skip


def _failure(exit_code: int) -> str:
    if exit_code < 0:
        return f"The job was ended by signal {-exit_code}."
    return f"The job ended with exit code {exit_code}."
