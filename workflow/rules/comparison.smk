"""Compare all private algorithms at equal budgets.  Inputs: config/comparison.yaml, prepared data.  Outputs: results, cells, answers.

The target `everything` does not include this one: snakemake --cores 8 comparison. A job runs some methods in all cells, because
parameters are transferred between problems.
"""

from private_consensus.comparison.design import read_comparison

COMPARISON = read_comparison(yamls.read(Path(HOME, "config", "comparison.yaml"))).at(
    SCALE
)


rule compare_methods:
    input:
        prepared=lambda w: prepared_files(COMPARISON.prepared, w.scale),
    output:
        rows="results/{scale}/comparison/parts/{part}.parquet",
        described="results/{scale}/comparison/parts/{part}.json",
    log:
        "results/{scale}/logs/comparison.{part}.log",
        usage="results/{scale}/timings/comparison.{part}.tsv",
    wildcard_constraints:
        part="[0-9]+",
    conda:
        "../envs/jobs.yml"
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        design=lambda w: COMPARISON.part(int(w.part)),
        code=lambda w: code_of(
            "compare_methods.py",
            *map(algorithms.module_of, COMPARISON.algorithms_of(int(w.part))),
        ),
    message:
        "Comparison, part {wildcards.part}"
    script:
        "../scripts/compare_methods.py"


rule gather_comparison:
    input:
        rows=expand(
            "results/{{scale}}/comparison/parts/{part}.parquet",
            part=range(COMPARISON.jobs),
        ),
        described=expand(
            "results/{{scale}}/comparison/parts/{part}.json",
            part=range(COMPARISON.jobs),
        ),
    output:
        results="results/{scale}/comparison/results.parquet",
        cells="results/{scale}/comparison/cells.json",
        runs="results/{scale}/comparison/runs.parquet",
    log:
        "results/{scale}/logs/comparison.log",
        usage="results/{scale}/timings/comparison.tsv",
    conda:
        "../envs/jobs.yml"
    resources:
        mem_mb=2000,
        runtime=5,
    params:
        design=COMPARISON.model_dump(mode="json"),
        code=lambda w: code_of("gather_comparison.py"),
    message:
        "Results of the comparison"
    script:
        "../scripts/gather_comparison.py"


rule answer_comparison:
    input:
        results="results/{scale}/comparison/results.parquet",
        cells="results/{scale}/comparison/cells.json",
        advice=Path(HOME, "config", "advice.yaml").as_posix(),
    output:
        answers="results/{scale}/comparison/answers.json",
    log:
        "results/{scale}/logs/answers.log",
        usage="results/{scale}/timings/answers.tsv",
    conda:
        "../envs/jobs.yml"
    resources:
        mem_mb=2000,
        runtime=10,
    params:
        advice=yamls.read(Path(HOME, "config", "advice.yaml")),
        code=lambda w: code_of("answer_comparison.py"),
    message:
        "Rankings and advice of the comparison"
    script:
        "../scripts/answer_comparison.py"


rule comparison:
    input:
        f"results/{SCALE}/comparison/answers.json",
    localrule: True
    message:
        f"The comparison: results/{SCALE}/comparison/results.parquet"
