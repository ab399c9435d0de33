"""
Privacy loss to single observers
================================

A single agent receives the messages of its neighbours only. The figure shows the exact privacy loss
of agent 0 to each other agent on a ring of 12 for fixed inputs, with fresh noise in each round and
with noise that is added once before gossip. The privacy loss to the eavesdropper is epsilon 2.
"""

import altair as alt
import numpy as np
import polars as pl

import private_consensus as pc
from private_consensus.privacy import gaussian_epsilon, gaussian_mu

DELTA, ROUNDS, AGENTS = 1e-5, 8, 12
network = pc.networks.build(pc.Streams(0, (0,)), "ring", AGENTS, weights="metropolis")
mu = gaussian_mu(2.0, DELTA)
change = pc.observers.Free(1.0)
systems = {
    "fresh noise per round": pc.observers.noised_descent(
        network.mixing, ROUNDS, noise=np.sqrt(ROUNDS) / mu
    ),
    "noise once, then gossip": pc.observers.gossip(network.mixing, ROUNDS, noise=1 / mu),
}
rows = []
for name, system in systems.items():
    for agent in range(1, AGENTS // 2 + 1):
        loss = pc.observers.mu(system, pc.observers.agent(agent), 0, change)
        epsilon = gaussian_epsilon(loss.upper, DELTA)
        rows.append({"noise": name, "distance": agent, "epsilon": epsilon})
losses = pl.DataFrame(rows)

chart = (
    alt.Chart(losses)
    .mark_line(point=True)
    .encode(
        alt.X("distance:O").title("edges between observer and agent 0"),
        alt.Y("epsilon"),
        alt.Color("noise"),
    )
    .properties(width=420, height=260, title="Loss to single agents on a ring of 12")
)
