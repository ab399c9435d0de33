"""Test the measures of readability."""

from tests.tools.readability import defects

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


def test_each_defect_is_counted_once():
    lines = {"weak summaries": [2], "empty names": [4, 19, 19], "functions without Parameters": [2]}
    lines |= {"overrides with Parameters": [], "repeated docstring lines": []}
    for files in (["a.py"], ["a.py", "b.py"]):
        locations = defects(dict.fromkeys(files, MODULE))
        assert {name: sorted(found) for name, found in locations.items()} == {
            name: sorted(f"{file}:{line}" for file in files for line in numbers)
            for name, numbers in lines.items()
        }


BASE = '''
class Base:
    def step(self, state, count):
        """Return the next state.

        Parameters
        ----------
        state, count
            State and number of iterations.
        """
'''
DERIVED = '''
from base import Base

class Middle(Base): ...

class Derived(Middle):
    def step(self, state, count): ...
    def start(self, problem, seed): ...
    def send(self, problem, network): ...
    def receive(self, first: int, last: int): ...

class Described(Middle):
    def step(self, state, count):
        """Return the next state.

        Parameters
        ----------
        state, count
        """

class Other:
    def step(self, state, count): ...
'''


def test_an_override_needs_and_has_no_description_of_parameters():
    locations = defects({"base.py": BASE, "derived.py": DERIVED})
    assert locations["functions without Parameters"] == ["derived.py:8", "derived.py:22"]
    assert locations["overrides with Parameters"] == ["derived.py:13"]


def test_docstring_lines_that_five_functions_contain_are_repeated():
    texts = {f"{i}.py": f"def f{i}():\n    '''Return the loss.'''" for i in range(5)}
    assert len(defects(texts)["repeated docstring lines"]) == 5
    assert defects(dict(list(texts.items())[:4]))["repeated docstring lines"] == []
