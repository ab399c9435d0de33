"""Run a cell; write its measurements and its privacy."""

import logging

from private_consensus.common.job_logging import job_logging
from private_consensus.kernels.compiling import limited_threads
from private_consensus.reproduction.data import Prepared
from private_consensus.reproduction.results.cells import run_cell
from private_consensus.reproduction.results.files import read_all, source_of, stamp, write

settings, threads = snakemake.params.settings, snakemake.threads
with job_logging(snakemake.log[0], settings), limited_threads(threads):
    loaded = [Prepared.load(path) for path in snakemake.input.prepared]
    prepared = {data.card["preparation"]: data for data in loaded}
    runs, privacy = run_cell(
        settings,
        prepared,
        lambda done, total: logging.info("%d of %d runs", done, total),
        read_all(snakemake.input.tuning_runs) if snakemake.input.tuning_runs else None,
        processes=threads,
    )
    provenance = stamp(settings, snakemake.params.code, source_of(loaded), snakemake.input.prepared)
    write(runs, snakemake.output.runs, provenance)
    write(privacy, snakemake.output.privacy, provenance)
