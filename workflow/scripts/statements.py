"""Evaluate every statement of the papers, and write the verdicts and errata."""

from private_consensus.common import yamls
from private_consensus.common.job_logging import job_logging
from private_consensus.common.provenance import write_text
from private_consensus.common.spreadsheets import csv
from private_consensus.reproduction.results.files import DRAWN, stamp, write
from private_consensus.reproduction.statements.table import computed, read_statements

with job_logging(snakemake.log[0], snakemake.params.settings):
    verdicts = computed(read_statements(yamls.read(snakemake.input.statements)))
    write_text(snakemake.output.csv, csv(verdicts))
    provenance = stamp(snakemake.params.settings, snakemake.params.code, DRAWN)
    write(verdicts, snakemake.output.statements, provenance, companions=[snakemake.output.csv])
