"""Run a cell; write its measurements and its privacy."""

import logging

from private_consensus.datasets import Prepared
from private_consensus.experiments.cells import run_cell
from private_consensus.experiments.results import read_all, source_of, stamp, write
from private_consensus.fast.compiling import limited_threads
from private_consensus.job_logging import job_logging

log = snakemake.log
with job_logging(log[0], snakemake.params.cell, log.usage), limited_threads(snakemake.threads):
    loaded = [Prepared.load(path) for path in snakemake.input.prepared]
    prepared = {data.name: data for data in loaded}
    runs, privacy = run_cell(
        snakemake.params.cell,
        prepared,
        lambda done, of: logging.info("%d of %d runs", done, of),
        read_all(snakemake.input.grids) if snakemake.input.grids else None,
        processes=snakemake.threads,
    )
    mark = stamp(
        snakemake.params.cell, snakemake.params.code, source_of(loaded), snakemake.input.prepared
    )
    write(runs, snakemake.output.runs, mark)
    write(privacy, snakemake.output.privacy, mark)
