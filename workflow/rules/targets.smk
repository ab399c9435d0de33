"""Define targets for users: a study, and figures, tables and data sets by name."""


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
    params:
        level=AUDITS.level,
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
    message:
        "{wildcards.wrong} is not a target"
    shell:
        "false 2> {log}"


def files_of_target(name):
    """Return the files of a figure, a table or a data set."""
    data = f"results/{SCALE}/data/{name}.parquet"
    if name in PLAN.figures:
        kinds = [f"results/{SCALE}/figures/{name}.{kind}" for kind in FIGURE_KINDS]
        return [data, *kinds]
    if name in PLAN.tables:
        kinds = [f"results/{SCALE}/tables/{name}.{kind}" for kind in TABLE_KINDS]
        return [data, *kinds]
    used = [p.name for p in PREPARATIONS.values() if p.dataset == name]
    return expand(f"results/{SCALE}/cards/{{name}}.json", name=used)


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
