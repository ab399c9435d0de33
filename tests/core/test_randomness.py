"""Test random streams: names, pairing, and independence of the number of draws."""

import numpy as np
import pytest
from scipy.stats import kstest

from private_consensus.core.randomness import Streams, generator


def test_adding_runs_does_not_change_the_draws_of_earlier_runs(streams):
    fewer = Streams(streams.root, streams.runs[:5], streams.groups)
    assert np.array_equal(
        streams.draw("noise", "normal", (3, 2))[:5], fewer.draw("noise", "normal", (3, 2))
    )


def test_a_sequence_yields_the_draws_of_a_single_large_array(streams):
    sequence = streams.sequence("noise", "laplace", (3, 2))
    drawn = np.stack([next(sequence) for _ in range(700)])
    expected = np.stack([g.laplace(size=(700, 3, 2)) for g in streams.generators("noise")], axis=1)
    assert np.array_equal(drawn, expected)


@pytest.mark.parametrize("changed", [{"root": 8}, {"groups": {"noise": "other"}}, {"runs": (90,)}])
def test_draws_change_with_root_seed_group_and_run_number(streams, changed):
    arguments = {"root": streams.root, "runs": streams.runs[:1], "groups": streams.groups}
    first = Streams(**arguments).draw("noise", "normal", (8,))
    assert not np.array_equal(
        first, Streams(**{**arguments, **changed}).draw("noise", "normal", (8,))
    )


def test_streams_of_different_purposes_and_names_are_uncorrelated(streams):
    drawn = [
        streams.draw("noise", "normal", (4000,)),
        streams.draw("sampling", "normal", (4000,)),
        streams.draw("noise", "normal", (4000,), name="second"),
    ]
    flat = np.stack([d.ravel() for d in drawn])
    off_diagonal = np.corrcoef(flat)[np.triu_indices(3, 1)]
    assert np.abs(off_diagonal).max() < 5 / np.sqrt(flat.shape[1])


@pytest.mark.parametrize("law", ["norm", "laplace", "uniform"])
def test_unit_draws_follow_the_stated_distribution(streams, law):
    name = {"norm": "normal"}.get(law, law)
    drawn = streams.draw("noise", name, (500,)).ravel()
    assert kstest(drawn, law).pvalue > 0.01
    assert kstest(1.5 * drawn, law).pvalue < 1e-3


def test_a_named_generator_equals_numpy_with_the_documented_seed_key():
    import hashlib

    digest = hashlib.sha256(b"noise\0group\x003").digest()[:16]
    key = tuple(int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4))
    expected = np.random.default_rng(np.random.SeedSequence(5, spawn_key=key)).random(4)
    assert np.array_equal(generator(5, "noise", "group", 3).random(4), expected)
