"""Run some methods of the comparison in all cells; record measures, absent methods and tuning."""

import json

import polars as pl

from private_consensus.common.job_logging import job_logging
from private_consensus.common.provenance import write_text
from private_consensus.comparison.design import ComparisonDesign
from private_consensus.comparison.engine import entries_of
from private_consensus.comparison.tuning_check import checked_tuning
from private_consensus.kernels.compiling import limited_threads
from private_consensus.reproduction.datasets import Prepared
from private_consensus.reproduction.experiments.results import source_of, stamp, write

design, out, log = snakemake.params.design, snakemake.output, snakemake.log
with job_logging(log[0], design, log.usage), limited_threads(snakemake.threads):
    comparison = ComparisonDesign.model_validate(design)
    loaded = [Prepared.load(path) for path in snakemake.input.prepared]
    entries = entries_of(comparison, {data.name: data for data in loaded})
    rows = pl.concat([entry.rows() for entry in entries])
    description = {
        "absent": [row for entry in entries for row in entry.absent],
        "borders": [row for entry in entries for row in entry.borders()],
        "tuning_check": [row for entry in entries for row in checked_tuning(entry)],
    }
    write_text(out.described, json.dumps(description))
    provenance = stamp(design, snakemake.params.code, source_of(loaded), snakemake.input.prepared)
    write(rows, out.rows, provenance, [out.described])
