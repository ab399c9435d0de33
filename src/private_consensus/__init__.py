"""Differentially private decentralized learning: published results, re-run and checked."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .audits.audit import audit

__version__ = "0.1.0"
__all__ = ["audit"]


def __getattr__(name: str):
    """What is exported is imported when it is asked for."""
    if name == "audit":
        from .audits.audit import audit

        return audit
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
