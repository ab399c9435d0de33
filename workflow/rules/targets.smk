"""What a user asks for: a figure or a table by its name.

A target ends by asking every result that it rests on whether it was made by the code and the settings of now.
Snakemake sees to that by itself as long as its records in .snakemake are kept; where they were lost, or files were
copied in, the target fails and says what to run.
"""

for name in PLAN.figures:

    rule:
        name:
            name
        input:
            expand(f"results/{SCALE}/figures/{name}.{{kind}}", kind=FIGURE_KINDS),
            f"results/{SCALE}/data/{name}.parquet",
        log:
            f"results/{SCALE}/logs/target.{name}.log",
        localrule: True
        conda:
            "../../environment.yml"
        params:
            scale=SCALE,
            expected=lambda w, figure=name: expected_of(figure),
        message:
            f"The figure: results/{SCALE}/figures/{name}.svg"
        script:
            "../scripts/require_current.py"


for name in PLAN.tables:

    rule:
        name:
            name
        input:
            expand(f"results/{SCALE}/tables/{name}.{{kind}}", kind=TABLE_KINDS),
            f"results/{SCALE}/data/{name}.parquet",
        log:
            f"results/{SCALE}/logs/target.{name}.log",
        localrule: True
        conda:
            "../../environment.yml"
        params:
            scale=SCALE,
            expected=lambda w, table=name: expected_of(table),
        message:
            f"The table: results/{SCALE}/tables/{name}.md"
        script:
            "../scripts/require_current.py"
