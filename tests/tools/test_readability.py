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
