"""Compute the privacy loss to each observer.  Inputs: config/observers.yaml.  Outputs: all pairs, and a summary."""

from private_consensus.reproduction.observers.settings import read_observed

OBSERVED = read_observed(yamls.read(Path(HOME, "config", "observers.yaml"))).at(SCALE)


rule observers:
    output:
        pairs="results/{scale}/audit/observers.parquet",
        table="results/{scale}/audit/observers.csv",
    log:
        "results/{scale}/logs/observers.log",
        usage="results/{scale}/timings/observers.tsv",
    priority: longest_first("observers")
    conda:
        "../envs/jobs.yml"
    threads: min(8, quarter_of_cores())
    resources:
        mem_mb=lambda wildcards, threads: 750 + 250 * threads,
        runtime=15,
    params:
        settings=OBSERVED,
        code=lambda w: code_of("observers.py", *LOADED_BY_NAME),
    message:
        "Privacy loss of each agent to each observer"
    script:
        "../scripts/observers.py"
