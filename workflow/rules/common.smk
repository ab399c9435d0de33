"""Define functions that several rules use.  Inputs: HOME, CONFIGURED, PLAN, CONFIG, SCALE."""

import json
from functools import cache
from types import SimpleNamespace

from private_consensus import algorithms, plotting, problems
from private_consensus.reproduction.experiments.rows import require_rows
from private_consensus.core.kernels.forks import fewest
from private_consensus.common.provenance import code_hash, settings_hash

preparations_of = cache(PLAN.preparations)
SCRIPTS = HOME / "workflow" / "scripts"
FIGURE_KINDS = ("svg", "png", "pdf", "json")
# Modules that are loaded by name, which the hash of a script does not include.
FOUND_BY_NAME = [*algorithms.modules(), *problems.modules()]


def configured(name):
    """Return a file of the configuration: that of the study, or that of the package."""
    return next(folder / name for folder in CONFIGURED if (folder / name).is_file())


def at_home(name):
    """Return the path of a file of the package; relative if it is the same file."""
    file = HOME / name
    return name if Path(name).resolve() == file.resolve() else file.as_posix()


# Cached, because jobs and the report need the same hashes.
@cache
def code_of(script, *modules):
    """Compute the hash of a script, of the modules it imports, and of the named modules."""
    return code_hash(*modules, files=[SCRIPTS / script])


def code_of_cell(wildcards):
    return code_of(
        "run_cell.py", *PLAN.modules(wildcards.experiment, wildcards.algorithm)
    )


