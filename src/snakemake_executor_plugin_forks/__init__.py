"""Snakemake executor that runs each job as a fork of one process with imported libraries.

Importing the libraries takes longer than most small jobs. Snakemake finds this package by its name;
``--executor forks`` selects it. Jobs run on this machine and must have a ``script:``.

A connection to the server needs the random key of Snakemake's process. The server ends with
Snakemake, and each job ends with the server.
"""

import pickle
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread

from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.executors.real import RealExecutor
from snakemake_interface_executor_plugins.jobs import JobExecutorInterface
from snakemake_interface_executor_plugins.settings import CommonSettings, ExecMode

from .server import start_server

common_settings = CommonSettings(
    non_local_exec=False,
    implies_no_shared_fs=False,
    job_deploy_sources=False,
    auto_deploy_default_storage_provider=False,
)
MAX_JOBS = 1000
"""Largest number of jobs that run simultaneously."""


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
        self._threads = ThreadPoolExecutor(MAX_JOBS)
        self._server = None

    def run_job(self, job: JobExecutorInterface) -> None:
        """Remove old outputs of a job, then send the job to the server."""
        submitted = SubmittedJobInfo(job)
        if not job.is_group() and job.rule.norun:  # a target that only collects its inputs
            self.report_job_submission(submitted)
            self.report_job_success(submitted)
            return
        if job.is_group() or not job.rule.script:
            raise WorkflowError(f"executor forks: expected a single job with a script: {job.name}")
        if self._server is None:
            handle_termination_in_thread()
            self._server = start_server()
            self._jobs = self._server.Jobs()
        for path in map(Path, job.output):
            path.unlink(missing_ok=True)
            path.parent.mkdir(parents=True, exist_ok=True)
        script = Path(job.rule.snakefile).parent / job.rule.script
        # Snakemake marks outputs as incomplete here, before the job can write them.
        self.report_job_submission(submitted)
        content = pickle.dumps(_script_object(job))
        self._threads.submit(self._run, submitted, str(script.resolve()), content)

    def _run(self, submitted: SubmittedJobInfo, script: str, content: bytes) -> None:
        """Run a job on the server, and report its result."""
        try:
            exit_code = self._jobs.run(script, content)
        except (EOFError, OSError) as error:
            text = f"The process that runs jobs has ended, or cannot start a job: {error!r}"
            self.report_job_error(submitted, msg=text)
            return
        if exit_code == 0:
            self.report_job_success(submitted)
        else:
            self.report_job_error(submitted, msg=_failure(exit_code))

    def shutdown(self) -> None:
        """Wait for running jobs, then end the server."""
        self._threads.shutdown()
        if self._server is not None:
            self._server.shutdown()

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
