"""Run one algorithm of one experiment.  Inputs: prepared data, tuning runs.  Outputs: measurements, privacy."""


rule run_cell:
    input:
        prepared=prepared_of,
        tuning_runs=lambda w: cell_files(
            "runs", PLAN.tunings(w.experiment, w.algorithm), w.scale
        ),
    output:
        runs="results/{scale}/runs/{experiment}/{algorithm}.parquet",
        privacy="results/{scale}/privacy/{experiment}/{algorithm}.parquet",
    log:
        "results/{scale}/logs/{experiment}.{algorithm}.log",
    priority: longest_first("{experiment}.{algorithm}")
    conda:
        "../envs/jobs.yml"
    threads: processes_of_cell
    resources:
        mem_mb=lambda wildcards, threads: 1000 + 500 * threads,
    params:
        settings=lambda w: PLAN.cell(w.experiment, w.algorithm),
        code=lambda w: code_of("run_cell.py", *PLAN.modules(w.experiment, w.algorithm)),
    script:
        "../scripts/run_cell.py"
