"""
Compare methods at one budget
=============================

Ten agents on a ring estimate a mean by three methods with the same budget. The figure shows the
error of the released values against the iteration, as a mean over 20 runs.
"""

import altair as alt
import numpy as np
import polars as pl

import private_consensus as pc

means = np.random.default_rng(1).uniform(-0.2, 0.2, (1, 10, 3))  # shape (runs, agents, dim)
problem = pc.problems.class_of("mean_estimation")(means, records=500, box=1.0)
network = pc.networks.build(pc.Streams(0, (0,)), "ring", 10, weights="metropolis")
methods = {
    "gradient descent": pc.algorithms.load("gradient_descent")(calibration="gaussian_dp"),
    "Muffliato": pc.algorithms.load("muffliato")(),
    "P-ADMM": pc.algorithms.load("p_admm")(law="gaussian", eta=150.0),
}
curves, guarantees = [], {}
for name, algorithm in methods.items():
    simulation = pc.simulate(algorithm, problem, network, pc.Budget(1.0, 1e-5), 20, runs=20)
    guarantees[name] = simulation.guarantee.epsilon
    curves.append(simulation.measurements.with_columns(method=pl.lit(name)))
print(guarantees)
errors = pl.concat(curves).group_by("method", "t").agg(pl.col("value").mean()).sort("t")

chart = (
    alt.Chart(errors)
    .mark_line()
    .encode(
        alt.X("t").title("iteration"),
        alt.Y("value").title("normalised squared error").scale(type="log"),
        alt.Color("method"),
    )
    .properties(width=420, height=260, title="Error at epsilon = 1, delta = 1e-5")
)
