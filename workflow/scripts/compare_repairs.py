"""Compare published and corrected variants: final error and true epsilon."""

import polars as pl

from private_consensus.common.job_logging import job_logging
from private_consensus.reproduction.audits.repairs import compared, last_means
from private_consensus.reproduction.figures.drawings import save
from private_consensus.reproduction.figures.repairs import draw
from private_consensus.reproduction.results.files import DRAWN, read, rows_of, sources, stamp, write

SCHEMA = {
    "experiment": pl.String, "algorithm": pl.String, "quantity": pl.String, "metric": pl.String,
    "delta": pl.Float64, "published": pl.String, "value_published": pl.Float64,
    "epsilon_published": pl.Float64, "epsilon_claimed": pl.Float64, "corrected": pl.String,
    "value_corrected": pl.Float64, "epsilon_corrected": pl.Float64,
}  # fmt: skip

pairs = snakemake.params.settings
with job_logging(snakemake.log[0], pairs):
    files = snakemake.input.runs
    frame, source, out = pl.DataFrame(schema=SCHEMA), sources(files) or DRAWN, snakemake.output
    if files:
        # Compute the means of each cell when it is read; all rows need ten times the memory.
        means = pl.concat((last_means(pairs, read(file)) for file in files), how="diagonal_relaxed")
        frame = compared(pairs, means, rows_of(snakemake.input.privacy))
    names = {(pair["published"], pair["corrected"]): pair["name"] for pair in pairs}
    save(draw(frame, source, names), svg=out.svg, png=out.png, pdf=out.pdf)
    drawn = [out.svg, out.png, out.pdf]
    write(frame, out.repairs, stamp(pairs, snakemake.params.code, source), drawn)
