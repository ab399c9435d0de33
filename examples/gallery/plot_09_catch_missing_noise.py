"""
Catch missing noise
===================

An audit executes an algorithm on two neighbouring data sets. The figure shows its lower bound on
epsilon if an algorithm adds only a fraction of the noise that it declares. The audit also recovers
the noise from the messages. It therefore contradicts the declaration even if the bound is below the
claim.
"""

import altair as alt
import numpy as np
import polars as pl

import private_consensus as pc

Correct = pc.algorithms.load("gradient_descent")


def with_fraction(fraction):
    """Return gradient descent that adds a fraction of its calibrated noise."""

    class Reduced(Correct):
        def step(self, state, problem, network, draw, t):
            return super().step(state, problem, network, fraction * draw, t)

    return Reduced(calibration="gaussian_dp")


means = np.random.default_rng(1).uniform(-0.2, 0.2, (1, 3, 2))  # shape (runs, agents, dim)
problem = pc.problems.class_of("mean_estimation")(means, records=50, box=1.0)
network = pc.networks.build(pc.Streams(0, (0,)), "ring", 3)
budget = pc.Budget(epsilon=2.0, delta=1e-5)

rows = []
for fraction in (1.0, 0.5, 0.25):
    result = pc.audit(
        with_fraction(fraction), problem, network, budget, 2, runs=200, confidence=0.99, delta=1e-5
    )
    rows.append({"fraction": fraction, "bound": result.lower, "verdict": result.verdict})
audits = pl.DataFrame(rows)
print(audits)

bars = alt.Chart(audits).mark_bar()
claim = alt.Chart(pl.DataFrame({"claimed": [budget.epsilon]})).mark_rule(strokeDash=[4, 4])
chart = (
    bars.encode(
        alt.X("fraction:O").title("fraction of the declared noise"),
        alt.Y("bound").title("lower bound on epsilon"),
        alt.Color("verdict"),
    )
    + claim.encode(alt.Y("claimed"))
).properties(width=420, height=260, title="Audit of a claimed epsilon of 2 (dashed)")
