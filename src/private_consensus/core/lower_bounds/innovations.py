"""Attacks on consensus + innovations (Wang et al.)."""

from dataclasses import replace

import numpy as np

from private_consensus.privacy.mechanisms import dominating


def _measurements(algorithm, problem, network, horizon, releases):
    """Return the loss of one measurement, which changes one message by the stated sensitivity."""
    (release,) = releases
    if not algorithm.noise:
        return releases
    if algorithm.unit == "measurement":
        return [replace(release, reached=1.0)]
    mechanism = algorithm.mechanisms(problem, network, horizon)["message"]
    losses = np.array([np.ravel(mechanism.loss(t)) for t in range(1, horizon + 1)])
    largest = release.losses()
    agent_losses = dominating(losses)[1]
    reached = np.divide(agent_losses, largest, out=np.ones(horizon), where=largest > 0)
    return [replace(release, reached=np.minimum(reached, 1.0))]
