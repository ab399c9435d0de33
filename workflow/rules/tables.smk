"""Write tables by name.  Inputs: runs of their cells.  Outputs: numbers, CSV, Markdown."""

TABLE_KINDS = ("csv", "md")


# Both rules write to results/{scale}/data; the names of tables are those of the configuration.
ruleorder: make_table > draw_figure


rule make_table:
    input:
        runs=lambda w: cell_files("runs", PLAN.cells_of(w.table), w.scale),
    output:
        numbers="results/{scale}/data/{table}.parquet",
        csv="results/{scale}/tables/{table}.csv",
        md=report(
            "results/{scale}/tables/{table}.md",
            category=lambda w: PLAN.papers[PLAN.paper_of(w.table)].paper.title,
            labels={"table": "{table}"},
        ),
    log:
        "results/{scale}/logs/table.{table}.log",
    wildcard_constraints:
        table="|".join(PLAN.tables) or "no_table",
    conda:
        "../envs/jobs.yml"
    params:
        settings=lambda w: PLAN.tables[w.table].model_dump(mode="json"),
        code=lambda w: code_of("make_table.py"),
    script:
        "../scripts/make_table.py"
