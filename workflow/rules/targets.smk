"""Define targets for users: a study, and figures, tables and data sets by name."""


# All results of the papers in the configuration, without the report: the target of a study.
rule study:
    input:
        figures=[file for name in PLAN.figures for file in files_of_target(name)[1:]],
        tables=[file for name in PLAN.tables for file in files_of_target(name)[1:]],
        claims=expand(f"results/{SCALE}/claims/{{paper}}.parquet", paper=JUDGED),
        privacy=cell_files("privacy", PLAN.cells(), SCALE),
        audits=expand(
            f"results/{SCALE}/audit/settings/{{experiment}}.parquet",
            experiment=AUDITED,
        ),
        statements=STATEMENTS.as_posix(),
    output:
        summary=f"results/{SCALE}/summary.md",
        findings=f"results/{SCALE}/findings.json",
    log:
        f"results/{SCALE}/logs/study.log",
    localrule: True
    conda:
        "../envs/jobs.yml"
    params:
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
    shell:
        "false 2> {log}"


for name in [*DATA_SETS, *PLAN.figures, *PLAN.tables]:
    if any(rule.name == name for rule in workflow.rules):
        sys.exit(
            f"{name}: a figure or table has the name of another target; choose another name"
        )

    rule:
        name:
            name
        input:
            files_of_target(name),
        localrule: True
        message:
            f"Result: {files_of_target(name)[-1]}"
