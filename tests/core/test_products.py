"""Small products of all agents in one call: exact sums, nothing else touched, each by itself."""

import numpy as np
import pytest

from private_consensus.fast import products

SIZES = {"all kinds": [3, 0, 1, 9, 20], "nobody": [0, 0, 0, 0, 0]}
WIDTHS = (1, 10, 16, 33, 50)
INPUTS = 21
EPSILON = np.finfo(np.float32).eps


def drawn(sizes, width):
    rng = np.random.default_rng(width)
    count = int(np.sum(sizes))
    v, back = (rng.normal(size=(count, k)).astype(np.float32) for k in (INPUTS, width))
    models = rng.normal(size=(len(sizes), 5 + INPUTS * width + 7)).astype(np.float32)
    return v, back, models, models[:, 5:-7].reshape(len(sizes), INPUTS, width)


def parts(sizes):
    ends = np.cumsum(sizes)
    return [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("width", WIDTHS)
def test_products_of_each_agents_rows_are_exact_up_to_rounding(sizes, width):
    v, _, _, matrices = drawn(sizes, width)
    for given in (matrices, matrices.swapaxes(-1, -2).copy().swapaxes(-1, -2)):
        found = products.products(v, given, np.array(sizes))
        for part, matrix in zip(parts(sizes), matrices.astype(float), strict=True):
            bound = INPUTS * EPSILON * np.abs(v[part]) @ np.abs(matrix)
            assert (np.abs(found[part] - v[part] @ matrix) <= bound).all()


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("width", WIDTHS)
def test_outer_products_are_exact_up_to_rounding_and_change_nothing_else(sizes, width):
    v, back, models, out = drawn(sizes, width)
    before = models.copy()
    products.outer_products(v, back, np.array(sizes), out)
    for part, found in zip(parts(sizes), out, strict=True):
        one, other = v[part].astype(float), back[part].astype(float)
        bound = len(one) * EPSILON * np.abs(one.T) @ np.abs(other)
        assert (np.abs(found - one.T @ other) <= bound).all()
    for edge in (slice(0, 5), slice(-7, None)):
        np.testing.assert_array_equal(models[:, edge], before[:, edge])


@pytest.mark.parametrize("width", WIDTHS)
def test_an_agents_bytes_do_not_depend_on_who_else_is_there(width):
    sizes = np.array(SIZES["all kinds"])
    v, back, _, out = drawn(sizes, width)
    together = products.products(v, out, sizes)
    alone = [
        products.products(v[part], out[[i]], sizes[[i]]) for i, part in enumerate(parts(sizes))
    ]
    assert together.tobytes() == np.concatenate(alone).tobytes()
    products.outer_products(v, back, sizes, out)
    for i, part in enumerate(parts(sizes)):
        own = np.empty((1, INPUTS, width), np.float32)
        products.outer_products(v[part], back[part], sizes[[i]], own)
        assert own.tobytes() == out[i].tobytes()
