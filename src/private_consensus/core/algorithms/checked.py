"""Validation of the arguments of an algorithm's methods, in one place for all algorithms."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import numpy as np

from private_consensus.common.errors import arguments, require
from private_consensus.privacy import Budget, Release

from ..networks import require_same_agents
from ..problems import Problem
from ..randomness import Streams
from .noise import Noise

PLACE = ("problem", "network")
MAX_HORIZON, MAX_SETTINGS = 10_000_000, 100_000
"""Largest number of iterations and of settings in a batch."""

CHECKED: Mapping[str, tuple[str, ...]] = {
    "calibrate": ("budget", *PLACE, "horizon"),
    "check_needs": ("problem",),
    "graph_statistics": ("network",),
    "releases": (*PLACE, "horizon"),
    "lower_bound": ("releases", "delta"),
    "releases_if_assumed": (*PLACE, "horizon"),
    "epsilon_by_formula": ("delta", *PLACE, "horizon"),
    "statements": ("budget", *PLACE, "horizon"),
    "noise_sites": (*PLACE, "horizon"),
    "run": (*PLACE, "streams", "horizon", "observe"),
    "start": (*PLACE, "streams", "settings"),
    "draws": ("problem", "streams"),
}
"""Methods whose arguments are checked, with their parameters in order.

``run`` has one horizon per setting. Methods that are called in every iteration, such as ``step``,
are not checked.
"""


OF_ONE_SETTING = ("calibrate", "releases")
"""Methods that are not called for batches of settings."""


def _counts_agents(value: Any) -> bool:
    return isinstance(getattr(value, "n_agents", None), int | np.integer)


def _problem(key: str, value: Any) -> None:
    """Raise an error for anything but a problem, or a wrapper of one as audits use it."""
    is_problem = isinstance(value, Problem) or (_counts_agents(value) and hasattr(value, "dim"))
    require(is_problem, key, value, "a Problem")


def _network(key: str, value: Any) -> None:
    """Raise an error for anything but a network, or a wrapper of one as audits use it."""
    require(_counts_agents(value) and hasattr(value, "shared"), key, value, "a Network")


def _streams(key: str, value: Any) -> None:
    is_streams = isinstance(value, Streams) or (hasattr(value, "runs") and hasattr(value, "draw"))
    require(is_streams, key, value, "Streams")


def _horizons(key: str, value: Any) -> None:
    """Raise an error for anything but a list or a flat array of whole numbers >= 1."""
    expected = "one whole number >= 1 per setting"
    is_flat = value.ndim == 1 if isinstance(value, np.ndarray) else isinstance(value, list | tuple)
    require(is_flat and len(value) > 0, "horizon", value, expected)
    for horizon in value:
        arguments.whole("horizon", horizon, 1, MAX_HORIZON)


def _observer(key: str, value: Any) -> None:
    """Raise an error for anything but a function of three arguments."""
    arguments.function(key, value)
    expected = "a function of the iteration, the active settings and the observables"
    try:
        inspect.signature(value).bind(1, np.empty(0), {})
    except ValueError:  # a compiled function without a signature
        return
    except TypeError:
        require(False, key, value, expected)


CHECKS: Mapping[str, Callable[[str, Any], Any]] = {
    "budget": lambda key, value: arguments.instance(key, value, Budget, "a Budget"),
    "problem": _problem,
    "network": _network,
    "streams": _streams,
    "horizon": lambda key, value: arguments.whole(key, value, 1, MAX_HORIZON),
    "settings": lambda key, value: arguments.whole(key, value, 1, MAX_SETTINGS),
    "delta": lambda key, value: arguments.number(
        key, value, "a number in [0, 1]", lambda delta: 0 <= delta <= 1
    ),
    "releases": lambda key, value: arguments.items(key, value, Release, "a list of Release"),
    "observe": _observer,
}
"""Function that checks a parameter, by name; it raises :class:`.InvalidInput` for a wrong value."""
CHECKS_OF_RUN = {**CHECKS, "horizon": _horizons}


def check_arguments(kind: type) -> None:
    """Replace the methods that a class defines by methods that check their arguments first."""
    for name in CHECKED.keys() & vars(kind).keys():
        if callable(method := vars(kind)[name]):
            checks = CHECKS_OF_RUN if name == "run" else CHECKS
            checks_by_name = {parameter: checks[parameter] for parameter in CHECKED[name]}
            if name == "epsilon_by_formula":
                method = _infinite_at_delta_0(method)
            if name == "calibrate":
                method = _with_finite_noise(method)
            checked = _checked(method, checks_by_name, of_one_setting=name in OF_ONE_SETTING)
            setattr(kind, name, checked)


def _with_finite_noise(calibrate: Callable) -> Callable:
    """Return a calibration that refuses a budget for which its formula gives infinite noise."""

    @wraps(calibrate)
    def finite(self: Any, budget: Budget, *args: Any, **kwargs: Any) -> Any:
        with np.errstate(divide="ignore", over="ignore"):
            calibrated = calibrate(self, budget, *args, **kwargs)
        scales = [v.scale for v in vars(calibrated).values() if isinstance(v, Noise)]
        is_finite = not any(np.any(np.isinf(scale)) for scale in scales)
        expected = "a larger budget, or a problem with finite sensitivities: the noise is infinite"
        require(is_finite, "budget", str(budget), expected)
        return calibrated

    return finite


def _checked(
    method: Callable, checks: Mapping[str, Callable[[str, Any], Any]], *, of_one_setting: bool
) -> Callable:
    """Return a method that checks its arguments before it computes."""

    @wraps(method)
    def checked(self: Any, *args: Any, **kwargs: Any) -> Any:
        values = {**dict(zip(checks, args, strict=False)), **kwargs}
        for name, check in checks.items():
            if name in values:
                check(name, values[name])
        if "problem" in values and "network" in values:
            require_same_agents(values["problem"], values["network"])
        # A field has one value per setting, for which noise and privacy are computed.
        for field, value in vars(self).items() if of_one_setting else ():
            array = value.scale if isinstance(value, Noise) else value
            if isinstance(array, np.ndarray) and array.size > 1:
                require(False, f"algorithm.{field}", f"an array {array.shape}", "a number")
        return method(self, *args, **kwargs)

    return checked


def _infinite_at_delta_0(formula: Callable) -> Callable:
    """Return a formula whose value at delta = 0 is infinite if the formula divides by delta."""

    @wraps(formula)
    def limit(self: Any, delta: float, *args: Any, **kwargs: Any) -> float:
        try:
            return formula(self, delta, *args, **kwargs)
        except ZeroDivisionError:
            if delta > 0:
                raise
            return float("inf")

    return limit
