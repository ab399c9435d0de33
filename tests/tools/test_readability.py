"""Test the measures of readability."""

import pytest
from tests.tools.readability import defects, is_weak

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
    lines = {"weak summaries": [2], "empty names": [4, 19, 19], "functions without Parameters": [2]}
    for files in (["a.py"], ["a.py", "b.py"]):
        locations = defects(dict.fromkeys(files, MODULE))
        assert {name: sorted(found) for name, found in locations.items()} == {
            name: sorted(f"{file}:{line}" for file in files for line in numbers)
            for name, numbers in lines.items()
        }


BASE = '''
class Base:
    def step(self, state, t):
        """Return the next state.

        Parameters
        ----------
        state, t
            State and iteration.
        """
'''
DERIVED = """
from base import Base

class Middle(Base): ...

class Derived(Middle):
    def step(self, state, t): ...
    def start(self, problem, network): ...

class Other:
    def step(self, state, t): ...
"""


def test_an_override_of_a_described_method_needs_no_parameters():
    locations = defects({"base.py": BASE, "derived.py": DERIVED})
    assert locations["functions without Parameters"] == ["derived.py:8", "derived.py:11"]
