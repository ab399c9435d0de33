"""Audit of an example, or of a copy of its algorithm."""

import warnings

from private_consensus import audit
from private_consensus.common.errors import OutsideRange

RUNS, BATCH_RUNS = 400, 100
"""Runs of an audit, and of an algorithm with sampled batches, whose runs take longest."""
CONFIDENCE = 0.99


def audited(example, delta, algorithm=None):
    """Return the result of an audit in the setting of an example."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutsideRange)
        return audit(
            algorithm or example.algorithm, example.problem, example.network, example.budget,
            example.horizon, runs=BATCH_RUNS if "dsgd" in example.name else RUNS,
            confidence=CONFIDENCE, delta=delta, processes=1,
        )  # fmt: skip
