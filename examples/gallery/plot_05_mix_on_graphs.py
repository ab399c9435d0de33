"""
Mix on graphs
=============

The figure shows how fast repeated averaging with Metropolis weights reaches consensus among 16
agents on different graphs.
"""

import altair as alt
import numpy as np
import polars as pl

import private_consensus as pc

streams = pc.Streams(0, (0,))
graphs = {
    "ring": pc.networks.build(streams, "ring", 16, weights="metropolis"),
    "4 x 4 grid": pc.networks.build(streams, "grid", 16, rows=4, weights="metropolis"),
    "random, degree 4": pc.networks.build(
        streams, "random_regular", 16, degree=4, weights="metropolis"
    ),
}
start = np.random.default_rng(1).standard_normal((1, 16, 1))
rows = []
for name, network in graphs.items():
    x = start
    for t in range(31):
        error = float(((x - start.mean()) ** 2).mean())
        rows.append({"graph": name, "round": t, "error": error})
        x = network.mix(x)
consensus = pl.DataFrame(rows)

chart = (
    alt.Chart(consensus)
    .mark_line()
    .encode(
        alt.X("round"),
        alt.Y("error").title("mean squared distance from the average").scale(type="log"),
        alt.Color("graph"),
    )
    .properties(width=420, height=260, title="Consensus of 16 agents")
)
