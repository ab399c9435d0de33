"""Epsilon of a hundred Gaussian releases, and the noise for a budget.

A smaller epsilon is tighter; all of these are upper bounds, so that the smallest is the best.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import dp_accounting
import numpy as np
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from private_consensus.privacy import Budget, Release, Sampling, account, calibrate

from .timing import line, longer, once, seconds

COUNT, DELTA, RATE = 100, 1e-5, 0.01
SCALES = np.linspace(10.0, 20.0, COUNT)
BUDGET = Budget(1.0, DELTA)
ADD_REMOVE = dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE
SAME = 1e-3
"""Relative; two bounds that are no further apart are called the same."""

Peers = Iterable[tuple[str, Callable[[], float]]]


def measured() -> Iterator[dict[str, Any]]:
    """Composition of different Gaussians, of sampled ones, and calibration."""
    yield from _compared(f"epsilon of {COUNT} different Gaussians", _composed, _different_peers())
    yield from _compared(f"epsilon of {COUNT} sampled Gaussians", _sampled, _sampled_peers())
    yield from _compared(f"noise of {COUNT} Gaussians", _noise, _noise_peers())


def _compared(what: str, ours: Callable[[], float], peers: Peers) -> Iterator[dict[str, Any]]:
    def cold() -> float:
        for kept in _caches():
            kept.cache_clear()
        return ours()

    exact, spent = cold(), seconds(cold, least=0.0)
    for name, call in peers:
        theirs, took = once(call)
        if theirs is None:
            yield longer(what, name, spent)
            continue
        took = seconds(call) if took < 0.1 else took
        yield line(
            what, name, spent, took, f"{theirs:.4f}, ours {exact:.4f}", _beside(theirs, exact)
        )


def _beside(theirs: float, exact: float) -> str:
    """Who is looser; a peer that is much tighter contradicts what we say, and stops the run."""
    off = theirs / exact - 1
    if off < -0.05:
        raise SystemExit(f"a peer says {theirs}, we say {exact}")
    if abs(off) <= SAME:
        return ""
    return f"looser by {off:.1%}" if off > 0 else f"tighter by {-off:.1%}"


def _caches():
    """What accountants keep from one call to the next, which would be timed instead."""
    ours = [kept for name, kept in sys.modules.items() if name.startswith("private_consensus.")]
    return [found for module in ours for found in vars(module).values()
            if hasattr(found, "cache_clear")]  # fmt: skip


def _composed() -> float:
    return account([Release("gaussian", 1.0, scale) for scale in SCALES], DELTA).epsilon


def _different_peers() -> Peers:
    events = [dp_accounting.GaussianDpEvent(scale) for scale in SCALES]
    yield from _dp_accounting(events, 1)
    yield from _autodp("composed", SCALES, DELTA)


def _dp_accounting(events, count: int) -> Peers:
    for name, make in (("PLD", PLDAccountant), ("Renyi", RdpAccountant)):

        def epsilon(make=make):
            accountant = make(neighboring_relation=ADD_REMOVE)
            for event in events:
                accountant.compose(event, count)
            return accountant.get_epsilon(DELTA)

        yield f"dp_accounting ({name})", epsilon


def _sampled() -> float:
    sampling = Sampling("poisson", RATE)
    return account([Release("gaussian", 1.0, 1.0, count=COUNT, sampling=sampling)], DELTA).epsilon


def _sampled_peers() -> Peers:
    event = dp_accounting.PoissonSampledDpEvent(RATE, dp_accounting.GaussianDpEvent(1.0))
    yield from _dp_accounting([event], COUNT)
    yield from _autodp("sampled", 1.0, RATE, COUNT, DELTA)


def _noise() -> float:
    return calibrate(lambda sigma: [Release("gaussian", 1.0, sigma, count=COUNT)], BUDGET)


def _noise_peers() -> Peers:
    def pld():
        return dp_accounting.calibrate_dp_mechanism(
            lambda: PLDAccountant(neighboring_relation=ADD_REMOVE),
            lambda sigma: dp_accounting.SelfComposedDpEvent(
                dp_accounting.GaussianDpEvent(sigma), COUNT
            ),
            BUDGET.epsilon, DELTA,
            dp_accounting.LowerEndpointAndGuess(1.0, 100.0),
            tol=1e-3,
        )  # fmt: skip

    yield "dp_accounting (PLD)", pld
    yield from _autodp("calibrated", COUNT, BUDGET)


class _Autodp:
    def __init__(self):
        from autodp import mechanism_zoo, transformer_zoo

        self.zoo, self.transformers = mechanism_zoo, transformer_zoo

    def gaussian(self, sigma: float):
        return self.zoo.GaussianMechanism(sigma, RDP_off=False, approxDP_off=True, fdp_off=True)

    def composed(self, scales, delta: float) -> float:
        mechanisms = [self.gaussian(scale) for scale in scales]
        compose = self.transformers.Composition()
        return compose(mechanisms, [1] * len(mechanisms)).get_approxDP(delta)

    def sampled(self, sigma: float, rate: float, count: int, delta: float) -> float:
        one = self.gaussian(sigma)
        one.neighboring = "add_remove"
        sampled = self.transformers.AmplificationBySampling(PoissonSampling=True)(
            one, rate, improved_bound_flag=True
        )
        return self.transformers.Composition()([sampled], [count]).get_approxDP(delta)

    def calibrated(self, count: int, budget: Budget) -> float:
        from scipy.optimize import brentq

        def excess(sigma):
            compose = self.transformers.Composition()
            epsilon = compose([self.gaussian(sigma)], [count]).get_approxDP(budget.delta)
            return epsilon - budget.epsilon

        return brentq(excess, 1.0, 1000.0, xtol=1e-3)


def _autodp(method: str, *given) -> Peers:
    try:
        peer = _Autodp()
    except ImportError:
        return
    yield "autodp (Renyi)", partial(getattr(peer, method), *given)
