r"""
Calibrate noise
===============

The figure shows the smallest Gaussian noise for which one, ten or a hundred releases with
sensitivity 1 are :math:`(\varepsilon, 10^{-5})`-differentially private.
"""

import altair as alt
import numpy as np
import polars as pl

import private_consensus as pc

rows = []
for count in (1, 10, 100):
    for epsilon in np.geomspace(0.1, 10, 15):

        def releases(scale, count=count):
            return [pc.Release("gaussian", sensitivity=1.0, scale=scale, count=count)]

        scale = pc.calibrate(releases, pc.Budget(epsilon, 1e-5))
        rows.append({"epsilon": epsilon, "noise": scale, "releases": count})
noise = pl.DataFrame(rows)

chart = (
    alt.Chart(noise)
    .mark_line(point=True)
    .encode(
        alt.X("epsilon").scale(type="log"),
        alt.Y("noise").title("standard deviation").scale(type="log"),
        alt.Color("releases:O"),
    )
    .properties(width=420, height=260, title="Gaussian noise for a budget, delta = 1e-5")
)
