r"""Mechanisms of ADMM with approximate minimisations: hidden minimisers, their noise, and tests.

An algorithm computes an approximate minimiser of a perturbed objective, which is private
(:class:`ApproximateMinimiser`). It releases the minimiser with further noise
(:class:`MinimiserNoise`), and may send the result only if a noisy test finds progress
(:class:`ThresholdTests`).
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .mechanisms import Gaussian, Mechanism, ObjectivePerturbation, sizes_of
from .objective_perturbation import PerturbedObjective
from .releases import Release
from .sparse_vector import sparse_vector_release


def _count(mechanism: Mechanism, horizon: int, largest: int | None) -> int:
    """Return the number of releases of a run, or their largest number."""
    count = len(mechanism.released_times(horizon))
    return count if largest is None else min(count, largest)


@dataclass(frozen=True)
class ApproximateMinimiser(ObjectivePerturbation):
    """Approximate minimiser of a perturbed objective, which is hidden.

    The output is a function of the exact minimiser and of an error of the solver, which depends on
    the data. It may reach an observer only through a mechanism that covers the error. A replay
    therefore returns the approximate minimiser on the other data, with the noise for which the
    exact minimisers agree. Sensitivity and scale are equal in all iterations.

    Parameters
    ----------
    tolerance : float or ndarray
        Gradient norm at which a minimisation ends, broadcastable to [settings, runs, agents].
    sent : int, optional
        Largest number of minimisers that are released with noise; None for all.
    """

    tolerance: Any = 0.0
    sent: int | None = None

    def output(self, query, unit, t):
        return query.solve(self.at(self.scale, t) * unit, tolerance=self.tolerance)

    def evidence(self, query, unit, output, t):
        exact = query.solve(self.at(self.scale, t) * unit)
        return *super().evidence(query, unit, exact, t), exact

    def minimiser(self, recorded):
        return recorded.evidence[-1]

    def cost(self, query, recorded, t, earlier):
        return self.total(self.change(query, recorded, t), query, recorded, t)

    def replay(self, query, recorded, t):
        return self.output(query, recorded.unit + self.change(query, recorded, t), t)

    def releases(self, horizon):
        change, scale = float(np.max(self.sensitivity)), float(np.min(self.scale))
        if not scale > 0:
            return [Release("exact", change, 0.0)]
        stated: dict[str, Any] = {
            "count": _count(self, horizon, self.sent), "proven": self.proven, "note": self.note,
        }  # fmt: skip
        if self.kappa is not None:
            profile = PerturbedObjective(mu=change / scale, kappa=self.kappa)
            return [Release("profile", profile=profile, **stated)]
        jacobian = max(float(np.max(self.at(self.jacobian, t))) for t in range(1, horizon + 1))
        shift = Release("gaussian", change, scale, **stated)
        return [shift, Release("pure", epsilon=jacobian, **stated)]


@dataclass(frozen=True)
class MinimiserNoise(Gaussian):
    """Gaussian noise on minimisers, with sensitivity and scale in the unit of the gradient.

    Both are equal in all iterations.

    Parameters
    ----------
    curvature : ndarray
        Public curvature of the objectives, by which sensitivity and scale are divided.
    """

    curvature: Any = 1.0

    def output(self, query, unit, t):
        return query + self.at(self.scale, t) / self.curvature * unit

    def change(self, query, recorded, t):
        return super().change(query, recorded, t) * self.curvature

    def releases(self, horizon):
        change, scale = float(np.max(self.sensitivity)), float(np.min(self.scale))
        if not scale > 0:
            return [Release("exact", change, 0.0)]
        return [Release("gaussian", change, scale, count=_count(self, horizon, self.touched))]


@dataclass(frozen=True)
class ThresholdTests(Mechanism):
    """Noisy comparison of a number per agent with a noisy threshold: at most ``count`` are above.

    The query is [settings, runs, agents, 1], and the output is True for an answer "above". The
    threshold and the number of such answers are memory of the mechanism. The change of the query is
    compared with its sensitivity, since no noise is determined by an answer.

    Parameters
    ----------
    level : float or ndarray
        Threshold before noise.
    threshold_scale : float or ndarray
        Laplace scale of the threshold; ``scale`` is that of the query.
    count : int or ndarray
        Largest number of answers "above" of an agent.
    redrawn : {"each", "after_release", "once"}
        When the noise of the threshold is sampled, see :func:`.sparse_vector_release`.
    """

    level: Any = 0.0
    threshold_scale: Any = 0.0
    count: Any = 1
    redrawn: str = "once"
    shape: tuple[str | int, ...] = ("agents", 1)
    norm_order: ClassVar[int] = 1

    noise_streams = ("query", "threshold")

    def units(self, problem, streams):
        shape = sizes_of(self.shape, problem)
        drawn = (streams.sequence("noise", "laplace", shape, s) for s in self.noise_streams)
        return zip(*drawn, strict=True)

    def memory(self):
        return {"threshold": np.zeros(()), "stale": np.ones((), bool), "above": np.zeros(())}

    def output(self, query, unit, t):
        (query_unit, threshold_unit), memory = unit
        noise = np.where(memory["stale"], threshold_unit, memory["threshold"])
        threshold = self.level + self.threshold_scale * noise
        passes = query + self.at(self.scale, t) * query_unit >= threshold
        above = passes & (memory["above"] < self.count)
        stale = {"each": np.ones_like, "after_release": np.copy, "once": np.zeros_like}
        memory.update(
            # With the settings axis of the query, so that settings can be selected.
            threshold=noise + np.zeros_like(query),
            stale=stale[self.redrawn](above),
            above=memory["above"] + above,
        )
        return above

    def releases(self, horizon):
        return [
            sparse_vector_release(
                float(np.max(self.sensitivity)),
                float(np.min(self.threshold_scale)),
                float(np.min(self.scale)),
                count=int(np.max(self.count)),
                tests=len(self.released_times(horizon)),
                redrawn=self.redrawn,
            )
        ]
