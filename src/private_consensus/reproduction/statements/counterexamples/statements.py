"""Errata that are numbered statements: what the computation of the theorem finds of one part."""

from __future__ import annotations

from .. import compute
from .base import ErratumResult, finding


def _of(computation: str, part: int = 0) -> ErratumResult:
    """The suspicion is confirmed where the part does not hold."""
    result = compute(computation)
    tested = result.parts[part]
    return finding(
        tested.quantity, tested.stated, tested.measured, not tested.holds, result.description
    )


def average_bound() -> ErratumResult:
    """E1.5: (11) is no upper bound of the average loss."""
    return _of("local.theorem_2_3")


def missing_exponential() -> ErratumResult:
    """E1.6: (8) has epsilon for e^epsilon."""
    return _of("local.lemma_2_1")


def largest_penalty() -> ErratumResult:
    """E1.7: Theorem 3.1 defines rho_max as a deviation, its proof needs the penalty."""
    return _of("local.theorem_3_1", 1)


def bound_of_the_norm() -> ErratumResult:
    """E2.8: (47) bounds the negative square of a norm from the wrong side."""
    return _of("zeroth_order.lemma_2")


def biased_output() -> ErratumResult:
    """E2.3: with a valid Lipschitz constant the loop ends far from the minimiser."""
    return _of("zeroth_order.lemma_1")


def remaining_error() -> ErratumResult:
    """E0.7: what remains of Theorem 2's bound is 4 p / kappa, as its proof has it."""
    return _of("gradient_descent.theorem_2", 2)


def variance_of_one_agent() -> ErratumResult:
    """E2.9: (32) has the variance of one agent where its proof has the sum over all agents."""
    return _of("zeroth_order.theorem_3", 1)


def slowest_mode() -> ErratumResult:
    """E3.5: b_0 may not be as large as Theorem 4.11 lets it be."""
    return _of("consensus_innovation.theorem_4_11", 3)


def sign_of_the_exponent() -> ErratumResult:
    """E3.6: the exponent of (20) has the other sign."""
    return _of("consensus_innovation.theorem_4_16")


def variance_on_a_grid() -> ErratumResult:
    """E4.8d: Corollary 2 leaves out the factor eta^2."""
    return _of("concentrated.corollary_2", 1)


def slow_graphs() -> ErratumResult:
    """E4.11: U hat does not bound the deviations, and L_- stands for L_+."""
    return _of("admm.lemma_9")


def sampled_divergence() -> ErratumResult:
    """E4.12: Lemma 8 divides by the order, not by the order less 1."""
    return _of("concentrated.lemma_8")


def printed_recursion() -> ErratumResult:
    """E4.13: (41) has the same power of T twice."""
    return _of("sgd.lemma_18")


def records_that_cancel() -> ErratumResult:
    """E0.8: the bound of Theorem 2 grows with the number of records per agent."""
    return _of("descent_remarks.sentence_5", 1)


def missing_logarithm() -> ErratumResult:
    """E1.10: the noise of coordinate descent has no ln(1/delta)."""
    return _of("local_remarks.sentence_1", 2)
