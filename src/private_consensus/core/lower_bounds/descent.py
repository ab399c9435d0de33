"""Attacks on gradient descent with noise on each message."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from . import Attack


def _projected_steps(algorithm, problem, network, horizon, releases):
    steps = [float(algorithm.step_size(problem, t)) for t in range(1, horizon + 1)]
    attained = problem.attained_step_share(np.array(steps))
    if not algorithm.noise:
        return releases
    if algorithm.stage_two == "repaired":
        return [replace(releases[0], attained=attained)]
    last = None if attained is None else float(attained[-1])
    return [releases[0], replace(releases[1], attained=last)]


ATTACKS = {
    "GradientDescent": Attack(
        "records in opposite corners change each projected step by the attained fraction",
        _projected_steps,
    ),
}
"""Attacks by class."""
