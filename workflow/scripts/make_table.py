"""Compute the numbers of a table, and write the table as CSV and Markdown."""

from private_consensus.common.job_logging import job_logging
from private_consensus.common.provenance import write_text
from private_consensus.common.spreadsheets import csv
from private_consensus.reproduction.results import tables
from private_consensus.reproduction.results.files import read, sources, stamp, write

table, out = snakemake.params.settings, snakemake.output
with job_logging(snakemake.log[0], table):
    read_runs = [read(path) for path in snakemake.input.runs]
    cells = {(runs["experiment"][0], runs["algorithm"][0]): runs for runs in read_runs}
    numbers = tables.table_numbers(table, cells)
    source = sources(snakemake.input.runs)
    write_text(out.csv, csv(numbers))
    write_text(out.md, tables.markdown(numbers, table))
    provenance = stamp(table, snakemake.params.code, source)
    write(numbers, out.numbers, provenance, [out.csv, out.md])
