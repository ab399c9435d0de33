"""Differentially private decentralized learning: published results, reproduced and verified.

Public names are imported on first use. Algorithms, problems and networks are modules:
``algorithms.load(name)``, ``problems.load(name)``, ``networks.build(streams, name, agents)``.
Algorithms declare their ``mechanisms``.

A :class:`Budget` is the largest allowed privacy loss under a neighbouring :class:`Relation`.
:func:`simulate` runs an algorithm. :func:`account` computes the privacy loss of a list of
:class:`Release`. :func:`calibrate` computes the noise for a budget. :func:`audit` executes an
algorithm on neighbouring data and tries to contradict its guarantee; :func:`audit_function` does so
for any function whose noise comes from :func:`gaussian`, :func:`laplace` or :func:`gamma_norm`.
:func:`observe` computes the privacy loss to observers who receive a part of the messages.
``__init__.pyi`` has the types of all names.
"""

import sys
from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_MODULES = {
    "algorithms": "core.algorithms",
    "mechanisms": "privacy.mechanisms",
    "networks": "core.networks",
    "privacy": "privacy",
    "problems": "core.problems",
}
_OBJECTS = {
    "Algorithm": "core.algorithms.base",
    "Budget": "privacy",
    "InvalidInput": "common.errors",
    "Network": "core.networks",
    "Problem": "core.problems",
    "Relation": "privacy",
    "Release": "privacy",
    "Streams": "core.randomness",
    "account": "privacy",
    "audit": "audits.auditing",
    "audit_function": "audits.functions",
    "calibrate": "privacy",
    "exact": "audits.functions",
    "gamma_norm": "audits.functions",
    "gaussian": "audits.functions",
    "laplace": "audits.functions",
    "observe": "audits.observers",
    "recording": "audits.functions",
    "simulate": "api.results",
    "split": "core.splitting",
}
__all__ = sorted([*_MODULES, *_OBJECTS])


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f".{_MODULES[name]}", __name__)
    if name in _OBJECTS:
        return getattr(import_module(f".{_OBJECTS[name]}", __name__), name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(
        message, name=name, obj=sys.modules[__name__]
    )  # a traceback suggests names


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
