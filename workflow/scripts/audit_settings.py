"""Audit settings of one experiment: replay them on neighbouring data sets."""

import polars as pl

from private_consensus.common.job_logging import job_logging
from private_consensus.reproduction.audits.settings import SCHEMA, audit_cell
from private_consensus.reproduction.data import Prepared
from private_consensus.reproduction.results.files import source_of, stamp, write

settings = snakemake.params.settings
with job_logging(snakemake.log[0], settings):
    loaded = [Prepared.load(path) for path in snakemake.input.prepared]
    prepared = {data.card["preparation"]: data for data in loaded}
    limits = [settings[name] for name in ("pairs", "horizon", "max_count")]
    rows = [
        row
        for cell in settings["cells"]
        for row in audit_cell(cell, settings["entries"], prepared, *limits)
    ]
    provenance = stamp(settings, snakemake.params.code, source_of(loaded), snakemake.input.prepared)
    write(pl.DataFrame(rows, schema=SCHEMA), snakemake.output.rows, provenance)