def processes_of_cell(wildcards):
    """Return the number of processes: the smallest with the fewest rounds of blocks, at most a quarter of the cores. A profile sets it on a cluster."""
    cell = PLAN.cell(wildcards.experiment, wildcards.algorithm)
    blocks = -(-cell["runs"] // cell["block"])
    return fewest(blocks, quarter_of_cores())


def quarter_of_cores():
    """Return a quarter of the cores that Snakemake may use, at least one."""
    return max(1, (workflow.resource_settings.cores or 1) // 4)


@cache
def published_manifest():
    """Return the manifest of the published run; an empty one if the reference is absent."""
    manifest = HOME / "results" / "reference" / "manifest.json"
    if not manifest.is_file():
        return {"scale": None, "wall seconds": {}}
    return json.loads(manifest.read_text(encoding="utf-8"))


def published_seconds():
    """Return the wall seconds of each job of the published run, by the name of its log file."""
    return published_manifest()["wall seconds"]


# Rules whose log files have different names.
RULE_OF_LOG = {
    "audit": "audit_settings",
    "claims": "judge_claims",
    "figure": "draw_figure",
}


def published_seconds_by_rule():
    """Return the wall seconds of each job of the published run, by rule; empty at another scale."""
    if published_manifest()["scale"] != SCALE:
        return {}
    cells = {f"{experiment}.{algorithm}" for experiment, algorithm in PLAN.cells()}
    by_rule = {}
    for name, seconds in published_seconds().items():
        prefix = name.split(".")[0]
        known = "run_cell" if name in cells else RULE_OF_LOG.get(prefix, prefix)
        by_rule.setdefault(known, {})[name] = seconds
    return by_rule


# Priority of jobs that many jobs depend on, and of long jobs that would otherwise end alone.
AWAITED = 10**6


def longest_first(job):
    """Return a priority function: jobs that took longer in the published run start earlier."""
    return lambda wildcards: published_seconds().get(job.format(**wildcards), 0)


def code_of_figure(wildcards):
    own = plotting.module_of(PLAN.paper_of(wildcards.figure))
    return code_of("draw_figure.py", *filter(None, [own]))


def prepared_of(wildcards):
    if (wildcards.experiment, wildcards.algorithm) not in PLAN.cells():
        sys.exit(
            f"No experiment {wildcards.experiment} of the configuration runs {wildcards.algorithm}"
        )
    names = preparations_of(wildcards.experiment, wildcards.algorithm)
    cards = [f"results/{wildcards.scale}/cards/{name}.json" for name in names]
    try:
        require_rows(PLAN.cell(wildcards.experiment, wildcards.algorithm), cards)
    except InvalidInput as error:
        lines = "\n  ".join(str(error).splitlines())
        sys.exit(f"The data that are there cannot be used:\n  {lines}")
    return prepared_files(names, wildcards.scale)


def prepared_files(names, scale):
    return [f"results/{scale}/prepared/{name}.npz" for name in names]


def tunings_of(wildcards):
    pairs = PLAN.tunings(wildcards.experiment, wildcards.algorithm)
    return cell_files("runs", pairs, wildcards.scale)


def lenders_of(wildcards):
    pairs = PLAN.lenders(wildcards.experiment, wildcards.algorithm)
    return cell_files("lent", pairs, wildcards.scale)


def cell_files(kind, cells, scale):
    return [
        f"results/{scale}/{kind}/{experiment}/{algorithm}.parquet"
        for experiment, algorithm in cells
    ]


def partitions_of(figure, scale):
    return (
        [f"results/{scale}/partitions/{figure}.parquet"]
        if PLAN.partitions(figure)
        else []
    )


def views_of(figure, scale):
    return [f"results/{scale}/views/{figure}.parquet"] if PLAN.views(figure) else []


@cache
def stamps_of_now():
    """Return the expected provenance of all results; cached, since it reads every module."""
    return pages.expected_stamps(CURRENT(SCALE))


def expected_of(figure):
    """Return the expected provenance of the numbers of a figure or table, and of their inputs."""
    made = [made_of_cell(*pair, SCALE) for pair in PLAN.cells_of(figure)]
    if figure in PLAN.tables:
        made.append(made_of_table(figure, SCALE))
    else:
        made.append(made_of_figure(figure, SCALE))
        made += [made_of_partition(figure, SCALE)] if PLAN.partitions(figure) else []
        made += [made_of_views(figure, SCALE)] if PLAN.views(figure) else []
    return pages.expected_stamps(made)


def code_of_audits(wildcards):
    return code_of("audit.py", *FOUND_BY_NAME)


def code_of_observers(wildcards):
    return code_of("observers.py", *FOUND_BY_NAME)


def code_of_views(wildcards):
    return code_of("compute_views.py", *FOUND_BY_NAME)


def code_of_repairs(wildcards):
    modules = map(algorithms.module_of, sorted(REPAIRED))
    return code_of("compare_repairs.py", *modules)


def code_of_audited(wildcards):
    audited = AUDITED_ALGORITHMS[wildcards.experiment]
    return code_of("audit_settings.py", *PLAN.modules(wildcards.experiment, *audited))


def prepared_of_audited(wildcards):
    audited = AUDITED_ALGORITHMS[wildcards.experiment]
    names = {
        name
        for algorithm in audited
        for name in preparations_of(wildcards.experiment, algorithm)
    }
    return prepared_files(sorted(names), wildcards.scale)


# Provenance of results, from the parameters of their rules: (files, settings, code, prepared data).


def made_of_cell(experiment, algorithm, scale):
    cell = SimpleNamespace(experiment=experiment, algorithm=algorithm, scale=scale)
    return (
        [
            file
            for kind in ("runs", "privacy")
            for file in cell_files(kind, [(experiment, algorithm)], scale)
        ],
        rules.run_cell.params.cell(cell),
        rules.run_cell.params.code(cell),
        prepared_of(cell),
    )


def made_of_figure(name, scale):
    figure = SimpleNamespace(figure=name)
    return (
        [f"results/{scale}/data/{name}.parquet"],
        rules.draw_figure.params.figure(figure),
        rules.draw_figure.params.code(figure),
        [],
    )


def made_of_partition(name, scale):
    return (
        partitions_of(name, scale),
        rules.summarize_partition.params.partitions(SimpleNamespace(figure=name)),
        rules.summarize_partition.params.code(None),
        prepared_files(PLAN.preparations_of_partitions(name), scale),
    )


def made_of_views(name, scale):
    return (
        views_of(name, scale),
        rules.compute_views.params.views(SimpleNamespace(figure=name)),
        rules.compute_views.params.code(None),
        [],
    )


def made_of_table(name, scale):
    return (
        [f"results/{scale}/data/{name}.parquet"],
        rules.make_table.params.table(SimpleNamespace(table=name)),
        rules.make_table.params.code(None),
        [],
    )


def ask_for_another(wildcards):
    """Exit with the nearest valid target; Snakemake only reports that no rule makes the target."""
    known = [rule.name for rule in workflow.rules if rule.name != "wrong_target"]
    meant = nearest(wildcards.wrong, known) or "snakemake --list names them all"
    sys.exit(f"{wildcards.wrong}: no figure, table, data set or other target; {meant}")
