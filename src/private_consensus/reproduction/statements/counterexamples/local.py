"""Errata of Xiao et al.: local differential privacy (E1)."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit

from private_consensus.privacy.aggregation import (
    exact_average,
    log_mass,
    realised_loss,
    share_inside,
)

from ..local import QuadraticSetting, contraction
from .base import ErratumResult, erratum, finding


@erratum("E1.1")
def output_dependent() -> ErratumResult:
    """Test a loss bound that depends on the output; mechanisms without local DP satisfy it."""
    outputs = np.array([1.0, 10.0, 100.0, 1000.0])
    losses = np.abs(((outputs - 1) ** 2 - outputs**2) / 2)  # N(0, 1) against N(1, 1)
    description = (
        "Gaussian noise has a finite ratio at every output X, so that eps(X) exists. At X = 1, 10, "
        f"100, 1000, eps(X) is {', '.join(f'{v:g}' for v in losses)}: no bound holds for all X."
    )
    return finding(
        "largest loss", losses[0], math.inf, bool(np.all(np.diff(losses) > 0)), description
    )


@erratum("E1.2")
def all_coordinates() -> ErratumResult:
    """Compute the privacy loss of Laplace noise if all d coordinates change."""
    dim, level = 10, 0.1
    change = np.full(dim, level)  # a gradient that moves by B_inf in each coordinate
    output = -np.ones(dim)
    loss = float(np.sum(np.abs(output - change) - np.abs(output)))
    description = (
        f"d = {dim}, alpha beta B_inf = {level:g} in each coordinate. Log-ratio of the densities "
        f"at (-1, ..., -1): {loss:g} = d alpha beta B_inf. A constant that is added to the "
        "objective changes its values but no gradient. The 'local sensitivity' of values therefore "
        "does not bound that of the release."
    )
    return finding("epsilon of a release", level, loss, loss > 1.01 * level, description)


@erratum("E1.3")
def label_coding() -> ErratumResult:
    """Compute the largest change of a gradient for labels -1 and +1, which is 2/b."""
    weight = 20.0

    def gradient(x: list[float], y: int) -> np.ndarray:
        """Return the gradient of a record at w."""
        return -y * np.asarray(x) * expit(-y * np.dot(x, w))

    w = np.array([0.0, -weight, weight])
    positive, negative = gradient([1.0, 1.0, 0.0], 1), gradient([1.0, 0.0, 1.0], -1)
    change = float(np.abs(positive - negative).max())
    zero_label_gradient = gradient([1.0, 1.0, 0.0], 0)
    description = (
        "Records ((1,1,0), +1) and ((1,0,1), -1), features in [0, 1], model (0, -20, 20): the "
        f"first coordinate of the gradient changes by {change:.6f} / b. With labels {{0, 1}} the "
        "bound is 1/b, and the gradient of records with label 0 is zero."
    )
    holds = change > 1.99 and not zero_label_gradient.any()
    return finding("change of b times the gradient", 1.0, change, holds, description)


@erratum("E1.4")
def average_loss() -> ErratumResult:
    """Compare the mean privacy loss of a random aggregation with the largest one."""
    length, beta, change = 0.5, 6.0, 1e-4
    parameters = np.array(length), np.array(beta), np.array(change)
    mean_loss = float(exact_average(*parameters))
    largest_loss = float(realised_loss(np.array(2.0), *parameters)) / (beta * change)
    outside_probability = 1 - float(share_inside(*parameters[:2]))
    exceeding_fraction = _share_above_the_footnote(50, 0.5, 4.0, 0.1, delta=0.01)
    description = (
        f"One output, uniform on an interval of length {length:g}, plus Laplace noise with beta = "
        f"{beta:g}: the average loss is {mean_loss:.3f} of the loss with fixed weights. Outside "
        f"the interval (probability {outside_probability:.2f}), the loss is that of fixed weights. "
        "Footnote 1 composes losses that depend on the output: a fraction of "
        f"{exceeding_fraction:.2g} of 20,000 runs with 50 outputs exceeds its total, and delta = "
        "0.01 permits more. The argument needs a privacy filter; no counterexample was found."
    )
    holds = mean_loss < 0.9 and abs(largest_loss - 1) < 1e-9
    return finding(
        "loss over alpha beta B", mean_loss, largest_loss, holds, description, partly=True
    )


def _share_above_the_footnote(count, length, beta, change, delta, runs=20_000) -> float:
    """Return the fraction of runs whose loss exceeds the total of footnote 1."""
    rng = np.random.default_rng(9)
    x = rng.uniform(0, length, (runs, count)) + rng.laplace(size=(runs, count)) / beta
    losses = realised_loss(x, length, beta, change)
    shifted_mass = log_mass(np.abs(x - length / 2 + change), np.array(length), beta)
    realised = (log_mass(np.abs(x - length / 2), np.array(length), beta) - shifted_mass).sum(1)
    footnote_total = (np.expm1(losses) * losses / (np.exp(losses) + 1)).sum(1)
    footnote_total += np.sqrt(-2 * (losses**2).sum(1) * math.log(delta))
    return float((realised > footnote_total).mean())


@erratum("E1.7")
def one_symbol() -> ErratumResult:
    """Test the contraction of Theorem 3.1 if rho_max is the largest deviation in both places."""
    equal_penalties = QuadraticSetting(m=0.1, rho=2.0, spread=0.0, D=0.01, zeta=1.0, alpha=1000.0)
    distances = contraction("distance after an iteration", equal_penalties, False)
    description = (
        "Three agents with sum x_i = c and equal penalties, so that the largest deviation from "
        f"rho_0 is 0 and any D_i > N / alpha satisfies (43). With D_i = {equal_penalties.D:g} an "
        f"iteration multiplies the squared distance by up to {1 / distances.margin:.2g}: ADMM "
        "diverges."
    )
    numbers = distances.quantity, distances.stated, distances.measured
    return finding(*numbers, not distances.holds, description)


@erratum("E1.9")
def exponent_of_the_bound() -> ErratumResult:
    """Compare (27), whose exponent has omega in place of beta, with the average loss."""
    length, beta, change = 0.5, 6.0, 0.01
    x = np.linspace(0, (length - change) / 2, 2001)[:, None]
    y = np.linspace(0, length, 2001)
    inside_mass, shifted_mass = (
        np.trapezoid(
            np.trapezoid(beta / (2 * length) * np.exp(-beta * np.abs(x - y - shift)), y, axis=1),
            x[:, 0],
        )
        for shift in (0.0, -change)
    )
    published = math.log(math.exp(length * change) * (1 - 2 * inside_mass) + 2 * shifted_mass) / (
        beta * change
    )
    average = float(exact_average(np.array(length), np.array(beta), np.array(change)))
    description = (
        f"omega = {length:g}, beta = {beta:g}, alpha B = {change:g}: (27) gives {published:.3f}, "
        f"and the average loss is {average:.3f}. With e^(alpha beta B), as in (11), the bound is "
        "close to the average loss."
    )
    return finding(
        "average loss over alpha beta B", published, average, average > published, description
    )
