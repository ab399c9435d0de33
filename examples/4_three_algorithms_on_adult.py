r"""
Three algorithms on Adult
=========================

Ten agents hold 500 records each. Together they fit a logistic regression that predicts whether the
income of a person exceeds 50,000 dollars. Three algorithms run with the same budget.
"""

# %%
# The data come from the cache, a mirror or the publisher. If none has them, surrogate data replace
# them. ``origin`` states the source.

import altair as alt
import polars as pl

import private_consensus as pc
from private_consensus.reproduction.data import prepare
from private_consensus.reproduction.data.acquisition import Acquisition, acquire

raw, origin = acquire("adult", Acquisition(source="auto"))
adult = prepare("adult-onehot41", raw, origin)
rows, columns = adult.features.shape
print(f"{rows} rows, {columns} columns, from: {origin.source}")

# %%
# Problem and network are built from named streams of random numbers, one per run.


def problem(streams):
    build = pc.problems.load("logistic_regression").build
    return build(streams, 10, prepared=adult, records=500, ridge=0.01, weight="mean")


def network(streams):
    return pc.networks.build(streams, "erdos_renyi", 10, probability=0.5)


# %%
# Each algorithm calibrates its noise to the budget. One accountant computes epsilon for all.

BUDGET = pc.Budget(epsilon=1.0, delta=1e-5)
LOSS = ["released.excess_loss"]
curves, guarantees = [], []
for name in ("dvp", "p_admm", "pp_admm"):
    algorithm = pc.algorithms.load(name)()
    simulation = pc.simulate(algorithm, problem, network, BUDGET, horizon=20, runs=5, measures=LOSS)
    curves.append(simulation.measurements.with_columns(algorithm=pl.lit(name)))
    guarantees.append(
        {
            "algorithm": name,
            "claimed": simulation.claimed.epsilon,
            "accountant": round(simulation.guarantee.epsilon, 3),
            "proven": simulation.guarantee.proven,
        }
    )
print(pl.DataFrame(guarantees))

# %%
# Compare the claimed epsilon with the accountant's before you compare errors: a method with less
# noise than claimed has an unfair advantage.

measured = pl.concat(curves)
means = measured.group_by("algorithm", "t").agg(pl.col("value").mean()).sort("t")
chart = (
    alt.Chart(means)
    .mark_line()
    .encode(
        alt.X("t").title("iteration"),
        alt.Y("value").title("excess loss").scale(type="log"),
        alt.Color("algorithm"),
    )
    .properties(width=420, height=260, title="Adult, 10 agents, claimed epsilon 1")
)
