r"""
Calibrate a noise
=================

How much Gaussian noise do fifty releases need, so that all of them together are
:math:`(1, 10^{-5})`-differentially private? And what does a noise that somebody else chose cost?
"""

# %%
# A release is a mechanism, a sensitivity, a scale and a count. The accountant turns a list of
# releases into epsilon; :func:`~private_consensus.calibrate` is its inverse.

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
# The accountant confirms it, and says by which method and whether that is proven.

guarantee = pc.account(releases(scale), BUDGET.delta)
print(guarantee)

# %%
# A classical formula, :math:`\sigma = \sqrt{2\ln(1.25/\delta)}\,\Delta/\varepsilon` with the budget
# split evenly over the releases, asks for far more noise. What it delivers in truth:

each = BUDGET.epsilon / RELEASES
classical = pc.privacy.classical_gaussian_scale(pc.Budget(each, BUDGET.delta / RELEASES), 1.0)
print(f"classical: {classical:.1f}")
print(f"it delivers epsilon = {pc.account(releases(classical), BUDGET.delta).epsilon:.3f}")

# %%
# Epsilon of one fixed noise grows with the number of releases like a square root at first:

counts = np.unique(np.geomspace(1, 1000, 25).astype(int))
epsilons = [pc.account(releases(scale, int(count)), BUDGET.delta).epsilon for count in counts]
spent = pl.DataFrame({"releases": counts, "epsilon": epsilons})

chart = (
    alt.Chart(spent)
    .mark_line(point=True)
    .encode(
        alt.X("releases").scale(type="log"),
        alt.Y("epsilon").scale(type="log"),
    )
    .properties(width=420, height=260, title=f"Noise of standard deviation {scale:.1f}")
)
