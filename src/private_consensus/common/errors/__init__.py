"""Errors for users, whose messages name the invalid input in one sentence."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

MAX_VALUE, MAX_EXPECTED, MAX_LINE = 200, 300, 1500
"""Largest number of characters of a value, of an expectation and of a line in a message."""
ONE_OF = "one of "
"""Beginning of an expectation that lists all valid names."""
MAX_SUGGESTIONS = 3
EXPONENT = re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+")
"""Number in exponent notation."""


class InvalidInput(ValueError):
    """Error of an invalid setting, argument or file.

    Parameters
    ----------
    key : str
        Name of the setting, argument or file, such as ``budget.epsilon``.
    value : object
        Invalid value; None if it is missing. The message repeats at most :data:`MAX_VALUE`
        characters of it.
    expected : str
        Description of the valid values. The message shortens a list of many names, and suggests
        the most similar ones.
    """

    def __init__(self, key: str, value: Any, expected: str):
        super().__init__(key, value, expected)
        self.key, self.value, self.expected = key, value, expected

    def __str__(self) -> str:
        key, value, expected = self.key, self.value, str(self.expected)
        problem = "missing" if value is None else f"found {representation(value)}"
        name = shortened(one_line(str(key)), MAX_VALUE)
        message = f"{name}: {problem}, expected {_shortened_names(one_line(expected))}"
        hint = ""
        if isinstance(value, str) and expected.startswith(ONE_OF):
            hint = nearest(value, expected.removeprefix(ONE_OF).split(", "))
        elif isinstance(value, str) and EXPONENT.fullmatch(value):
            hint = "YAML reads 1e-5 as a text: write 1.0e-5"
        return f"{message}; {hint}" if hint else message


class Refused(InvalidInput):
    """Error with several lines, such as one line per invalid key of a configuration."""

    def __init__(self, lines: list[str]):
        Exception.__init__(self, lines)
        self.key, self.value, self.expected = "", None, ""
        self.lines = lines

    def __str__(self) -> str:
        return "\n".join(shortened(one_line(line), MAX_LINE) for line in self.lines)


class OutsideRange(UserWarning):
    """Warning of a parameter outside the range for which the algorithm is known to converge."""


class Diverged(ArithmeticError):
    """Error of a non-finite iterate, with its algorithm, setting, iteration and run.

    Parameters
    ----------
    algorithm : str
        Name of the algorithm's class.
    """

    def __init__(self, algorithm: str, setting: Any, iteration: int, run: int):
        super().__init__(algorithm, setting, iteration, run)
        self.algorithm, self.setting = algorithm, setting
        self.iteration, self.run = iteration, run

    def __str__(self) -> str:
        where = f"iteration {self.iteration}, run {self.run}, setting {self.setting}"
        return f"{self.algorithm}: non-finite iterate at {where}"


def require(condition: bool, key: str, value: Any, expected: str) -> None:
    """Raise :class:`InvalidInput` unless ``condition`` holds.

    ``key`` is the configuration key, argument or file that the error names.
    """
    if not condition:
        raise InvalidInput(key, value, expected)


def nearest(name: str, valid: Iterable[str]) -> str:
    """Return a question that suggests the most similar names, or an empty text."""
    matches = get_close_matches(name, list(valid), n=MAX_SUGGESTIONS)
    return f"did you mean {' or '.join(matches)}?" if matches else ""


def representation(value: Any) -> str:
    """Return ``repr(value)`` in one line of at most :data:`MAX_VALUE` characters.

    The type's name replaces a representation that cannot be computed.
    """
    try:
        text = repr(value)
    except Exception:  # raised by foreign types, and by integers with thousands of digits
        text = f"<{type(value).__name__}>"
    return shortened(one_line(text), MAX_VALUE)


def shortened(text: str, limit: int) -> str:
    """Return a text of at most ``limit`` characters, or its beginning and its length."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}... ({len(text):,} characters)"


def one_line(text: str) -> str:
    """Return a text without line breaks; other control characters become escapes."""
    if text.isprintable():
        return text
    joined = " ".join(line.strip() for line in text.splitlines())
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in joined)


def _shortened_names(expected: str) -> str:
    """Shorten an expectation; a long list of names ends with the number of names."""
    if len(expected) <= MAX_EXPECTED:
        return expected
    if not expected.startswith(ONE_OF):
        return shortened(expected, MAX_EXPECTED)
    beginning = expected[:MAX_EXPECTED].rpartition(", ")[0]
    return f"{beginning}, ... ({expected.count(', ') + 1} names)"
