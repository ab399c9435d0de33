r"""Statistics learned from transcripts: linear discriminants and classifiers.

A discriminant is Fisher's at several ridges: :math:`w=(\Sigma+rI)^{-1}(m-m')` with pooled
covariance and the two means. The smallest ridge finds directions in which noise cancels. The
largest stays close to the mean difference if runs are few. The classifiers are from
scikit-learn. Logistic regression uses features and their squares, as DP-Sniper does. Boosted trees
detect thresholds and interactions. Their score is a log-odds.

References
----------
Bichsel, Steffen, Bogunovic, Vechev, "DP-Sniper: black-box discovery of differential privacy
violations using classifiers", S&P 2021.
Lokna, Paradis, Dimitrov, Vechev, "Group and attack: auditing differential privacy", CCS 2023
(Delta-Siege).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from threadpoolctl import ThreadpoolController

Scorer = Callable[[np.ndarray], np.ndarray]

RIDGES = (1e-12, 1e-4, 1e-1, 1e2)
"""Ridges of the discriminants, relative to the mean variance of a standardized feature."""
MIN_DIFFERENCE = 1e-10
"""Differences of means below this number of standard deviations are treated as rounding errors.

The smallest ridge would magnify them. A true difference of this size separates the runs by at most
1e-4 standard deviations."""

_MAX_DISCRIMINANT_FEATURES = 1_000  # largest number of features of a discriminant
_MAX_CLASSIFIER_FEATURES = (
    48  # features of a classifier: those that differ most in mean or variance
)
_MAX_FITTED_RUNS = 1_500  # largest number of runs for fitting, per data set


def fit_distinguishers(
    features_one: np.ndarray, features_other: np.ndarray, seed: int
) -> dict[str, Scorer]:
    """Fit discriminants and classifiers that distinguish runs on D from runs on its neighbour D'.

    All features are [runs, features]. The results map them to scores, [runs].
    """
    features_one, features_other = (
        features_one[:_MAX_FITTED_RUNS],
        features_other[:_MAX_FITTED_RUNS],
    )
    standardize = _standardizer(features_one, features_other)
    features_one, features_other = standardize(features_one), standardize(features_other)
    scorers = _discriminants(features_one, features_other) | _classifiers(
        features_one, features_other, seed
    )
    return {name: _composed(standardize, scorer) for name, scorer in scorers.items()}


def _composed(first: Scorer, then: Scorer) -> Scorer:
    return lambda features: then(first(features))


def _standardizer(features_one: np.ndarray, features_other: np.ndarray) -> Scorer:
    """Return a function that centres and scales features, and selects those that vary or differ.

    Centre and scale are pooled over the two samples.
    """
    centre = (features_one.mean(axis=0) + features_other.mean(axis=0)) / 2
    deviation = np.sqrt((features_one.var(axis=0) + features_other.var(axis=0)) / 2)
    gap = np.abs(features_one.mean(axis=0) - features_other.mean(axis=0))
    separation = np.where(
        deviation > 0, gap / np.where(deviation > 0, deviation, 1.0), np.where(gap > 0, np.inf, 0)
    )
    columns = np.flatnonzero((deviation > 0) | (gap > 0))
    columns = columns[np.argsort(-separation[columns], kind="stable")][:_MAX_DISCRIMINANT_FEATURES]
    unit = np.where(deviation > 0, deviation, np.where(gap > 0, gap, 1.0))[columns]
    return lambda features: (features[:, columns] - centre[columns]) / unit


def _discriminants(features_one: np.ndarray, features_other: np.ndarray) -> dict[str, Scorer]:
    if not features_one.shape[1]:
        return {}
    gap = features_one.mean(axis=0) - features_other.mean(axis=0)
    within = np.concatenate(
        [features_one - features_one.mean(axis=0), features_other - features_other.mean(axis=0)]
    )
    _, singular, axes = np.linalg.svd(within / math.sqrt(len(within)), full_matrices=False)
    variance = float(np.sum(singular**2)) / features_one.shape[1] or 1.0
    inside = axes @ gap
    components = inside, gap - axes.T @ inside
    inside, outside = (
        np.where(np.abs(component) > MIN_DIFFERENCE, component, 0.0) for component in components
    )
    scorers = {}
    for relative in RIDGES:
        ridge = relative * variance
        weights = axes.T @ (inside / (singular**2 + ridge)) + outside / ridge
        weights /= np.linalg.norm(weights) or 1.0
        scorers[f"linear discriminant, ridge {relative:g}"] = _projection(weights)
    return scorers


def _projection(weights: np.ndarray) -> Scorer:
    return lambda features: features @ weights


def _classifiers(
    features_one: np.ndarray, features_other: np.ndarray, seed: int
) -> dict[str, Scorer]:
    # imported here: it takes a second, and most of the package does not need it
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    best = _most_different(features_one, features_other)
    if not best.size:
        return {}
    features = np.concatenate([features_one, features_other])[:, best]
    labels = np.repeat([1, 0], [len(features_one), len(features_other)])
    models = {
        "logistic regression": make_pipeline(
            FunctionTransformer(_with_squares), StandardScaler(), LogisticRegression(C=0.1)
        ),
        "boosted trees": HistGradientBoostingClassifier(
            max_iter=40, max_leaf_nodes=8, early_stopping=False, random_state=seed
        ),
    }
    # Threads that wait for each other on a busy machine take minutes.
    with _pools().limit(limits=1):
        fitted = {name: model.fit(features, labels) for name, model in models.items()}
    return {name: _log_odds(model, best) for name, model in fitted.items()}


@cache
def _pools() -> ThreadpoolController:
    """Return the thread pools of the libraries used by classifiers; finding them is slow."""
    return ThreadpoolController()


def _with_squares(features: np.ndarray) -> np.ndarray:
    return np.concatenate([features, np.minimum(features**2, 1e6)], axis=1)


def _log_odds(model, best: np.ndarray) -> Scorer:
    def score(features: np.ndarray) -> np.ndarray:
        with _pools().limit(limits=1):
            return model.decision_function(features[:, best])

    return score


def _most_different(features_one: np.ndarray, features_other: np.ndarray) -> np.ndarray:
    """Return the features whose mean or mean square differs most, in standard errors."""
    scores = np.zeros(features_one.shape[1])
    for power in (1, 2):
        a, b = features_one**power, features_other**power
        error = np.sqrt(a.var(axis=0) / len(a) + b.var(axis=0) / len(b)) + 1e-12
        scores = np.maximum(scores, np.abs(a.mean(axis=0) - b.mean(axis=0)) / error)
    return np.argsort(-scores, kind="stable")[:_MAX_CLASSIFIER_FEATURES]
