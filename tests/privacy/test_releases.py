"""Test that releases give one loss per iteration and that errors name invalid arguments."""

import re

import numpy as np
import pytest

from private_consensus.common.errors import InvalidInput
from private_consensus.privacy import Release, account

NUMBER = r"([\w.+-]+)"


def test_losses_are_sensitivity_over_scale_for_each_iteration():
    scales = np.array([1.0, 2.0, 4.0])
    np.testing.assert_allclose(Release("gaussian", 2.0, scales).losses(), [2.0, 1.0, 0.5])
    np.testing.assert_allclose(Release("laplace", scales, scales).losses(), [1.0, 1.0, 1.0])
    np.testing.assert_allclose(Release("pure", epsilon=[0.1, 0.2]).losses(), [0.1, 0.2])


def test_losses_are_infinite_without_noise_and_zero_without_sensitivity():
    assert Release("gaussian", [0.0, 1.0], 0.0).losses().tolist() == [0.0, np.inf]
    assert Release("laplace", np.inf, 1.0).losses().tolist() == [np.inf]
    assert Release("gaussian", 1.0, np.inf).losses().tolist() == [0.0]
    assert Release("exact").losses().tolist() == [np.inf]
    assert Release("exact", 0).losses().tolist() == [0.0]


@pytest.mark.parametrize("scale", [0.5, [2.0, 1.0, 2.0], np.linspace(1.0, 4.0, 9)])
@pytest.mark.parametrize(("mechanism", "delta"), [("gaussian", 1e-6), ("laplace", 0.0)])
def test_the_text_of_a_release_has_all_numbers_of_the_accountant(mechanism, delta, scale):
    release = Release(mechanism, 0.3, scale, count=2)
    name, _, text = str(release).partition(": ")
    total = 0 if mechanism == "laplace" else 1
    if sums := re.search(
        f"sum of losses {NUMBER}, root of the sum of their squares {NUMBER}", text
    ):
        parsed = [Release(name, float(sums[1 + total]), 1.0)]
    else:
        parts = re.findall(f"{NUMBER} x sensitivity {NUMBER}, scale {NUMBER}", text)
        parsed = [Release(name, float(s), float(b), count=int(n)) for n, s, b in parts]
    expected = account([release], delta).epsilon
    assert account(parsed, delta).epsilon == pytest.approx(expected, rel=1e-8)


def test_each_mechanism_has_its_norm():
    assert Release("laplace", 1, 1).norm == "l1"
    for name in ("gaussian", "gamma_norm", "discrete_gaussian"):
        assert Release(name, 1, 1).norm == "l2"


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        ({"mechanism": "gauss"}, "mechanism"),
        ({"sensitivity": -1}, "sensitivity"),
        ({"sensitivity": None}, "sensitivity"),
        ({"scale": float("nan")}, "scale"),
        ({"scale": "wide"}, "scale"),
        ({"scale": np.ones((2, 2))}, "scale"),
        ({"sensitivity": np.ones(2), "scale": np.ones(3)}, "scale"),
        ({"count": -1}, "count"),
        ({"count": 1.5}, "count"),
        ({"mechanism": "pure"}, "epsilon"),
    ],
)
def test_errors_name_the_invalid_argument(arguments, key):
    parameters = {"mechanism": "gaussian", "sensitivity": 1.0, "scale": 1.0} | arguments
    with pytest.raises(InvalidInput, match=rf"release\.{key}"):
        Release(**parameters)


def test_releases_hold_read_only_copies_of_their_arrays():
    scales = np.ones(3)
    release = Release("gaussian", 1.0, scales)
    scales[0] = 100.0
    assert release.losses()[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        release.scale[0] = 100.0
