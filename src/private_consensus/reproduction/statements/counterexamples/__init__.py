"""A computation for each erratum, by its number; none takes more than a second or so."""

from __future__ import annotations

from collections.abc import Callable

from private_consensus.common.errors import require

from . import admm, average, descent, functional, local, sgd, statements, zeroth_order
from .base import OUTCOMES, ErratumResult

COMPUTATIONS: dict[str, Callable[[], ErratumResult]] = {
    "E0.1": descent.exact_last_message,
    "E0.2": descent.generous_theorem,
    "E0.3": descent.proposition_2,
    "E0.4": descent.released_average,
    "E0.5": descent.harmonic_sum,
    "E0.6": descent.two_roots,
    "E0.7": statements.remaining_error,
    "E0.8": statements.records_that_cancel,
    "E1.1": local.output_dependent,
    "E1.2": local.all_coordinates,
    "E1.3": local.label_coding,
    "E1.4": local.average_loss,
    "E1.5": statements.average_bound,
    "E1.6": statements.missing_exponential,
    "E1.7": statements.largest_penalty,
    "E1.8": local.dual_sign,
    "E1.9": local.exponent_of_the_bound,
    "E1.10": statements.missing_logarithm,
    "E2.1": zeroth_order.vanishing_noise,
    "E2.2": zeroth_order.upper_bound_as_variance,
    "E2.3": statements.biased_output,
    "E2.4": zeroth_order.private_step,
    "E2.5": zeroth_order.composition,
    "E2.6": zeroth_order.unbounded_gradient,
    "E2.7": zeroth_order.one_point_argument,
    "E2.8": statements.bound_of_the_norm,
    "E2.9": statements.variance_of_one_agent,
    "E3.1": average.two_units,
    "E3.2": average.geometric_sum,
    "E3.3": average.first_steps,
    "E3.4": average.own_exact_value,
    "E3.5": statements.slowest_mode,
    "E3.6": statements.sign_of_the_exponent,
    "E4.0": admm.shortcut,
    "E4.1": admm.dropped_records,
    "E4.2": admm.missing_term,
    "E4.3": admm.no_zcdp,
    "E4.4": admm.two_radii,
    "E4.5": admm.two_divisors,
    "E4.6": admm.unreleased_query,
    "E4.7": admm.coin,
    "E4.8a": sgd.random_batches,
    "E4.8b": sgd.reused_model,
    "E4.8c": sgd.discrete_gaussian,
    "E4.8d": statements.variance_on_a_grid,
    "E4.9a": functional.average_share,
    "E4.9b": functional.moving_mean,
    "E4.9c": functional.l2_share,
    "E4.9d": functional.extended_gaussian,
    "E4.10": admm.two_eigenvalues,
    "E4.11": statements.slow_graphs,
    "E4.12": statements.sampled_divergence,
    "E4.13": statements.printed_recursion,
}


def compute(erratum: str) -> ErratumResult:
    """The finding about one erratum."""
    require(erratum in COMPUTATIONS, "ID", erratum, f"one of {', '.join(COMPUTATIONS)}")
    return COMPUTATIONS[erratum]()


__all__ = ["COMPUTATIONS", "OUTCOMES", "ErratumResult", "compute"]
