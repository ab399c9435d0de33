"""What agents hold when prepared data are dealt to them."""

import polars as pl

from private_consensus.datasets import Prepared
from private_consensus.experiments.deals import deal_points
from private_consensus.experiments.results import logged, source_of, stamp, write

deals = snakemake.params.deals
with logged(snakemake.log[0], deals):
    loaded = {data.name: data for data in map(Prepared.load, snakemake.input.prepared)}
    points = [
        deal_points(loaded[deal["prepared"]], deal, deals["seed"]).with_columns(panel=pl.lit(title))
        for title, deal in deals["panels"].items()
    ]
    mark = stamp(deals, snakemake.params.code, source_of(loaded.values()), snakemake.input.prepared)
    write(pl.concat(points), snakemake.output.deals, mark)
