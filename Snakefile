"""Reproduce the papers.

snakemake --cores 8                         all results
snakemake --cores 2 showkatbakhsh_fig2      one figure
snakemake --cores 2 --configfile config/smoke.yaml
snakemake --cores 2 showkatbakhsh_fig2 --configfile config/smoke.yaml

Put the target before --configfile, because Snakemake reads every later argument as a configuration file.
"""

import gc
import os
import sys
from pathlib import Path

# Garbage collection would take a fifth of the time until the first job, although all objects of the plan remain in use.
gc.disable()

# Folder of this file, also if another workflow imports this workflow as a module.
HOME = Path(workflow.current_basedir.get_path_or_uri(secret_free=True))
SOURCES = [folder.as_posix() for folder in [HOME / "src"] if folder.is_dir()]
sys.path[:0] = SOURCES
# Jobs import the library from its source, if it exists. Linear algebra uses one thread, so that results do not depend on
# the number of cores, and parallel jobs do not compete for cores.
os.environ.update(
    PYTHONPATH=os.pathsep.join(filter(None, [*SOURCES, os.getenv("PYTHONPATH")])),
    OPENBLAS_NUM_THREADS="1",
    MKL_NUM_THREADS="1",
)

from private_consensus.common.errors import InvalidInput
from private_consensus.reproduction.configuration.plan import load
from private_consensus.reproduction.configuration.schema import read_yaml

if not Path("config", "config.yaml").is_file():
    sys.exit(
        f"{Path.cwd()} has no config/config.yaml: run the workflow in its folder ({workflow.basedir}) or in the folder of a study"
    )


configfile: "config/config.yaml"


# Files of a study have precedence over those of the package.
CONFIGURED = list(dict.fromkeys([Path("config").resolve(), HOME.resolve() / "config"]))


onstart:
    gc.freeze()
    gc.enable()


try:
    # Refuse duplicate keys, of which Snakemake would use the last one.
    for file in map(Path, workflow.configfiles):
        read_yaml(file)
    PLAN = load(config, *CONFIGURED)
    PLAN.config.data.check()
    # Only the main process checks the existing data; jobs use its decision.
    if workflow.is_main_process and "--lint" not in sys.argv:
        PLAN.config.data.check_mirror(Path("results", PLAN.config.scale, "raw"))
except InvalidInput as error:
    sys.exit("The configuration is invalid:\n  " + "\n  ".join(str(error).splitlines()))

CONFIG = PLAN.config
SCALE = CONFIG.scale


onsuccess:
    # Imported here, so that it does not delay the start.
    from private_consensus.report.reading import closing_lines

    # The jobs of the requested targets and all jobs on which they depend, also those that were not executed.
    files = [str(file) for job in workflow.dag.jobs for file in job.output]
    provenances = [file for file in files if file.endswith(".provenance.json")]
    lines = closing_lines(Path("results", SCALE), provenances)
    print(*lines, sep="\n", file=sys.stderr)


wildcard_constraints:
    # A run has one scale; only publishing writes to results/reference.
    scale=SCALE,
    experiment="[a-z][a-z0-9_]*",
    algorithm="[a-z][a-z0-9_]*",
    figure="[A-Za-z][A-Za-z0-9_]*",
    paper="[a-z][a-z0-9_]*",
    wrong=r"\w+",


rule everything:
    default_target: True
    input:
        f"results/{SCALE}/report/index.html",
    localrule: True
    message:
        f"The report: results/{SCALE}/report/index.html"


include: "workflow/rules/common.smk"
include: "workflow/rules/inputs.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/runs.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/tables.smk"
include: "workflow/rules/audit.smk"
include: "workflow/rules/statements.smk"
include: "workflow/rules/claims.smk"
include: "workflow/rules/comparison.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/targets.smk"
