"""Test secret sharing: exact sums, the view of colluding agents and reconstruction."""

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from private_consensus.common.errors import InvalidInput
from private_consensus.core.exchange import SecretSharing


@pytest.fixture
def rng():
    return np.random.default_rng(11)


@pytest.mark.parametrize("modulus", [101, 2**31 - 1, 2**61 - 1, 2**62])
@pytest.mark.parametrize("agents", [3, 7])
def test_the_sum_is_reconstructed_exactly(rng, modulus, agents):
    """Compare with sums of Python integers, which cannot overflow."""
    sharing = SecretSharing(modulus, 1)
    values = rng.integers(0, modulus, size=(5, agents, 4))
    shares = sharing.split(values, rng)
    assert shares.shape == (5, agents, agents, 4)
    assert shares.min() >= 0 and shares.max() < modulus
    total = sharing.reconstruct(sharing.gather(shares))
    exact = np.array([[sum(map(int, values[b, :, k])) % modulus for k in range(4)]
                      for b in range(5)], dtype=object)  # fmt: skip
    assert (total == exact).all()


def test_encoding_preserves_negative_numbers_and_rounds_to_the_grid(rng):
    sharing = SecretSharing(2**61 - 1, 2**20)
    x = rng.normal(size=(6, 5, 3)) * 100
    assert np.array_equal(sharing.decode(sharing.encode(x)), np.rint(x * 2**20) / 2**20)
    total = sharing.sum(x, rng)
    assert np.array_equal(total, np.rint(x * 2**20).sum(-2) / 2**20)
    assert np.array_equal(total, sharing.outcome(x))
    assert np.abs(total - x.sum(-2)).max() <= 5 / 2**21
    assert (total < 0).any()


def test_the_published_modulus_condition_confuses_negative_and_positive_sums(rng):
    """The condition p > |sum| is too weak, since -7 and 4 are equal modulo 11.

    The condition 2|sum| < p suffices.
    """
    sharing = SecretSharing(11, 1)
    assert sharing.decode(np.array(-7 % 11)) == 4
    with pytest.raises(InvalidInput, match=r"exchange.modulus: found 11, expected above"):
        sharing.encode(np.array([[-7.0], [0.0], [0.0]]))


def view_of(colluders, shares, broadcast):
    """Return all values that the colluding agents sent, received or saw in broadcasts."""
    agents = shares.shape[-2]
    honest = [i for i in range(agents) if i not in colluders]
    view_columns = [shares[:, colluders, :].reshape(len(shares), -1)]
    view_columns += [shares[:, honest, :][:, :, colluders].reshape(len(shares), -1)]
    return np.concatenate([*view_columns, broadcast], axis=1)


def views(split, *, count, seed, modulus=3, broken=False):
    """Return the view of agent 0 in ``count`` executions, each encoded as one integer."""
    rng = np.random.default_rng(seed)
    sharing = SecretSharing(modulus, 1)
    values = np.tile(np.array([1, *split])[None, :, None], (count, 1, 1))
    shares = sharing.split(values, rng)
    if broken:  # agents 1 and 2 send their values to agent 0 without masking
        shares[:, 1:] = 0
        shares[:, [1, 2], 0] = values[:, 1:]
    broadcast = sharing.gather(shares)[..., 0]
    view = view_of([0], shares[..., 0], broadcast)
    return view @ modulus ** np.arange(view.shape[1])


def p_value(first_views, second_views):
    labels = np.unique(np.concatenate([first_views, second_views]))
    table = [
        [(sample == label).sum() for label in labels] for sample in (first_views, second_views)
    ]
    return chi2_contingency(table).pvalue


def test_the_view_of_a_colluding_agent_depends_only_on_the_sum_of_the_others():
    """A chi-square test of the views modulo 3 accepts equality, and rejects it with a fault."""
    first_views, second_views = (
        views((0, 2), count=200_000, seed=1),
        views((1, 1), count=200_000, seed=2),
    )
    assert p_value(first_views, second_views) > 0.001
    leaks = [views(s, count=2000, seed=3, broken=True) for s in ((0, 2), (1, 1))]
    assert p_value(*leaks) < 1e-6
    views_of_another_sum = views((1, 2), count=200_000, seed=4)
    assert p_value(first_views, views_of_another_sum) < 1e-6  # views reveal the sum
