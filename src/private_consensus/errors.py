"""The errors that a user meets, each one sentence that names the culprit."""

from __future__ import annotations

from typing import Any


class InvalidInput(ValueError):
    """A setting, budget, graph or file that cannot be used.

    Parameters
    ----------
    key : str
        What was given, as the user names it, e.g. ``budget.epsilon``.
    value : object
        What was found there.
    expected : str
        What would have been accepted.
    """

    def __init__(self, key: str, value: Any, expected: str):
        super().__init__(f"{key}: found {value!r}, expected {expected}")
        self.key, self.value, self.expected = key, value, expected

    def __reduce__(self):
        return type(self), (self.key, self.value, self.expected)


class Refused(InvalidInput):
    """All that is wrong with a configuration, one line a key."""

    def __init__(self, lines: list[str]):
        Exception.__init__(self, "\n".join(lines))
        self.lines = lines

    def __reduce__(self):
        return type(self), (self.lines,)


class OutsideRange(UserWarning):
    """A setting that no convergence result covers; the message states the condition."""


class Diverged(ArithmeticError):
    """An iterate left the finite numbers; names algorithm, setting, iteration and run."""

    def __init__(self, algorithm: str, setting: Any, iteration: int, run: int):
        super().__init__(
            f"{algorithm}: non-finite iterate at iteration {iteration}, "
            f"run {run}, setting {setting}"
        )
        self.algorithm, self.setting = algorithm, setting
        self.iteration, self.run = iteration, run

    def __reduce__(self):
        return type(self), (self.algorithm, self.setting, self.iteration, self.run)


def require(condition: bool, key: str, value: Any, expected: str) -> None:
    """Raise :class:`InvalidInput` unless ``condition`` holds."""
    if not condition:
        raise InvalidInput(key, value, expected)
