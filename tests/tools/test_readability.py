"""Test the measures of readability."""

import pytest
from tests.tools.readability import is_weak, measure

MODULE = '''
def epsilon(scale, count):
    """What a noise costs."""
    found = scale * count
    return found


def delta(scale, count):
    """Return the probability of failure.

    Parameters
    ----------
    scale, count : float
        Noise and number of releases.
    """
    return scale * count


def _helper(one, other): ...
'''


@pytest.mark.parametrize("text", ["What a noise costs.", "Of each agent, its loss.", "Two words"])
def test_fragments_are_weak_summaries(text):
    assert is_weak(text)


@pytest.mark.parametrize("text", ["Return the loss of each agent.", "A cell of an experiment.", ""])
def test_sentences_and_noun_phrases_are_not_weak(text):
    assert not is_weak(text)


def test_each_defect_is_counted_once():
    counts = {"weak summaries": 1, "empty names": 3, "functions without Parameters": 1}
    assert measure([MODULE]) == counts
    assert measure([MODULE, MODULE]) == {name: 2 * count for name, count in counts.items()}
