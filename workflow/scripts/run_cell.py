"""Run a cell; write its measurements, its privacy, and measurements for other cells."""

import logging

import polars as pl

from private_consensus.common.job_logging import job_logging
from private_consensus.core.kernels.compiling import limited_threads
from private_consensus.reproduction.datasets import Prepared
from private_consensus.reproduction.experiments.cells import compute_cell
from private_consensus.reproduction.experiments.results import (
    read_all,
    rows_of,
    source_of,
    stamp,
    write,
)

log = snakemake.log
with job_logging(log[0], snakemake.params.cell, log.usage), limited_threads(snakemake.threads):
    loaded = [Prepared.load(path) for path in snakemake.input.prepared]
    prepared = {data.name: data for data in loaded}
    lenders = snakemake.input.borrowed
    found = compute_cell(
        snakemake.params.cell,
        prepared,
        lambda done, of: logging.info("%d of %d runs", done, of),
        read_all(snakemake.input.grids) if snakemake.input.grids else None,
        processes=snakemake.threads,
        requests=snakemake.params.requests,
        borrowed=pl.concat(map(rows_of, lenders)) if lenders else None,
    )
    mark = stamp(
        snakemake.params.cell, snakemake.params.code, source_of(loaded), snakemake.input.prepared
    )
    write(found.runs, snakemake.output.runs, mark)
    write(found.privacy, snakemake.output.privacy, mark)
    write(found.requested, snakemake.output.lent, mark)
