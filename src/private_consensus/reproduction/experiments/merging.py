"""Merge mappings of the configuration, in which specific values override common values."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from .schema import ConfigurationError


def override(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mapping with some values overridden; a null value (``~``) removes its key.

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


def override_object(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Override values like :func:`override`; an object with another name inherits nothing.

    Parameters
    ----------
    base : mapping
        Common parameters of an object, such as a problem, with its ``name``.
    changes : mapping
        Specific parameters. If their ``name`` differs, ``base`` is ignored.

    Returns
    -------
    dict
        Merged values without null values.
    """
    has_other_name = "name" in changes and changes["name"] != base.get("name")
    return override({} if has_other_name else base, changes)


def omit(mapping: Mapping[str, Any], keys: Collection[str]) -> dict[str, Any]:
    """Return a mapping without some of its keys.

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


def select(mapping: Mapping[str, Any], keys: Collection[str]) -> dict[str, Any]:
    """Return the entries of a mapping with some keys.

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


def look_up(entries: Mapping[str, Any], name: str, key_path: str) -> Any:
    """Return the entry with a name; raise an error that lists all names if there is none.

    Parameters
    ----------
    entries : mapping
        Entries by name.
    name : str
        Name of the entry.
    key_path : str
        Key of the configuration that refers to the name.

    Returns
    -------
    object
        The entry.

    Raises
    ------
    ConfigurationError
        If no entry has the name; the message contains ``key_path``.
    """
    if name not in entries:
        raise configuration_error(key_path, name, f"one of {', '.join(entries) or '(none)'}")
    return entries[name]


def extended(entries: Mapping[str, Any], name: str, key_path: str, kind: str) -> Any:
    """Return the entry that another entry extends; it must not extend an entry itself.

    Parameters
    ----------
    entries : mapping
        Entries by name.
    name : str
        Name of the extended entry.
    key_path : str
        Key of the extending entry.
    kind : str
        Kind of the entries for the message, such as ``an experiment``.

    Returns
    -------
    object
        The extended entry.

    Raises
    ------
    ConfigurationError
        If no entry has the name, or if the entry extends another.
    """
    entry = look_up(entries, name, f"{key_path}.extends")
    if "extends" in entry:
        raise configuration_error(f"{key_path}.extends", name, f"{kind} that extends no other")
    return entry


def method_and_variant(entry: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return the algorithm and the variant of an entry.

    ``method`` is algorithm.variant, or an algorithm whose variant is in the key ``variant``.
    """
    algorithm, _, variant = entry.get("method", "").partition(".")
    return algorithm, variant or entry.get("variant")


def configuration_error(key_path: str, value: object, expectation: str) -> ConfigurationError:
    """Build an error about one key, with its value and a description of valid values.

    Parameters
    ----------
    key_path : str
        Key of the configuration.
    value : object
        Invalid value.
    expectation : str
        Description of valid values.

    Returns
    -------
    ConfigurationError
        The error, which the caller raises.
    """
    problem = "missing" if value is None else f"found {value!r}"
    return ConfigurationError([f"{key_path}: {problem}, expected {expectation}"])


def format_value(value: Any) -> str:
    """Format an axis value for titles and labels."""
    return f"{value:g}" if isinstance(value, float) else str(value)
