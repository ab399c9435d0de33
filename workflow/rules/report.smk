"""The page.  Needs: figures, claims, privacy, cards.  Makes: report/index.html."""

PREPARATIONS_USED = sorted({p for e in PLAN.experiments for p in PLAN.preparations(e)})


rule write_report:
    input:
        figures=expand("results/{{scale}}/figures/{figure}.json", figure=PLAN.figures),
        images=expand(
            "results/{{scale}}/figures/{figure}.{kind}",
            figure=PLAN.figures,
            kind=FIGURE_KINDS,
        ),
        claims="results/{scale}/claims.parquet",
        privacy="results/{scale}/privacy.parquet",
        cards=expand("results/{{scale}}/cards/{name}.json", name=PREPARATIONS_USED),
    output:
        page="results/{scale}/report/index.html",
    log:
        "results/{scale}/logs/report.log",
    benchmark:
        "results/{scale}/timings/report.tsv"
    threads: 1
    resources:
        mem_mb=800,
        runtime=5,
    params:
        papers={name: paper.model_dump(mode="json") for name, paper in PLAN.papers.items()},
        config=CONFIG.model_dump(mode="json"),
        code=code_of("write_report.py"),
    message:
        "report"
    conda:
        "../../environment.yml"
    script:
        "../scripts/write_report.py"
