"""Differentially private decentralized learning: published results, re-run and checked.

What is exported is imported when it is asked for, by name: no result depends on all that is.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"
__all__ = ["audit"]

_PLACES = {"audit": "audits.audit"}


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return getattr(import_module(f".{_PLACES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
