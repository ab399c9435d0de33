"""Evaluate every numbered statement of the papers, and write the verdicts."""

from private_consensus.common import yamls
from private_consensus.common.job_logging import job_logging
from private_consensus.common.provenance import write_text
from private_consensus.common.spreadsheets import csv
from private_consensus.reproduction.experiments.results import DRAWN, stamp, write
from private_consensus.reproduction.statements.table import computed, read_theorems

with job_logging(snakemake.log[0], snakemake.params.theorems, snakemake.log.usage):
    errata = yamls.read(snakemake.input.errata)
    verdicts = computed(read_theorems(yamls.read(snakemake.input.theorems), errata))
    write_text(snakemake.output.csv, csv(verdicts))
    provenance = stamp(snakemake.params.theorems, snakemake.params.code, DRAWN)
    write(verdicts, snakemake.output.theorems, provenance, companions=[snakemake.output.csv])
