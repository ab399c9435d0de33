"""Compute every numbered statement of the papers.  Inputs: theorems, errata.  Outputs: theorems.parquet and theorems.csv."""

THEOREMS = Path(HOME, "config", "theorems.yaml")


rule theorems:
    input:
        theorems=THEOREMS.as_posix(),
        errata=ERRATA.as_posix(),
    output:
        theorems="results/{scale}/theorems.parquet",
        csv="results/{scale}/theorems.csv",
    log:
        "results/{scale}/logs/theorems.log",
        usage="results/{scale}/timings/theorems.tsv",
    conda:
        "../envs/jobs.yml"
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        theorems=settings_hash(THEOREMS.read_text(encoding="utf-8")),
        code=lambda w: code_of("theorems.py"),
    message:
        "Verdicts on numbered statements of the papers"
    script:
        "../scripts/theorems.py"
