"""Functions of several rules. They use HOME, PLAN and SCALE of the Snakefile."""

import json
from functools import cache
from itertools import count

from snakemake.logging import logger
from snakemake_interface_logger_plugins.common import LogEvent

from private_consensus.common.errors import nearest
from private_consensus.common.provenance import code_hash, settings_hash

SCRIPTS = HOME / "workflow" / "scripts"
FIGURE_KINDS = ("pdf", "png", "svg")
# Priority of jobs on which many jobs depend.
HIGHEST_PRIORITY = 10**6
# Numbers of the started jobs.
NUMBERS = count(1)


def print_one_line(record):
    """Print one line when a job starts, instead of the lines of Snakemake; return True for other messages."""
    event = getattr(record, "event", None)
    if event is not LogEvent.JOB_INFO:
        return (
            event is not LogEvent.JOB_STARTED
            and record.msg != "Select jobs to execute..."
        )
    named = {key: name for key, name in record.wildcards.items() if key != "scale"}
    text = record.rule_msg or " ".join([record.rule_name, *named.values()])
    print(
        f"{next(NUMBERS)} of {len(workflow.dag)}: {text}", file=sys.stderr, flush=True
    )
    return False


for handler in logger.handlers:
    if handler.name == "DefaultStreamHandler":
        handler.addFilter(print_one_line)


# Cached, because several jobs need each hash.
@cache
def code_of(script, *modules):
    """Compute the hash of a script, of the modules that it imports, and of further modules."""
    return code_hash(*modules, files=[SCRIPTS / script])


@cache
def published_seconds():
    """Return the seconds of each job of the published run, by the name of its log file; empty without published results."""
    manifest = HOME / "results" / "reference" / "manifest.json"
    if not manifest.is_file():
        return {}
    return json.loads(manifest.read_text(encoding="utf-8"))["wall seconds"]


def longest_first(job):
    """Return a priority function: jobs that took longer in the published run start first."""
    seconds = published_seconds()
    return lambda wildcards: seconds.get(job.format(**wildcards), 0)


def prepared_files(names, scale):
    return [f"results/{scale}/prepared/{name}.npz" for name in names]


def cell_files(kind, cells, scale):
    return [
        f"results/{scale}/{kind}/{experiment}/{algorithm}.parquet"
        for experiment, algorithm in cells
    ]


def hashes_of_results():
    """Map each result of the requested targets to the hashes of its settings and code.

    These are the parameters of the jobs, which Snakemake compares with its records in .snakemake. The report compares them with
    the hashes in the results, since the records may be lost.
    """
    jobs = [job for job in workflow.dag.jobs if "settings" in job.rule.params.keys()]
    return {
        file: {"settings": settings_hash(job.params.settings), "code": job.params.code}
        for file, job in sorted((str(file), job) for job in jobs for file in job.output)
        if file.endswith(".parquet")
    }


def suggest_target(wildcards):
    targets = [rule.name for rule in workflow.rules if rule.name != "wrong_target"]
    suggestion = (
        nearest(wildcards.wrong, targets) or "snakemake --list shows all targets"
    )
    sys.exit(
        f"{wildcards.wrong}: not a figure, table, data set or other target; {suggestion}"
    )
