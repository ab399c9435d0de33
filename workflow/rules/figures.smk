"""Draw figures by name.

Inputs: runs and privacy of their cells.  Outputs: numbers, SVG, PNG, PDF.
"""


rule draw_figure:
    input:
        runs=lambda w: cell_files("runs", PLAN.cells_of(w.figure), w.scale),
        privacy=lambda w: cell_files("privacy", PLAN.cells_of(w.figure), w.scale),
    output:
        numbers="results/{scale}/data/{figure}.parquet",
        svg=report(
            "results/{scale}/figures/{figure}.svg",
            category=lambda w: PLAN.papers[PLAN.paper_of(w.figure)].paper.title,
            labels={"figure": "{figure}"},
        ),
        png="results/{scale}/figures/{figure}.png",
        pdf="results/{scale}/figures/{figure}.pdf",
    log:
        "results/{scale}/logs/figure.{figure}.log",
    wildcard_constraints:
        figure="|".join(PLAN.figures),
    conda:
        "../envs/jobs.yml"
    params:
        settings=lambda w: PLAN.drawing(w.figure),
        styles=lambda w: PLAN.figure_styles(w.figure),
        paper=lambda w: PLAN.paper_of(w.figure),
        # A lower resolution at the smoke scale saves a fifth of the time of dozens of small figures.
        png_scale=0.5 if SCALE == "smoke" else None,
        code=code_of_figure,
    script:
        "../scripts/draw_figure.py"
