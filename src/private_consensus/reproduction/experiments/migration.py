"""Rewrite files of ``config/papers`` with keys of an earlier release.

:data:`RENAMED` maps old keys to new keys for each kind of entry. :func:`migrated` replaces the
keys; comments, order and layout remain. Files with old keys are refused: :func:`old_keys` finds
them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from private_consensus.common.errors import InvalidInput

_EXPERIMENT = r"(?:experiments/[^/]+|defaults/experiment)"
_VARIANT = rf"(?:variants/[^/]+/[^/]+|{_EXPERIMENT}/algorithms/[^/]+/[^/]+)"
_PANEL = r"(?:figures/[^/]+|figures/[^/]+/panels/\[\]|defaults/panel)"
_CURVE = rf"(?:{_PANEL}/curves(?:/\[\])?|curves/[^/]+(?:/\[\])?)"
_CLAIM = r"(?:claims/[^/]+)"
_CLAIM_VARIANT = rf"(?:{_CLAIM}/variants/[^/]+|claim_variants/[^/]+/[^/]+)"
_TEST = rf"(?:{_CLAIM}/test|{_CLAIM}/tests/\[\]|{_CLAIM_VARIANT}|{_CLAIM_VARIANT}/tests/\[\])"
_SERIES = rf"(?:(?:{_CLAIM}|{_TEST})/(?:series|against(?:/\[\])?))"

_OF_SERIES = {"of": "method", "run": "variant", "last": "last_iteration_only"}
_OF_CURVES = {"run": "variant", "last": "last_iteration_only", "reading": "interpretation"}
_OF_PANELS = {**_OF_CURVES, "views": "privacy_loss"}

RENAMED: dict[str, dict[str, str]] = {
    "": {"choices": "unspecified_details", "most": "max_settings"},
    "paper": {"where": "venue", "short": "short_title"},
    _EXPERIMENT: {
        "like": "extends",
        "place": "location",
        "block": "runs_per_batch",
        "courses": "intermediate_measures",
        "choices": "unspecified_details",
        "oracles": "unaccounted_data_use",
        "groups": "shared_streams",
    },
    rf"{_EXPERIMENT}/scales/[^/]+": {"block": "runs_per_batch"},
    _VARIANT: {"of": "extends", "reading": "interpretation"},
    rf"{_VARIANT}/tuned": {"run": "variant", "over": "axes"},
    r"figures/[^/]+": {"like": "extends", "panel": "panel_title", **_OF_PANELS},
    _PANEL: _OF_PANELS,
    rf"{_PANEL}/(?:views|privacy_loss)": {"watcher": "agent"},
    _CURVE: {"of": "method", "as": "style", **_OF_CURVES},
    r"tables/[^/]+": {
        "beside": "extra_columns",
        "printed_runs": "published_runs",
        "rows": "row_axis",
        "values": "row_values",
    },
    r"tables/[^/]+/blocks/\[\]/methods/\[\]": {
        "of": "method",
        "reading": "interpretation",
        "printed": "published",
    },
    _CLAIM: {"place": "location", "headline": "primary_variant"},
    _TEST: {
        "at": "best_at",
        "each": "other_axes",
        "over": "for_each_variant_of",
        "reading": "interpretation",
        **_OF_SERIES,
    },
    _SERIES: _OF_SERIES,
}
"""Old to new names of keys, by a regular expression for the path of the mapping that contains the
key. In paths, ``[]`` is an entry of a list."""

_PATTERNS = [(re.compile(pattern), names) for pattern, names in RENAMED.items()]


def new_name(path: str, key: str) -> str | None:
    """Return the new name of a key, or None if the key was not renamed.

    Parameters
    ----------
    path : str
        Path of the mapping that contains the key, for example ``experiments/xiao_fig2``.
    key : str
        Key of the mapping.

    Returns
    -------
    str or None
    """
    names = (names[key] for pattern, names in _PATTERNS if key in names and pattern.fullmatch(path))
    return next(names, None)


def old_keys(content: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Find the old keys of a file.

    Parameters
    ----------
    content : object
        Content of the file, or of one of its entries.
    path : str, default ""
        Path of that entry.

    Yields
    ------
    tuple of str
        Path of the old key, and its new name.
    """
    if isinstance(content, dict):
        for key, value in content.items():
            inner = f"{path}/{key}".lstrip("/")
            if (name := new_name(path, str(key))) is not None:
                yield inner, name
            yield from old_keys(value, inner)
    elif isinstance(content, list):
        for entry in content:
            yield from old_keys(entry, f"{path}/[]")


def migrated(text: str, name: str = "file") -> str:
    """Replace the old keys of a YAML file.

    Parameters
    ----------
    text : str
        Text of the file.
    name : str, default "file"
        Name of the file for the error.

    Returns
    -------
    str
        The text with new keys; all other characters are unchanged.

    Raises
    ------
    InvalidInput
        If the text is not valid YAML.
    """
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise InvalidInput(name, str(error).splitlines()[0], "a YAML file") from None
    for start, end, replacement in sorted(_replacements(root, ""), reverse=True):
        text = text[:start] + replacement + text[end:]
    return text


def _replacements(node: yaml.Node | None, path: str) -> Iterator[tuple[int, int, str]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if (name := new_name(path, str(key.value))) is not None:
                yield key.start_mark.index, key.end_mark.index, name
            yield from _replacements(value, f"{path}/{key.value}".lstrip("/"))
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from _replacements(value, f"{path}/[]")
