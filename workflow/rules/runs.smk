"""Run one algorithm of one experiment.  Inputs: prepared data, tuning runs.  Outputs: measurements, privacy."""


rule run_cell:
    input:
        prepared=prepared_of,
        tuning_runs=tunings_of,
    output:
        runs="results/{scale}/runs/{experiment}/{algorithm}.parquet",
        privacy="results/{scale}/privacy/{experiment}/{algorithm}.parquet",
    log:
        "results/{scale}/logs/{experiment}.{algorithm}.log",
        usage="results/{scale}/timings/{experiment}.{algorithm}.tsv",
    priority: longest_first("{experiment}.{algorithm}")
    conda:
        "../envs/jobs.yml"
    threads: processes_of_cell
    resources:
        mem_mb=lambda wildcards, threads: 1000 + 500 * threads,
        runtime=20,
    params:
        cell=lambda wildcards: PLAN.cell(wildcards.experiment, wildcards.algorithm),
        code=code_of_cell,
    message:
        "Runs of {wildcards.experiment}, {wildcards.algorithm}"
    script:
        "../scripts/run_cell.py"
