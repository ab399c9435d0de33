"""Compare methods at equal true privacy: make comparison.  Inputs: runs and privacy of the cells.  Outputs: comparison."""

# The experiments belong to no paper; config/comparison.yaml lists them instead of the papers.
COMPARED = [cell for cell in PLAN.cells() if PLAN.paper_of(cell[0]) == "comparison"]


if COMPARED:

    rule comparison:
        input:
            runs=cell_files("runs", COMPARED, SCALE),
            privacy=cell_files("privacy", COMPARED, SCALE),
            prepared=prepared_files(PLAN.preparations_in_use(), SCALE),
        output:
            **{
                kind: f"results/{SCALE}/comparison/comparison.{kind}"
                for kind in (*FIGURE_KINDS, "md", "csv")
            },
            losses=f"results/{SCALE}/comparison/losses.parquet",
            means=f"results/{SCALE}/comparison/means.parquet",
        log:
            f"results/{SCALE}/logs/comparison.log",
        params:
            # All methods of an experiment have the same data.
            settings=[
                PLAN.cell(*cell)
                for cell in {cell[0]: cell for cell in COMPARED}.values()
            ],
            titles={name: PLAN.experiments[name].title for name, _ in COMPARED},
            code=lambda w: code_of("compare_methods.py"),
        message:
            f"The comparison: results/{SCALE}/comparison/comparison.md"
        script:
            "../scripts/compare_methods.py"
