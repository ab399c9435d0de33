"""Test the recovery of noise from messages of algorithms without a declared noise site."""

import numpy as np
import pytest

from private_consensus.audits.noise_recovery import explained

BARE, UNIT = np.array([[0.3, -2.0, 5.0]]), np.array([[0.7, -1.5, 0.1]])
SCALE = np.array([[0.2, 4.0, 1e-3]])


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_noise_of_any_scale_and_sign_is_recovered(sign):
    """A step may subtract its draw, which changes the sign of the noise in the message."""

    def sends(unit):
        return BARE + sign * SCALE * unit

    assert explained(sends, sends(UNIT), 0.0) == pytest.approx(sign * UNIT)


@pytest.mark.parametrize(
    "afterwards",
    [
        lambda y: np.clip(y, -1, 1),
        lambda y: np.round(y, 1),
        np.tanh,
        lambda y: y @ np.full((3, 3), 1 / 3),
        lambda y: y + np.roll(y, 1, axis=-1),
    ],
    ids=["cut", "rounded", "bent", "averaged", "mixed"],
)
def test_noise_of_post_processed_messages_is_not_recovered(afterwards):
    def sends(unit):
        return afterwards(BARE + SCALE * unit)

    assert explained(sends, sends(UNIT), 0.0) is None


def test_no_noise_is_recovered_from_a_noiseless_message():
    assert explained(lambda unit: BARE + 0.0 * unit, BARE, 0.0) is None


def test_a_message_that_repeats_the_one_before_does_not_determine_its_noise():
    """The drift is below rounding errors: messages are affine in probes of size 1 and 8."""
    before, drift = np.array([[1.0, 1.0, 1.0]]), 1e-7

    def sends(unit):
        moved = before + drift + unit
        return np.where(np.abs(moved - before) > 0.5, moved, before)

    near = np.array([[0.7, 0.2, -1.5]])
    assert explained(sends, sends(near), before) is None
    far = np.array([[0.7, 1.2, -1.5]])
    assert explained(sends, sends(far), before) == pytest.approx(far, abs=1e-6)
