"""Test that compressed problems of audits equal the problems that hold all records."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from private_consensus.audits.examples import complete, huber_regression, logistic_regression
from private_consensus.audits.few_records import FewRecords
from private_consensus.audits.few_responses import FewResponses
from private_consensus.audits.neighbours import attacks
from private_consensus.core.problems.lasso import Lasso
from private_consensus.core.problems.logistic_regression import LogisticRegression

RUNS = 3
RNG = np.random.default_rng(20_261_124)
CONSTANTS = (
    "n_agents", "records", "dim", "weight", "smoothness", "strong_convexity", "least_convexity",
    "record_gradient_change", "record_curvature", "lipschitz",
)  # fmt: skip


def _settings() -> Iterator[tuple[str, Any]]:
    """Yield problems of audited settings: labels of both codings, boxes, both losses."""
    signed = logistic_regression()
    yield "labels", signed
    positive = np.abs(signed.features)
    coded = (signed.labels > 0).astype(float)
    yield "labels 0 and 1", replace(
        signed, features=positive, labels=coded, test_features=np.abs(signed.test_features),
        test_labels=(signed.test_labels > 0).astype(float), coding="zero_one",
    )  # fmt: skip
    yield "box", replace(signed, box=0.5)
    single_agent = {"features": signed.features[:1], "labels": signed.labels[:1]}
    yield "one agent", replace(signed, **single_agent)
    huber = huber_regression()
    yield "huber", huber
    yield "squared", replace(huber, gradient_bound=np.inf)


def _pairs() -> Iterator[Any]:
    for name, problem in _settings():
        for nearby in (False, True):
            network = complete(problem.n_agents)
            for attack in attacks(problem, network, None, nearby=nearby):
                for index, compressed in enumerate(attack.pair):
                    if isinstance(compressed, FewRecords | FewResponses):
                        yield pytest.param(compressed, id=f"{name}-{attack.name}-{nearby}-{index}")


def whole(problem: Any) -> Any:
    """Return the problem with one row per record."""
    if isinstance(problem, FewResponses):
        missing = problem.records - problem.features.shape[2]
        rows = np.pad(problem.features, [(0, 0), (0, 0), (0, missing), (0, 0)])
        responses = np.pad(problem.responses, [(0, 0), (0, 0), (0, missing)])
        constants = problem.weight, problem.penalty, problem.gradient_bound, problem.row_bound
        return Lasso(rows, responses, *constants)
    counts = np.round(problem.counts).astype(int)
    rows = np.repeat(problem.features, counts, axis=1)
    labels = np.repeat(problem.labels, counts, axis=1)
    missing = problem.records - rows.shape[1]
    rows = np.pad(rows, [(0, 0), (0, missing), (0, 0)])
    labels = np.pad(labels, [(0, 0), (0, missing)], constant_values=1.0)
    tests = problem.test_features, problem.test_labels
    constants = problem.weight, problem.ridge, problem.box
    return LogisticRegression(rows, labels, *tests, *constants, coding=problem.coding)


def _points(problem) -> np.ndarray:
    return 3.0 * RNG.standard_normal((2, RUNS, problem.n_agents, problem.dim))


def _equal(actual, expected) -> None:
    np.testing.assert_allclose(actual, expected, rtol=1e-7, atol=1e-9)


COMPRESSED = list(_pairs())
CLASSIFICATION = [p for p in COMPRESSED if isinstance(p.values[0], FewRecords)]
# No algorithm computes minimisers of a problem in a box.
WITHOUT_BOX = [p for p in COMPRESSED if np.isinf(getattr(p.values[0], "box", np.inf))]


def test_all_kinds_of_compressed_problems_are_compared():
    kinds = {type(parameter.values[0]).__name__ for parameter in COMPRESSED}
    distinct = {
        parameter.values[0].features.shape[1]
        for parameter in COMPRESSED
        if isinstance(parameter.values[0], FewRecords)
    }
    assert kinds == {"FewRecords", "FewResponses"} and distinct == {1, 2}


@pytest.mark.parametrize("problem", COMPRESSED)
def test_constants_and_sensitivities_are_equal(problem):
    reference = whole(problem)
    for name in CONSTANTS:
        if hasattr(type(reference), name) or hasattr(reference, name):
            _equal(getattr(problem, name), getattr(reference, name))
    for norm in ("l1", "l2", "linf"):
        assert problem.record_change(norm) == reference.record_change(norm)
    for norm in ("l1", "l2"):
        assert problem.attained_gradient_share(norm) == reference.attained_gradient_share(norm)
        for curvature in (0.1, 2.0):
            compressed_value, reference_value = (
                p.minimiser_change(norm, curvature) for p in (problem, reference)
            )
            _equal(compressed_value, reference_value)
            compressed_value, reference_value = (
                p.attained_minimiser_share(norm, curvature) for p in (problem, reference)
            )
            assert compressed_value == reference_value


@pytest.mark.parametrize("problem", COMPRESSED)
def test_gradients_and_losses_are_equal(problem):
    reference, x = whole(problem).repeated(RUNS), _points(problem)
    problem = problem.repeated(RUNS)
    _equal(problem.gradient(x), reference.gradient(x))
    if isinstance(reference, Lasso):
        _equal(problem.smooth_gradient(x), reference.smooth_gradient(x))
        _equal(problem.gram, reference.gram)
        _equal(problem.pull, reference.pull)
        return
    _equal(problem.objective(x), reference.objective(x))
    _equal(problem.hessian(x), reference.hessian(x))
    _equal(problem.project(x), reference.project(x))
    requested = RNG.random(x.shape[:-1]) < 0.7
    _equal(problem.hessian_of(x, requested), reference.hessian_of(x, requested))
    for bound in (0.3, 1.0, 5.0):
        clipped = reference.clipped_loss(x, bound)
        _equal(problem.clipped_loss(x, bound), clipped)
        compressed_loss, reference_loss = (
            p.clipped_loss(x, bound, requested) for p in (problem, reference)
        )
        _equal(compressed_loss[requested], reference_loss[requested])
        assert problem.clipped_loss_change(bound) == reference.clipped_loss_change(bound)


@pytest.mark.parametrize("problem", WITHOUT_BOX)
@pytest.mark.parametrize("penalty", [0.05, 1.0, 20.0])
def test_minimisers_are_equal(problem, penalty):
    reference = whole(problem).repeated(RUNS)
    problem = problem.repeated(RUNS)
    linear, centre, start = (_points(problem) for _ in range(3))
    penalties = np.full((1, 1, problem.n_agents, 1), penalty)
    compressed_minimiser, reference_minimiser = (
        p.proximal(linear, penalties, centre, start) for p in (problem, reference)
    )
    np.testing.assert_allclose(compressed_minimiser, reference_minimiser, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("problem", COMPRESSED)
def test_gradients_of_subsets_of_records_are_equal(problem):
    reference = whole(problem)
    half = problem.records // 2
    for record_slice in (slice(0, half), slice(half, None), slice(1, 3), slice(0, 1)):
        compressed_part, reference_part = problem.part(record_slice), reference.part(record_slice)
        assert compressed_part.records == reference_part.records
        x = _points(problem)
        _equal(
            compressed_part.repeated(RUNS).gradient(x), reference_part.repeated(RUNS).gradient(x)
        )


@pytest.mark.parametrize("problem", CLASSIFICATION)
def test_error_counts_and_local_optima_are_equal(problem):
    """Errors and optima of the compressed problem equal those of the problem with all records."""
    reference, x = whole(problem).repeated(RUNS), _points(problem)
    problem = problem.repeated(RUNS)
    _equal(problem.local_error_counts(x), reference.local_error_counts(x))
    if np.isinf(problem.box):
        np.testing.assert_allclose(problem.own_optimum, reference.own_optimum, atol=1e-6)


@pytest.mark.parametrize("problem", CLASSIFICATION)
@pytest.mark.parametrize("clip", [0.2, np.inf])
def test_clipped_gradients_of_batches_are_equal(problem, clip):
    reference = whole(problem)
    rows = reference.rows_of(0)
    assert np.array_equal(problem.rows_of(0), rows)
    order = RNG.permuted(np.tile(np.arange(problem.records), (len(rows), 1)), axis=1)
    batch, sizes = np.take_along_axis(rows, order[:, :6], 1), RNG.integers(0, 7, len(rows))
    x = RNG.standard_normal((problem.n_agents, problem.dim))
    compressed_gradient, reference_gradient = (
        p.clipped_gradient(x, batch, sizes, clip) for p in (problem, reference)
    )
    _equal(compressed_gradient, reference_gradient)
