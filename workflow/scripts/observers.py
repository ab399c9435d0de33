"""Compute the privacy loss of each agent to each observer; summarize worst and median pairs."""

import polars as pl

from private_consensus.common.job_logging import job_logging
from private_consensus.common.provenance import write_text
from private_consensus.common.spreadsheets import csv
from private_consensus.reproduction.experiments.results import DRAWN, stamp, write
from private_consensus.reproduction.observers.settings import pair_rows, summary

SCHEMA = {
    **dict.fromkeys(("graph", "algorithm"), pl.String), "epsilon": pl.Float64,
    "accounted": pl.Float64, "kind": pl.String, "members": pl.String, "target_agent": pl.Int64,
    "distance": pl.Int64, **dict.fromkeys(("lower", "formula", "guarantee"), pl.Float64),
    **dict.fromkeys(("rule", "label", "reason"), pl.String),
}  # fmt: skip

settings, out = snakemake.params.settings, snakemake.output
with job_logging(snakemake.log[0], settings, snakemake.log.usage):
    rows = pair_rows(settings, snakemake.threads)
    write_text(out.table, csv(pl.DataFrame(summary(rows), infer_schema_length=None)))
    provenance = stamp(settings, snakemake.params.code, DRAWN)
    write(pl.DataFrame(rows, schema=SCHEMA), out.pairs, provenance, [out.table])
