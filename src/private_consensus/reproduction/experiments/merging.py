"""Merge mappings of the configuration: specific values override common values."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from .schema import ConfigurationError


def refined(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two mappings; ``changes`` takes precedence, and a null value (``~``) removes its key.

    Parameters
    ----------
    base : mapping
        Common values.
    changes : mapping
        Specific values.

    Returns
    -------
    dict
        Merged values without null values.
    """
    return {key: value for key, value in {**base, **changes}.items() if value is not None}


def renamed(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Merge like :func:`refined`; an entry with another name inherits nothing from ``base``.

    Parameters
    ----------
    base : mapping
        Common values, possibly with a ``name``.
    changes : mapping
        Specific values, possibly with a different ``name``.

    Returns
    -------
    dict
        Merged values without null values.
    """
    has_other_name = "name" in changes and changes["name"] != base.get("name")
    return refined({} if has_other_name else base, changes)


def without(mapping: Mapping[str, Any], keys: Collection[str]) -> dict[str, Any]:
    """Return a mapping without some keys.

    Parameters
    ----------
    mapping : mapping
        The mapping.
    keys : collection of str
        Keys to remove; they may be absent.

    Returns
    -------
    dict
        The remaining entries.
    """
    return {key: value for key, value in mapping.items() if key not in keys}


def chosen(mapping: Mapping[str, Any], keys: Collection[str]) -> dict[str, Any]:
    """Select some keys of a mapping.

    Parameters
    ----------
    mapping : mapping
        The mapping.
    keys : collection of str
        Keys to select; they may be absent.

    Returns
    -------
    dict
        Selected entries, in the order of the mapping.
    """
    return {key: value for key, value in mapping.items() if key in keys}


def named(entries: Mapping[str, Any], name: str, where: str) -> Any:
    """Return the entry with a given name.

    Parameters
    ----------
    entries : mapping
        Entries by name.
    name : str
        Name of the entry.
    where : str
        Key of the configuration that refers to the name.

    Returns
    -------
    object
        The entry.

    Raises
    ------
    ConfigurationError
        If no entry has the name; the message contains ``where``.
    """
    if name not in entries:
        raise wrong(where, name, f"one of {', '.join(entries) or '(none)'}")
    return entries[name]


def wrong(where: str, value: object, expectation: str) -> ConfigurationError:
    """Return an error with one line about a key: its value and the expectation.

    Parameters
    ----------
    where : str
        Key of the configuration.
    value : object
        Invalid value.
    expectation : str
        Description of valid values.

    Returns
    -------
    ConfigurationError
        The error, not raised.
    """
    problem = "missing" if value is None else f"found {value!r}"
    return ConfigurationError([f"{where}: {problem}, expected {expectation}"])


def shown(value: Any) -> str:
    """Format an axis value for titles and labels."""
    return f"{value:g}" if isinstance(value, float) else str(value)
