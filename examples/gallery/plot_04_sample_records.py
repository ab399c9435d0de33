"""
Sample records
==============

A release of a random subset of the records has a smaller privacy loss. The figure shows epsilon
of 20 Gaussian releases with noise 2 against the fraction of records in each subset.
"""

import altair as alt
import numpy as np
import polars as pl

import private_consensus as pc
from private_consensus.privacy import Sampling

rates = np.geomspace(0.005, 0.2, 8)
epsilons = []
for rate in rates:
    sampling = Sampling("poisson", float(rate))
    release = pc.Release("gaussian", sensitivity=1.0, scale=2.0, count=20, sampling=sampling)
    epsilons.append(pc.account([release], 1e-5).epsilon)
sampled = pl.DataFrame({"rate": rates, "epsilon": epsilons})

chart = (
    alt.Chart(sampled)
    .mark_line(point=True)
    .encode(
        alt.X("rate").title("fraction of records per release").scale(type="log"),
        alt.Y("epsilon").scale(type="log"),
    )
    .properties(width=420, height=260, title="Poisson sampling, add or remove one record")
)
