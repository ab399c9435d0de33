"""Compute the verdicts on claims.  Inputs: runs and privacy of cells, audits.  Outputs: claims.parquet and privacy.parquet."""

JUDGED = [name for name, paper in PLAN.papers.items() if paper.claims]


rule judge_claims:
    input:
        runs=lambda w: cell_files("runs", PLAN.judged_cells(w.paper), w.scale),
        privacy=lambda w: cell_files("privacy", PLAN.judged_cells(w.paper), w.scale),
    output:
        claims="results/{scale}/claims/{paper}.parquet",
    log:
        "results/{scale}/logs/claims.{paper}.log",
    conda:
        "../envs/jobs.yml"
    params:
        settings=lambda w: {
            name: claim.model_dump(mode="json", exclude_none=True)
            for name, claim in PLAN.claims(w.paper).items()
        },
        code=lambda w: code_of("judge_claims.py"),
    script:
        "../scripts/judge_claims.py"


rule gather:
    input:
        claims=expand("results/{{scale}}/claims/{paper}.parquet", paper=JUDGED),
        privacy=lambda w: cell_files("privacy", PLAN.cells(), w.scale),
        audits="results/{scale}/audit/audits.parquet",
        statements=STATEMENTS.as_posix(),
        theorems="results/{scale}/statements.parquet",
    output:
        claims="results/{scale}/claims.parquet",
        privacy="results/{scale}/privacy.parquet",
    log:
        "results/{scale}/logs/gather.log",
    localrule: True
    conda:
        "../envs/jobs.yml"
    params:
        settings=STATEMENTS_HASH,
        code=lambda w: code_of("gather.py"),
    script:
        "../scripts/gather.py"
