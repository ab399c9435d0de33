"""Compute the numbers of a figure, and draw the figure."""

from private_consensus.common.job_logging import job_logging
from private_consensus.reproduction import figures
from private_consensus.reproduction.figures.drawings import save
from private_consensus.reproduction.results.files import DRAWN, read, sources, stamp, write
from private_consensus.reproduction.results.numbers import figure_numbers

name, figure = snakemake.wildcards.figure, snakemake.params.settings
with job_logging(snakemake.log[0], figure):
    files = zip(snakemake.input.runs, snakemake.input.privacy, strict=True)
    pairs = [(read(runs), read(privacy)) for runs, privacy in files]
    cells = {
        (runs["experiment"][0], runs["algorithm"][0]): (runs, privacy) for runs, privacy in pairs
    }
    source = sources(snakemake.input.runs) or DRAWN
    numbers = figure_numbers(figure["panels"], cells, source=source)
    chart = figures.draw(name, snakemake.params.paper, numbers, figure, snakemake.params.styles)
    out = snakemake.output
    save(chart, svg=out.svg, png=out.png, pdf=out.pdf, png_scale=snakemake.params.png_scale)
    drawn = [out.svg, out.png, out.pdf]
    write(numbers, out.numbers, stamp(figure, snakemake.params.code, source), drawn)
