"""Audit transcripts of settings of one experiment, on data chosen by an attacker."""

import polars as pl

from private_consensus.common.job_logging import job_logging
from private_consensus.reproduction.audits.settings import SCHEMA, audit_cell
from private_consensus.reproduction.datasets import Prepared
from private_consensus.reproduction.experiments.results import source_of, stamp, write

asked = snakemake.params.asked
with job_logging(snakemake.log[0], asked, snakemake.log.usage):
    loaded = [Prepared.load(path) for path in snakemake.input.prepared]
    prepared = {data.name: data for data in loaded}
    how = asked["runs"], asked["confidence"], asked.get("max_settings")
    rows = [
        row for cell in asked["cells"] for row in audit_cell(cell, asked["entries"], prepared, *how)
    ]
    mark = stamp(asked, snakemake.params.code, source_of(loaded), snakemake.input.prepared)
    write(pl.DataFrame(rows, schema=SCHEMA), snakemake.output.rows, mark)
