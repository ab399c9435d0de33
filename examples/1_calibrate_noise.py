r"""
Calibrate noise for many releases
=================================

This example computes the Gaussian noise for which fifty releases together are
:math:`(1, 10^{-5})`-differentially private. It also computes epsilon for the noise of a classical
formula.
"""

# %%
# A release has a mechanism, a sensitivity, a scale of the noise and a count. The accountant
# computes epsilon of a list of releases; :func:`~private_consensus.calibrate` is its inverse.

import altair as alt
import numpy as np
import polars as pl

import private_consensus as pc

BUDGET = pc.Budget(epsilon=1.0, delta=1e-5)
RELEASES = 50


def releases(scale, count=RELEASES):
    return [pc.Release("gaussian", sensitivity=1.0, scale=scale, count=count)]


scale = pc.calibrate(releases, BUDGET)
print(f"standard deviation for epsilon 1: {scale:.3f}")

# %%
# The accountant confirms the budget. The guarantee states the method and whether it is proven.

guarantee = pc.account(releases(scale), BUDGET.delta)
print(guarantee)

# %%
# A classical formula, :math:`\sigma = \sqrt{2\ln(1.25/\delta)}\,\Delta/\varepsilon` with the budget
# split evenly over the releases, requires more noise. The next lines compute its epsilon:

single = BUDGET.epsilon / RELEASES
classical = np.sqrt(2 * np.log(1.25 * RELEASES / BUDGET.delta)) / single
print(f"classical: {classical:.1f}")
print(f"it delivers epsilon = {pc.account(releases(classical), BUDGET.delta).epsilon:.3f}")

# %%
# For fixed noise, epsilon grows like the square root of the number of releases at first:

counts = np.unique(np.geomspace(1, 1000, 25).astype(int))
epsilons = [pc.account(releases(scale, int(count)), BUDGET.delta).epsilon for count in counts]
losses = pl.DataFrame({"releases": counts, "epsilon": epsilons})

chart = (
    alt.Chart(losses)
    .mark_line(point=True)
    .encode(
        alt.X("releases").scale(type="log"),
        alt.Y("epsilon").scale(type="log"),
    )
    .properties(width=420, height=260, title=f"Noise of standard deviation {scale:.1f}")
)
