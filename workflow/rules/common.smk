"""Functions of several rules. They use HOME, CONFIGURED, PLAN, CONFIG and SCALE of the Snakefile."""

import json
import os
import re
from functools import cache
from types import SimpleNamespace

from private_consensus.core import algorithms, problems
from private_consensus.reproduction import plotting
from private_consensus.reproduction.experiments.freshness import expected_stamps
from private_consensus.reproduction.experiments.checks import require_rows
from private_consensus.kernels.forks import fewest
from private_consensus.common.provenance import code_hash, settings_hash

SCRIPTS = HOME / "workflow" / "scripts"
FIGURE_KINDS = ("svg", "png", "pdf", "json")
# Modules that are loaded by name; the hash of a script does not include them.
LOADED_BY_NAME = [*algorithms.modules(), *problems.modules()]


def configured(name):
    """Return the path of a configuration file: that of the study if it exists, else that of the package."""
    return next(folder / name for folder in CONFIGURED if (folder / name).is_file())


# Cached, because each hash is needed by several jobs and by the report.
@cache
def code_of(script, *modules):
    """Compute the hash of a script, of the modules that it imports, and of further modules."""
    return code_hash(*modules, files=[SCRIPTS / script])


def code_of_cell(wildcards):
    return code_of(
        "run_cell.py", *PLAN.modules(wildcards.experiment, wildcards.algorithm)
    )


def code_of_data(script, dataset):
    """Compute the hash of a script that reads a data set, and of the modules of the data set."""
    package = "private_consensus.reproduction.datasets"
    return code_of(script, package, f"{package}.{dataset}")


