"""Compare the methods of config/papers/comparison.yaml: tables, and a figure."""

import polars as pl

from private_consensus.common.job_logging import job_logging
from private_consensus.common.provenance import write_text
from private_consensus.common.spreadsheets import csv
from private_consensus.core import algorithms
from private_consensus.report.formats import algorithm_title
from private_consensus.report.views.comparison import markdown
from private_consensus.reproduction import comparison
from private_consensus.reproduction.data import Prepared
from private_consensus.reproduction.figures.comparison import draw
from private_consensus.reproduction.figures.drawings import save
from private_consensus.reproduction.results.files import read_all, sources, stamp, write

params, files, out = snakemake.params, snakemake.input, snakemake.output
with job_logging(snakemake.log[0], params.settings):
    privacy = read_all(files.privacy)
    comparison.require_private(privacy)
    prepared = {data.card["preparation"]: data for data in map(Prepared.load, files.prepared)}
    public = [row for cell in params.settings for row in comparison.baselines(cell, prepared)]
    titles = {name: algorithm_title(name) for name in algorithms.names()} | params.titles
    runs = comparison.compared(read_all(files.runs), pl.DataFrame(public), titles)
    losses = comparison.transferred(runs)
    means = comparison.with_tuning(comparison.cell_means(runs), runs, privacy)
    source = sources(files.runs)
    save(draw(means, source), svg=out.svg, png=out.png, pdf=out.pdf)
    write_text(out.csv, csv(means))
    write_text(out.md, markdown(means, losses))
    provenance = stamp(params.settings, params.code, source, files.prepared)
    write(losses, out.losses, provenance)
    write(means, out.means, provenance, [out.svg, out.png, out.pdf, out.csv, out.md])
