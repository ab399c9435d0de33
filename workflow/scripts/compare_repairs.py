"""Compare published and corrected variants: final error and true epsilon."""

import polars as pl

from private_consensus.common.job_logging import job_logging
from private_consensus.reproduction.audits.repairs import compared, released_rows
from private_consensus.reproduction.figures.drawings import save
from private_consensus.reproduction.figures.repairs import draw
from private_consensus.reproduction.results.files import (
    DRAWN,
    read,
    rows_of,
    sources,
    stamp,
    write,
)

SCHEMA = {
    "experiment": pl.String, "algorithm": pl.String, "quantity": pl.String, "metric": pl.String,
    "published": pl.String, "value_published": pl.Float64, "epsilon_published": pl.Float64,
    "epsilon_claimed": pl.Float64, "corrected": pl.String, "value_corrected": pl.Float64,
    "epsilon_corrected": pl.Float64,
}  # fmt: skip

pairs = snakemake.params.settings
with job_logging(snakemake.log[0], pairs, snakemake.log.usage):
    files = snakemake.input.runs
    # Select the rows of each cell when it is read; all rows need ten times the memory.
    released = [released_rows(pairs, read(file)) for file in files]
    runs = pl.concat(released, how="diagonal_relaxed") if files else pl.DataFrame()
    rows = compared(pairs, runs, rows_of(snakemake.input.privacy)) if files else []
    source = sources(files) or DRAWN
    frame, out = pl.DataFrame(rows, schema=SCHEMA), snakemake.output
    names = {(pair["published"], pair["corrected"]): pair["name"] for pair in pairs}
    save(draw(frame, source, names), svg=out.svg, png=out.png, pdf=out.pdf)
    drawn = [out.svg, out.png, out.pdf]
    write(frame, out.repairs, stamp(pairs, snakemake.params.code, source), drawn)
