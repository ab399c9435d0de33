"""Define targets for users: figures, tables and data sets by name, and a study.

The last job of a target checks that the present code and settings produced every result on which it depends. Snakemake
ensures this as long as its records in .snakemake exist. If the records were lost, or files were copied, the job fails and
reports the command to run.
"""

for name in [*PLAN.figures, *PLAN.tables]:
    is_table = name in PLAN.tables
    folder, kinds = ("tables", TABLE_KINDS) if is_table else ("figures", FIGURE_KINDS)

    rule:
        name:
            name
        input:
            expand(f"results/{SCALE}/{folder}/{name}.{{kind}}", kind=kinds),
            f"results/{SCALE}/data/{name}.parquet",
        log:
            f"results/{SCALE}/logs/target.{name}.log",
        localrule: True
        conda:
            "../envs/jobs.yml"
        params:
            scale=SCALE,
            expected=lambda w, target=name: expected_of(target),
        message:
            f"Result: results/{SCALE}/{folder}/{name}.{'md' if is_table else 'svg'}"
        script:
            "../scripts/require_current.py"


# A data set by its name: it is acquired and prepared, with one data card per preparation.
for name in DATA_SETS:

    rule:
        name:
            name
        input:
            cards=expand(
                f"results/{SCALE}/cards/{{preparation}}.json",
                preparation=[
                    p.name for p in PREPARATIONS.values() if p.dataset == name
                ],
            ),
        localrule: True
        message:
            f"The data set: results/{SCALE}/prepared"


# All results of the papers in the configuration, without the report: the target of a study.
rule study:
    input:
        figures=expand(
            f"results/{SCALE}/figures/{{figure}}.{{kind}}",
            figure=PLAN.figures,
            kind=FIGURE_KINDS,
        ),
        tables=expand(
            f"results/{SCALE}/tables/{{table}}.{{kind}}",
            table=PLAN.tables,
            kind=TABLE_KINDS,
        ),
        claims=expand(f"results/{SCALE}/claims/{{paper}}.parquet", paper=JUDGED),
        privacy=cell_files("privacy", PLAN.cells(), SCALE),
        audits=expand(
            f"results/{SCALE}/audit/settings/{{experiment}}.parquet",
            experiment=AUDITED_BY_EXPERIMENT,
        ),
        statements=STATEMENTS.as_posix(),
    output:
        summary=f"results/{SCALE}/summary.md",
    log:
        f"results/{SCALE}/logs/study.log",
    localrule: True
    conda:
        "../envs/jobs.yml"
    params:
        scale=SCALE,
        level=AUDITS.level,
        expected=lambda w: expected_stamps(
            provenance_of(PLAN.cells(), PLAN.figures, PLAN.tables)
        ),
        code=lambda w: code_of("summarise.py"),
    message:
        f"The study: results/{SCALE}/summary.md"
    script:
        "../scripts/summarise.py"


# Files have a folder or a suffix. A name without either is a misspelled target.
rule wrong_target:
    input:
        suggest_target,
    output:
        "{wrong}",
    log:
        "{wrong}.log",
    localrule: True
    conda:
        "../envs/jobs.yml"
    message:
        "{wildcards.wrong} is not a target"
    script:
        "../scripts/require_current.py"
