"""Run the privacy audits.  Inputs: runs of audit experiments.  Outputs: audits, repairs."""

from private_consensus.common import yamls
from private_consensus.core import algorithms, problems
from private_consensus.reproduction.audits.experiments import (
    EXPERIMENTS as AUDIT_EXPERIMENTS,
)
from private_consensus.reproduction.audits.repairs import cells_of
from private_consensus.reproduction.configuration.plan import modules_of

AUDIT_KINDS = ("audits", "repairs", "observers")

AUDITED = PLAN.audited()

# Modules that are loaded by name; the hash of a script does not include them.
LOADED_BY_NAME = modules_of(algorithms.names(), problems.names())

STATEMENTS = Path(HOME, "config", "statements.yaml")
STATEMENTS_HASH = settings_hash(STATEMENTS.read_text(encoding="utf-8"))
REPAIRS = Path(HOME, "config", "repairs.yaml")
PAIRS = yamls.read(REPAIRS)
REPAIRED = cells_of(PAIRS)


rule audit_settings:
    input:
        prepared=lambda w: prepared_files(
            PLAN.preparations(w.experiment, *AUDITED[w.experiment]), w.scale
        ),
    output:
        rows="results/{scale}/audit/settings/{experiment}.parquet",
    log:
        "results/{scale}/logs/audit.{experiment}.log",
    priority: longest_first("audit.{experiment}")
    conda:
        "../envs/jobs.yml"
    params:
        settings=lambda w: PLAN.audit(w.experiment),
        code=lambda w: code_of(
            "audit_settings.py", *PLAN.modules(w.experiment, *AUDITED[w.experiment])
        ),
    script:
        "../scripts/audit_settings.py"


rule audit:
    input:
        runs=lambda w: cell_files("runs", PLAN.cells(*AUDIT_EXPERIMENTS), w.scale),
        settings=expand(
            "results/{{scale}}/audit/settings/{experiment}.parquet",
            experiment=AUDITED,
        ),
    output:
        audits="results/{scale}/audit/audits.parquet",
    log:
        "results/{scale}/logs/audit.log",
    conda:
        "../envs/jobs.yml"
    params:
        settings={"pairs": PLAN.audits.pairs[SCALE], "level": PLAN.audits.level},
        code=lambda w: code_of("audit.py", *LOADED_BY_NAME),
    script:
        "../scripts/audit.py"


rule compare_repairs:
    input:
        pairs=REPAIRS.as_posix(),
        runs=lambda w: cell_files("runs", PLAN.cells(*REPAIRED), w.scale),
        privacy="results/{scale}/privacy.parquet",
    output:
        **{kind: f"results/{{scale}}/audit/repairs.{kind}" for kind in FIGURE_KINDS},
        repairs="results/{scale}/audit/repairs.parquet",
    log:
        "results/{scale}/logs/repairs.log",
    conda:
        "../envs/jobs.yml"
    params:
        settings=PAIRS,
        code=lambda w: code_of(
            "compare_repairs.py", *map(algorithms.module_of, sorted(REPAIRED))
        ),
    script:
        "../scripts/compare_repairs.py"


rule observers:
    output:
        **{kind: f"results/{SCALE}/audit/observers.{kind}" for kind in FIGURE_KINDS},
        rows=f"results/{SCALE}/audit/observers.parquet",
    log:
        f"results/{SCALE}/logs/observers.log",
    priority: longest_first("observers")
    conda:
        "../envs/jobs.yml"
    params:
        settings=yamls.read(Path(HOME, "config", "observers.yaml")),
        code=lambda w: code_of("observers.py", *LOADED_BY_NAME),
    script:
        "../scripts/observers.py"
