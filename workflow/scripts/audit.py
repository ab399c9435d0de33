"""Compute the audits of small examples; gather the audits of settings."""

import polars as pl

from private_consensus.audits.examples import examples
from private_consensus.common.job_logging import job_logging
from private_consensus.reproduction.audits.experiments import of_experiments
from private_consensus.reproduction.audits.settings import SCHEMA, audit_examples, decided
from private_consensus.reproduction.results.files import DRAWN, read_all, rows_of, stamp, write

settings = snakemake.params.settings
with job_logging(snakemake.log[0], settings):
    provenance = stamp(settings, snakemake.params.code, DRAWN)
    of_audits = of_experiments(read_all(snakemake.input.runs))
    of_settings = [row for path in snakemake.input.settings for row in rows_of(path).to_dicts()]
    of_examples = audit_examples(examples(), settings["pairs"])
    rows = decided(of_examples + of_audits + of_settings, settings["level"])
    write(pl.DataFrame(rows, schema=SCHEMA), snakemake.output.audits, provenance)
