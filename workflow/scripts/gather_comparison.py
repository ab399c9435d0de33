"""Gather the results of the comparison in one table, and write its design."""

import json

import polars as pl

from private_consensus.common.job_logging import job_logging
from private_consensus.common.provenance import write_text
from private_consensus.common.readable import read_json
from private_consensus.comparison.design import ComparisonDesign, described
from private_consensus.comparison.schema import KEYS, checked, one_row_per_run
from private_consensus.reproduction.experiments.results import rows_of, sources, stamp, write

COMPRESSION = 19
"""Level of Zstandard for the table that is published."""

design, out = snakemake.params.design, snakemake.output
with job_logging(snakemake.log[0], design, snakemake.log.usage):
    parts = list(snakemake.input.rows)
    rows = checked(pl.concat([rows_of(path) for path in parts])).sort(KEYS)
    parts_described = [read_json(path) for path in snakemake.input.described]
    lists = [
        [row for part in parts_described for row in part[key]]
        for key in ("absent", "borders", "tuning_check")
    ]
    # The order of the methods of one job differs between runs.
    lists[0].sort(key=lambda row: json.dumps(row, sort_keys=True))
    description = described(ComparisonDesign.model_validate(design), *lists)
    write_text(out.cells, json.dumps(description, indent=1) + "\n")
    provenance = stamp(design, snakemake.params.code, sources(parts))
    write(one_row_per_run(rows), out.runs, provenance, compression_level=COMPRESSION)
    write(rows, out.results, provenance, [out.cells, out.runs])
