"""Count the records of each agent by label, for the panels of a figure."""

import polars as pl

from private_consensus.common.job_logging import job_logging
from private_consensus.reproduction.datasets import Prepared
from private_consensus.reproduction.experiments.numbers import partition_summary
from private_consensus.reproduction.experiments.results import source_of, stamp, write

partitions = snakemake.params.partitions
with job_logging(snakemake.log[0], partitions, snakemake.log.usage):
    loaded = {data.name: data for data in map(Prepared.load, snakemake.input.prepared)}
    points = [
        partition_summary(loaded[drawn["prepared"]], drawn, partitions["seed"]).with_columns(
            panel=pl.lit(title)
        )
        for title, drawn in partitions["panels"].items()
    ]
    provenance = stamp(
        partitions, snakemake.params.code, source_of(loaded.values()), snakemake.input.prepared
    )
    write(pl.concat(points), snakemake.output.partitions, provenance)
