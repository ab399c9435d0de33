"""How what is said in one place refines what is said in another."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ..schema import ConfigurationError


def refined(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of both, those of ``own`` first in case of doubt; nothing (``~``) takes one away."""
    return {key: value for key, value in {**base, **own}.items() if value is not None}


def renamed(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Merge like :func:`refined`; an entry with another name inherits nothing from ``base``."""
    other = "name" in own and own["name"] != base.get("name")
    return refined({} if other else base, own)


def without(found: Mapping[str, Any], keys: Collection[str]) -> dict[str, Any]:
    """All but some keys."""
    return {key: value for key, value in found.items() if key not in keys}


def chosen(found: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """Some keys, where there are any."""
    return {key: found[key] for key in keys if key in found}


def named(known: Mapping[str, Any], name: str, where: str) -> Any:
    """Return the entry with a given name.

    Raises
    ------
    ConfigurationError
        With the key that has the name, if nothing stands under it.
    """
    if name not in known:
        raise wrong(where, name, f"one of {', '.join(known) or '(none)'}")
    return known[name]


def wrong(where: str, found: object, expectation: str) -> ConfigurationError:
    """Return one line about a key: its value and the expectation."""
    return ConfigurationError([f"{where}: found {found!r}, expected {expectation}"])


def measured(measure: str) -> tuple[str, str]:
    """Quantity and metric; a quantity that is a number already has the metric ``value``."""
    quantity, _, metric = measure.partition(".")
    return quantity, metric or "value"


def shown(value: Any) -> str:
    """A value of an axis as titles and labels have it."""
    return f"{value:g}" if isinstance(value, float) else str(value)
