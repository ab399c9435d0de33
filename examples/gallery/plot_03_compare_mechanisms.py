"""
Compare Gaussian and Laplace noise
==================================

The figure shows the standard deviation of each noise for the same budget, against the number of
releases of a single number with sensitivity 1. Laplace noise is smaller for few releases, and
Gaussian noise for many.
"""

import altair as alt
import polars as pl

import private_consensus as pc

BUDGET = pc.Budget(epsilon=1.0, delta=1e-5)
STANDARD_DEVIATIONS = {"gaussian": 1.0, "laplace": 2**0.5}  # for scale 1
rows = []
for count in (1, 2, 4, 8, 16, 32, 64):
    for mechanism, deviation in STANDARD_DEVIATIONS.items():

        def releases(scale, mechanism=mechanism, count=count):
            return [pc.Release(mechanism, sensitivity=1.0, scale=scale, count=count)]

        scale = pc.calibrate(releases, BUDGET)
        rows.append({"releases": count, "deviation": deviation * scale, "mechanism": mechanism})
noise = pl.DataFrame(rows)

chart = (
    alt.Chart(noise)
    .mark_line(point=True)
    .encode(
        alt.X("releases").scale(type="log", base=2),
        alt.Y("deviation").title("standard deviation").scale(type="log"),
        alt.Color("mechanism"),
    )
    .properties(width=420, height=260, title="Noise for epsilon = 1, delta = 1e-5")
)
