"""
Error against epsilon
=====================

Ten agents on a ring estimate a mean by consensus gradient descent. The figure shows the error
after 20 iterations against the budget, as a mean over 20 runs with its standard error.
"""

import altair as alt
import numpy as np
import polars as pl

import private_consensus as pc

means = np.random.default_rng(1).uniform(-0.2, 0.2, (1, 10, 3))  # shape (runs, agents, dim)
problem = pc.problems.class_of("mean_estimation")(means, records=500, box=1.0)
network = pc.networks.build(pc.Streams(0, (0,)), "ring", 10, weights="metropolis")
algorithm = pc.algorithms.load("gradient_descent")(calibration="gaussian_dp")

rows = []
for epsilon in (0.25, 0.5, 1.0, 2.0, 4.0, 8.0):
    simulation = pc.simulate(
        algorithm, problem, network, pc.Budget(epsilon, 1e-5), 20, runs=20, iterations=[20]
    )
    rows.append(simulation.measurements.with_columns(epsilon=pl.lit(epsilon)))
errors = pl.concat(rows)

points = alt.Chart(errors).encode(alt.X("epsilon").scale(type="log", base=2))
error = alt.Y("mean(value)").title("normalised squared error").scale(type="log")
band = alt.Y("value").title("normalised squared error")
chart = (
    points.mark_errorband(extent="stderr").encode(band) + points.mark_line(point=True).encode(error)
).properties(width=420, height=260, title="Mean of 10 agents with 500 records, delta = 1e-5")
