"""Write the report.  Inputs: figures, numbers, claims, privacy, cards.  Outputs: plan.json and the folder report."""

from private_consensus import report as pages

PREPARATIONS_USED = PLAN.preparations_in_use()
# The comparison of methods is a target of its own. Without such a run, the report shows the published comparison.
COMPARISON = sorted(
    map(str, Path("results", SCALE, "comparison").glob("*.parquet"))
) or sorted(map(str, (HOME / "results/reference/comparison").glob("*.parquet")))
# Results that the report shows and that are published.
RESULTS = dict(
    plan=f"results/{SCALE}/plan.json",
    numbers=expand(f"results/{SCALE}/data/{{figure}}.parquet", figure=PLAN.figures),
    svg=expand(f"results/{SCALE}/figures/{{figure}}.svg", figure=PLAN.figures),
    tables=expand(f"results/{SCALE}/data/{{table}}.parquet", table=PLAN.tables),
    claims=f"results/{SCALE}/claims.parquet",
    privacy=f"results/{SCALE}/privacy.parquet",
    statements=f"results/{SCALE}/statements.parquet",
    compared=COMPARISON,
    cards=expand(f"results/{SCALE}/cards/{{name}}.json", name=PREPARATIONS_USED),
)


# The plan is a file and not a parameter, because Snakemake records the parameters of a job for each output file.
rule write_plan:
    output:
        plan="results/{scale}/plan.json",
    log:
        "results/{scale}/logs/plan.log",
    localrule: True
    conda:
        "../envs/jobs.yml"
    params:
        plan=lambda w: {
            "papers": {name: PLAN.described(name) for name in PLAN.papers},
            "labels": {name: style.label for name, style in PLAN.styles.items()},
            "config": CONFIG.model_dump(mode="json"),
            "expected": hashes_of_results(),
        },
    script:
        "../scripts/write_plan.py"


# Only one of the hundreds of files is an output, because Snakemake hashes all inputs for each output.
rule write_report:
    input:
        **RESULTS,
        files=[
            file
            for name in (*PLAN.figures, *PLAN.tables)
            for file in files_of_target(name)
        ],
        audit=expand("results/{{scale}}/audit/{kind}.parquet", kind=AUDIT_KINDS),
        drawings=expand(
            "results/{{scale}}/audit/{name}.{kind}",
            name=["repairs", "observers"],
            kind=FIGURE_KINDS,
        ),
    output:
        page="results/{scale}/report/index.html",
    log:
        "results/{scale}/logs/report.log",
    localrule: True
    conda:
        "../envs/jobs.yml"
    threads: 2
    params:
        commit=lambda w: pages.described_commit(HOME),
        assets=pages.assets_hash(),
        code=lambda w: code_of("write_report.py"),
    script:
        "../scripts/write_report.py"


# The reference results are in the repository. They are written only from up-to-date and complete results on real data.
rule publish:
    input:
        f"results/{SCALE}/report/index.html",
        **RESULTS,
    log:
        f"results/{SCALE}/logs/publish.log",
    localrule: True
    conda:
        "../envs/jobs.yml"
    params:
        papers=read_yaml(Path(HOME, "config", "config.yaml"))["papers"],
        commit=lambda w: pages.described_commit(HOME),
    script:
        "../scripts/publish.py"
