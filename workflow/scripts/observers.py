"""Compute the privacy loss to observers, and draw it against the distance."""

import polars as pl

from private_consensus.common.job_logging import job_logging
from private_consensus.reproduction.audits.observers import observer_rows
from private_consensus.reproduction.figures.drawings import save
from private_consensus.reproduction.figures.observers import draw
from private_consensus.reproduction.results.files import DRAWN, stamp, write

settings, out = snakemake.params.settings, snakemake.output
with job_logging(snakemake.log[0], settings):
    rows = pl.DataFrame(list(observer_rows(settings)), infer_schema_length=None)
    chart = draw(rows, settings["budget"], settings["horizon"])
    save(chart, svg=out.svg, png=out.png, pdf=out.pdf)
    drawn = [out.svg, out.png, out.pdf]
    write(rows, out.rows, stamp(settings, snakemake.params.code, DRAWN), drawn)
