"""
Choose the number of rounds
===========================

More rounds improve consensus, but each message then needs more noise. The figure shows the error
of the agents' mean (normalised_error) and the disagreement of the agents (consensus_error) at
epsilon 1 against the number of rounds, as means over 20 runs of consensus gradient descent.
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
for horizon in (1, 2, 5, 10, 20, 50, 100):
    simulation = pc.simulate(
        algorithm, problem, network, pc.Budget(1.0, 1e-5), horizon, runs=20, iterations=[horizon],
        measures=[("released", "normalised_error"), ("released", "consensus_error")],
    )  # fmt: skip
    rows.append(simulation.measurements.filter(t=horizon))
errors = pl.concat(rows).group_by("t", "metric").agg(pl.col("value").mean()).sort("t")

chart = (
    alt.Chart(errors)
    .mark_line(point=True)
    .encode(
        alt.X("t").title("rounds").scale(type="log"),
        alt.Y("value").title("error").scale(type="log"),
        alt.Color("metric"),
    )
    .properties(width=420, height=260, title="Error at epsilon = 1, delta = 1e-5")
)