def processes_of_cell(wildcards):
    """Return the number of processes of a cell, at most a quarter of the cores: the smallest one with the fewest rounds of blocks. On a cluster, a profile sets it."""
    cell = PLAN.cell(wildcards.experiment, wildcards.algorithm)
    blocks = -(-cell["runs"] // cell["runs_per_batch"])
    return fewest(blocks, quarter_of_cores())


def quarter_of_cores():
    """Return a quarter of the cores that Snakemake may use, at least one."""
    return max(1, (workflow.resource_settings.cores or 1) // 4)


@cache
def published_seconds():
    """Return the seconds of each job of the published run, by the name of its log file; empty without published results."""
    manifest = HOME / "results" / "reference" / "manifest.json"
    if not manifest.is_file():
        return {}
    return json.loads(manifest.read_text(encoding="utf-8"))["wall seconds"]


# Priority of jobs on which many jobs depend.
HIGHEST_PRIORITY = 10**6


def longest_first(job):
    """Return a priority function: jobs that took longer in the published run start first."""
    seconds = published_seconds()
    return lambda wildcards: seconds.get(job.format(**wildcards), 0)


def code_of_figure(wildcards):
    figure_module = plotting.module_of(PLAN.paper_of(wildcards.figure))
    return code_of("draw_figure.py", *filter(None, [figure_module]))


def prepared_of(wildcards):
    if (wildcards.experiment, wildcards.algorithm) not in PLAN.cells():
        sys.exit(
            f"{wildcards.experiment}: no experiment of the configuration with this name runs {wildcards.algorithm}"
        )
    names = PLAN.preparations(wildcards.experiment, wildcards.algorithm)
    cards = [f"results/{wildcards.scale}/cards/{name}.json" for name in names]
    try:
        require_rows(PLAN.cell(wildcards.experiment, wildcards.algorithm), cards)
    except InvalidInput as error:
        lines = "\n  ".join(str(error).splitlines())
        sys.exit(f"The prepared data do not fit the experiment:\n  {lines}")
    return prepared_files(names, wildcards.scale)


def prepared_files(names, scale):
    return [f"results/{scale}/prepared/{name}.npz" for name in names]


def tunings_of(wildcards):
    pairs = PLAN.tunings(wildcards.experiment, wildcards.algorithm)
    return cell_files("runs", pairs, wildcards.scale)


def cell_files(kind, cells, scale):
    return [
        f"results/{scale}/{kind}/{experiment}/{algorithm}.parquet"
        for experiment, algorithm in cells
    ]


@cache
def stamps_of_now():
    """Return the expected provenance of all results; cached, because it hashes every module."""
    return expected_stamps(
        [
            *provenance_of(PLAN.cells(), PLAN.figures, PLAN.tables),
            *provenance_of_other_results(),
        ]
    )


def expected_of(figure):
    """Return the expected provenance of the numbers of a figure or table, and of their inputs."""
    return expected_stamps(
        provenance_of(
            PLAN.cells_of(figure),
            [name for name in PLAN.figures if name == figure],
            [name for name in PLAN.tables if name == figure],
        )
    )


def code_of_audited(wildcards):
    audited = AUDITED_ALGORITHMS[wildcards.experiment]
    return code_of("audit_settings.py", *PLAN.modules(wildcards.experiment, *audited))


def prepared_of_audited(wildcards):
    audited = AUDITED_ALGORITHMS[wildcards.experiment]
    names = PLAN.preparations(wildcards.experiment, *audited)
    return prepared_files(names, wildcards.scale)


# Provenance of results, from the parameters of their rules: (files, settings, code, prepared data).


def provenance_by_job(definition, settings, files, prepared=(), **wildcards):
    """Return the provenance of the results of one job, from the parameters of its rule."""
    job = SimpleNamespace(scale=SCALE, **wildcards)
    params = {
        name: value(job) if callable(value) else value
        for name, value in definition.params.items()
        if name in (settings, "code")
    }
    return files, params.get(settings), params["code"], prepared


def provenance_of(cells, figures, tables):
    """Return the provenance of cells, and of the numbers of figures and tables."""
    for experiment, algorithm in cells:
        pair = {"experiment": experiment, "algorithm": algorithm}
        yield provenance_by_job(
            rules.run_cell,
            "cell",
            [
                f"results/{SCALE}/{kind}/{experiment}/{algorithm}.parquet"
                for kind in ("runs", "privacy")
            ],
            prepared_of(SimpleNamespace(scale=SCALE, **pair)),
            **pair,
        )
    for name in figures:
        numbers = [f"results/{SCALE}/data/{name}.parquet"]
        yield provenance_by_job(rules.draw_figure, "figure", numbers, figure=name)
    for name in tables:
        numbers = [f"results/{SCALE}/data/{name}.parquet"]
        yield provenance_by_job(rules.make_table, "table", numbers, table=name)


def provenance_of_other_results():
    """Return the provenance of audits, statements, claims, privacy and data cards."""
    for name in AUDITED_BY_EXPERIMENT:
        yield provenance_by_job(
            rules.audit_settings,
            "audit_settings",
            [f"results/{SCALE}/audit/settings/{name}.parquet"],
            prepared_of_audited(SimpleNamespace(experiment=name, scale=SCALE)),
            experiment=name,
        )
    for definition, settings, names in (
        (rules.audit, "audit_settings", ["audit/audits"]),
        (rules.compare_repairs, "pairs", ["audit/repairs"]),
        (rules.observers, "settings", ["audit/observers"]),
        (rules.statements, "statements", ["statements"]),
        (rules.gather, "statements", ["claims", "privacy"]),
    ):
        files = [f"results/{SCALE}/{name}.parquet" for name in names]
        yield provenance_by_job(definition, settings, files)
    for paper in JUDGED:
        claims = [f"results/{SCALE}/claims/{paper}.parquet"]
        yield provenance_by_job(rules.judge_claims, "claims", claims, paper=paper)
    for name in PREPARATIONS_USED:
        card = [f"results/{SCALE}/cards/{name}.json"]
        yield provenance_by_job(
            rules.prepare, None, card, prepared_files([name], SCALE), preparation=name
        )


def suggest_target(wildcards):
    """Exit with the file of a paper that is not listed, or with the most similar target."""
    for file in sorted(f for c in CONFIGURED for f in c.glob("papers/**/*.yaml")):
        is_listed = {file.stem, file.parent.name} & {*CONFIG.papers}
        text = file.read_text(encoding="utf-8")
        if not is_listed and re.search(rf"^  {wildcards.wrong}:", text, re.MULTILINE):
            sys.exit(
                f"{wildcards.wrong} is in {os.path.relpath(file)}, which `papers` in "
                "config/config.yaml does not list"
            )
    targets = [rule.name for rule in workflow.rules if rule.name != "wrong_target"]
    suggestion = (
        nearest(wildcards.wrong, targets) or "snakemake --list shows all targets"
    )
    sys.exit(
        f"{wildcards.wrong}: not a figure, table, data set or other target; {suggestion}"
    )
