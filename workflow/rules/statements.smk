"""Compute every statement of the papers and its errata.  Inputs: statements.  Outputs: statements.parquet and statements.csv."""


rule statements:
    input:
        statements=STATEMENTS.as_posix(),
    output:
        statements="results/{scale}/statements.parquet",
        csv="results/{scale}/statements.csv",
    log:
        "results/{scale}/logs/statements.log",
    conda:
        "../envs/jobs.yml"
    params:
        settings=STATEMENTS_HASH,
        code=lambda w: code_of("statements.py"),
    script:
        "../scripts/statements.py"
