"""Sample surrogates of tables from published aggregates.

A surrogate has the schema, the size and the one-way marginals of the real table. One latent factor
correlates its columns. The label follows a logistic model of the label rates in the aggregates,
with a few products of columns. The scale of its log-odds is such that a linear classifier has about
the same accuracy as on the real table. Nothing else of the real table is used, so that columns of
one row can contradict each other.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from scipy.optimize import brentq
from scipy.special import expit, logit

MAX_LOG_ODDS = 4.0
"""Largest log-odds that one value may contribute."""


def draw(aggregates: Mapping[str, Any], rows: int, generator: np.random.Generator) -> pl.DataFrame:
    """Sample a table of a given size.

    Parameters
    ----------
    aggregates : mapping
        Number of ``rows``, label rate ``positive``, and ``columns``. A category has its fraction
        and label rate. A numeric column has ``quantiles`` that divide its nonzero values into bins
        of equal counts, the label ``rates`` of the bins and, if ``zeros`` are frequent, their
        fraction and label rate. The ``model`` has ``label`` (its name, and its two values or their
        quantiles), ``loading`` (correlation of columns with the latent factor), ``sharpness``
        (scale of the log-odds) and ``products`` (pairs of columns with a weight).

    Returns
    -------
    polars.DataFrame
        Columns of the aggregates, and the label under the name that the model states.
    """
    model, rate = aggregates["model"], aggregates["positive"]
    factor = generator.standard_normal(rows)
    columns = {
        name: _draw_column(about, factor, model["loading"], generator)
        for name, about in aggregates["columns"].items()
    }
    scores = {
        name: _score(columns[name], about, rate) for name, about in aggregates["columns"].items()
    }
    total = sum(scores.values())
    for first, second, weight in model.get("products", ()):
        total = total + weight * scores[first] * scores[second]
    odds = model["sharpness"] * total
    shift = brentq(lambda shift: expit(odds + shift).mean() - rate, -60.0, 60.0)
    positive = generator.random(rows) < expit(odds + shift)
    name, *label_values = model["label"]
    low, high = (_values(entry, rows, generator) for entry in label_values)
    columns[name] = np.where(positive, high, low)
    return pl.DataFrame({n: v.tolist() for n, v in columns.items()})


def _values(value_or_quantiles: Any, rows: int, generator: np.random.Generator) -> Any:
    """Return the value of all rows, or integers sampled from a distribution given by quantiles."""
    if not isinstance(value_or_quantiles, list):
        return value_or_quantiles
    positions = np.linspace(0, 1, len(value_or_quantiles))
    sampled = np.interp(generator.random(rows), positions, value_or_quantiles)
    return np.rint(sampled).astype(np.int64)


def _draw_column(
    about: Mapping[str, Any], factor: np.ndarray, loading: float, generator: np.random.Generator
) -> np.ndarray:
    noise = generator.standard_normal(len(factor))
    latent = loading * factor + np.sqrt(1 - loading**2) * noise
    order = np.argsort(latent, kind="stable")
    if "quantiles" in about:
        return _draw_numbers(about, order, generator)
    values = sorted(about, key=lambda v: about[v][1])
    counts = _largest_remainders(np.array([about[v][0] for v in values]), len(factor))
    column = np.empty(len(factor), dtype=object)
    column[order] = np.repeat(np.array(values, dtype=object), counts)
    return column


def _largest_remainders(shares: np.ndarray, total: int) -> np.ndarray:
    """Round proportional counts to integers that sum to ``total``; ties go to the earlier count."""
    exact = shares / shares.sum() * total
    counts = np.floor(exact).astype(int)
    counts[np.argsort(counts - exact, kind="stable")[: total - counts.sum()]] += 1
    return counts


def _draw_numbers(
    about: Mapping[str, Any], order: np.ndarray, generator: np.random.Generator
) -> np.ndarray:
    quantiles = np.asarray(about["quantiles"])
    zeros = round(about.get("zeros", [0.0])[0] * len(order))
    nonzero = len(order) - zeros
    positions = (np.arange(nonzero) + generator.random(nonzero)) / max(nonzero, 1)
    values = np.interp(positions, np.linspace(0, 1, len(quantiles)), quantiles)
    if np.issubdtype(quantiles.dtype, np.integer):
        values = np.rint(values).astype(np.int64)
    values = np.sort(np.concatenate([np.zeros(zeros, values.dtype), values]))
    rates = np.asarray(about["rates"])
    if np.polyfit(np.arange(len(rates)), rates, 1)[0] < 0:
        values = values[::-1]
    column = np.empty_like(values)
    column[order] = values
    return column


def _score(values: np.ndarray, about: Mapping[str, Any], base: float) -> np.ndarray:
    """Return the log-odds of the label rate of each value, minus those of the overall rate."""
    if "quantiles" in about:
        bins = np.digitize(values, about["quantiles"]) - 1
        rates = np.asarray(about["rates"])[bins.clip(0, len(about["rates"]) - 1)]
        if "zeros" in about:
            rates = np.where(values == 0, about["zeros"][1], rates)
    else:
        names, codes = np.unique(values.astype(str), return_inverse=True)
        rates = np.array([about[n][1] for n in names])[codes]
    # A rate of 0 or 1 has infinite log-odds.
    return np.clip(logit(rates) - logit(base), -MAX_LOG_ODDS, MAX_LOG_ODDS)
