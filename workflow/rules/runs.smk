"""Run one algorithm of one experiment.  Inputs: prepared data, tuning runs.  Outputs: measurements, privacy."""

from private_consensus.kernels.forks import fewest


def prepared_of(wildcards):
    if (wildcards.experiment, wildcards.algorithm) not in PLAN.cells():
        sys.exit(
            f"{wildcards.experiment}: no experiment of the configuration with this name runs {wildcards.algorithm}"
        )
    names = PLAN.preparations(wildcards.experiment, wildcards.algorithm)
    return prepared_files(names, wildcards.scale)


def processes_of_cell(wildcards):
    """Return the number of processes of a cell, at most a quarter of the cores: the smallest one with the fewest rounds of blocks. On a cluster, a profile sets it."""
    cell = PLAN.cell(wildcards.experiment, wildcards.algorithm)
    blocks = -(-cell["runs"] // cell["runs_per_batch"])
    return fewest(blocks, max(1, (workflow.resource_settings.cores or 1) // 4))


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
        usage="results/{scale}/timings/{experiment}.{algorithm}.tsv",
    priority: longest_first("{experiment}.{algorithm}")
    threads: processes_of_cell
    resources:
        mem_mb=lambda wildcards, threads: 1000 + 500 * threads,
    params:
        settings=lambda w: PLAN.cell(w.experiment, w.algorithm),
        code=lambda w: code_of("run_cell.py", *PLAN.modules(w.experiment, w.algorithm)),
    message:
        "Runs of {wildcards.experiment}, {wildcards.algorithm}"
    script:
        "../scripts/run_cell.py"
