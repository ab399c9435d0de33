"""
Use your own records
====================

A table of seven clinics, two methods at epsilon 1, a plot, an audit and a model. The script writes
``clinics.csv``, ``errors.html`` and ``model.json`` to the working directory.
"""

import numpy as np
import polars as pl

import private_consensus as pc

# %%
# A synthetic table. Replace it with your own.

random = np.random.default_rng(0)
clinic = random.choice(list("ABCDEFG"), 7000, p=[0.3, 0.2, 0.15, 0.1, 0.1, 0.1, 0.05])
age, dose = random.uniform(18, 90, 7000), random.uniform(0, 10, 7000)
sex = random.choice(["f", "m"], 7000)
ill = (age / 20 - dose / 2 + random.logistic(size=7000) > 0.2).astype(int)
columns = {"clinic": clinic, "age": age, "dose": dose, "sex": sex, "ill": ill}
pl.DataFrame(columns).write_csv("clinics.csv")

# %%
# The bounds and categories are public.

ranges, categories = {"age": (18, 90), "dose": (0, 10)}, {"sex": ["f", "m"]}
options = {"bounds": ranges, "categories": categories, "clip": 1.0, "test": 0.2}
shares = pc.split("clinics.csv", label="ill", agent="clinic", **options)
problem = shares.logistic_regression(ridge=0.01)
network = pc.networks.build(pc.Streams(0, (0,)), "ring", shares.n_agents)
budget, measures = pc.Budget(epsilon=1.0, delta=1e-5), ["released.test_error"]
descent = pc.algorithms.load("muffliato_gd")(eta=1 / problem.smoothness)
admm = pc.algorithms.load("p_admm")()
first = pc.simulate(descent, problem, network, budget, 20, runs=1, measures=measures)
second = pc.simulate(admm, problem, network, budget, 20, runs=1, measures=measures)
(first.plot() + second.plot()).save("errors.html")
audit = first.audit()
print(first.guarantee.derivation, audit.verdict, sep="\n")
first.export("model.json", shares)
