"""Compute the privacy loss to observers for the panels of a figure."""

import polars as pl

from private_consensus.common.job_logging import job_logging
from private_consensus.reproduction.experiments.results import stamp, write
from private_consensus.reproduction.observers.drawn import COMPUTED, view_points

views = snakemake.params.views
with job_logging(snakemake.log[0], views, snakemake.log.usage):
    points = [
        view_points(panel, views["seed"]).with_columns(panel=pl.lit(title))
        for title, panel in views["panels"].items()
    ]
    provenance = stamp(views, snakemake.params.code, COMPUTED)
    write(pl.concat(points, how="diagonal_relaxed"), snakemake.output.views, provenance)
