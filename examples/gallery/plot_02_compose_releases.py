"""
Compose releases
================

The figure compares two bounds on epsilon of repeated Gaussian releases: the sum of the single
epsilons, and the exact composition of the accountant.
"""

import altair as alt
import numpy as np
import polars as pl

import private_consensus as pc

DELTA, SCALE = 1e-5, 10.0
rows = []
for count in np.unique(np.geomspace(1, 300, 20).astype(int)):
    release = pc.Release("gaussian", sensitivity=1.0, scale=SCALE, count=int(count))
    exact = pc.account([release], DELTA).epsilon
    single = pc.Release("gaussian", sensitivity=1.0, scale=SCALE)
    total = count * pc.account([single], DELTA / count).epsilon
    rows += [
        {"releases": count, "epsilon": exact, "bound": "exact composition"},
        {"releases": count, "epsilon": total, "bound": "sum of single epsilons"},
    ]
bounds = pl.DataFrame(rows)

chart = (
    alt.Chart(bounds)
    .mark_line(point=True)
    .encode(
        alt.X("releases").scale(type="log"), alt.Y("epsilon").scale(type="log"), alt.Color("bound")
    )
    .properties(width=420, height=260, title="Epsilon of Gaussian releases, noise 10, delta = 1e-5")
)
