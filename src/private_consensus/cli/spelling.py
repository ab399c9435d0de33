"""Suggestions for unknown names: the closest valid spelling."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from ..common.errors import InvalidInput

MAX_SUGGESTIONS = 3
ONE_OF = "one of "


def nearest(name: str, valid: Iterable[str]) -> str:
    """Return a question that suggests the most similar names, or an empty text."""
    matches = get_close_matches(name, list(valid), n=MAX_SUGGESTIONS)
    return f"did you mean {' or '.join(matches)}?" if matches else ""


def spelling_suggestion(error: InvalidInput) -> str:
    """Return a question that suggests names, if the error lists valid names; else an empty text."""
    if not isinstance(error.value, str) or not error.expected.startswith(ONE_OF):
        return ""
    return nearest(error.value, error.expected.removeprefix(ONE_OF).split(", "))
