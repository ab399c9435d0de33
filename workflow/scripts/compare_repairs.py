"""Errors of algorithms as printed and as repaired, each with its true epsilon."""

import polars as pl
import yaml

from private_consensus.audits.repairs import compared
from private_consensus.experiments.results import logged, read_all, sources, stamp, write

SCHEMA = {
    "experiment": pl.String, "algorithm": pl.String, "quantity": pl.String, "metric": pl.String,
    "printed": pl.String, "value_printed": pl.Float64, "epsilon_printed": pl.Float64,
    "epsilon_claimed": pl.Float64, "repaired": pl.String, "value_repaired": pl.Float64,
    "epsilon_repaired": pl.Float64,
}  # fmt: skip

with logged(snakemake.log[0], {}):
    with open(snakemake.input.pairs) as text:
        pairs = yaml.safe_load(text)
    files = snakemake.input.runs
    rows = (
        compared(pairs, read_all(files), pl.read_parquet(snakemake.input.privacy)) if files else []
    )
    mark = stamp({}, snakemake.params.code, sources(files))
    write(pl.DataFrame(rows, schema=SCHEMA), snakemake.output.repairs, mark)
