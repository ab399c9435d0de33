"""
Catch a wrong algorithm
=======================

An audit executes an algorithm, and replays the outputs of its mechanisms on a data set that differs
in one record. All other values that an observer receives must then be equal. The second algorithm
also sends its gradients, without noise.
"""

import numpy as np

import private_consensus as pc

Correct = pc.algorithms.load("gradient_descent")


class Wrong(Correct):
    """Consensus gradient descent that sends its gradients without noise."""

    def step(self, state, problem, network, release, t):
        network.mix(problem.gradient(state.y))
        return super().step(state, problem, network, release, t)


means = np.random.default_rng(1).uniform(-0.2, 0.2, (1, 4, 3))  # shape (runs, agents, dim)
problem = pc.problems.class_of("mean_estimation")(means, records=50, box=1.0)
network = pc.networks.build(pc.Streams(0, (0,)), "ring", 4)
budget = pc.Budget(epsilon=3.0, delta=1e-5)

for algorithm in (Correct, Wrong):
    noisy = algorithm(calibration="gaussian_dp")
    result = pc.audit(noisy, problem, network, budget, horizon=3)
    print(f"{algorithm.__name__}: {result.verdict}")
    if result.reason:
        print(f"  {result.reason}")
