"""Audit a correct algorithm, and a wrong one that adds half of the noise that it declares."""

import numpy as np

import private_consensus as pc

Correct = pc.algorithms.load("gradient_descent")


class Wrong(Correct):
    """Consensus gradient descent that adds half of its calibrated noise."""

    def step(self, state, problem, network, draw, t):
        return super().step(state, problem, network, draw / 2, t)


means = np.random.default_rng(1).uniform(-0.2, 0.2, (1, 4, 3))  # shape (runs, agents, dim)
problem = pc.problems.class_of("mean_estimation")(means, records=50, box=1.0)
network = pc.networks.build(pc.Streams(0, (0,)), "ring", 4)
budget = pc.Budget(epsilon=3.0, delta=1e-5)

for algorithm in (Correct, Wrong):
    result = pc.audit(
        algorithm(calibration="gaussian_dp"), problem, network, budget, horizon=3,
        runs=300, confidence=0.999, delta=1e-5,
    )  # fmt: skip
    print(f"{algorithm.__name__}: {result.verdict}")
    for finding in result.findings[:2]:
        print(f"  {finding.text}")
