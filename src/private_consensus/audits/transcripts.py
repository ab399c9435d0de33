"""Audits of whole transcripts of the algorithms themselves, and of copies broken on purpose.

Two neighbouring data sets are small and extreme: the replaced record goes from one end of what is
allowed to the other. All messages of all agents are seen. A claim is tested at a delta of 0.01,
where few thousand runs can contradict something; it is the epsilon that the accountant finds for
the same releases at that delta.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from itertools import repeat
from typing import Any

import numpy as np

from .. import algorithms, networks
from ..algorithms.base import Algorithm, stack
from ..privacy import Budget, account, gaussian_dp
from ..privacy.audit import CONFIDENCE, noise_scale_test, transcript_audit
from ..problems.linear_observation import EXAMPLE, LinearObservation
from ..problems.linear_observation import build as linear_observation
from ..problems.logistic_regression import LogisticRegression
from ..problems.mean_estimation import MeanEstimation
from ..randomness import UNIT_LAWS, Streams
from .recovery import in_units_of_the_claim

AGENTS, DELTA, ROOT = 3, 1e-2, 20_253
LATE = 6
NOISE_RUNS = 500
"""Runs after which a noise that is 5 % off is seen, nine times of ten or more."""
COPIES = ("correct", "half noise", "no clipping", "reused noise", "un-noised last message")


@dataclass(frozen=True)
class Scene:
    """An algorithm with its noise set, on two neighbouring data sets and on two that are further
    apart than the sensitivity allows for."""

    name: str
    algorithm: Algorithm
    pair: tuple[Any, Any]
    far: tuple[Any, Any]
    network: Any
    horizon: int


class Together(Streams):
    """Streams of thousands of short runs: one generator draws for all of them, as they go on."""

    def draw(self, purpose, law, shape, name=""):
        return self._law(law)(self.shared(purpose, name), (len(self.runs), *shape))

    def sequence(self, purpose, law, shape, name="") -> Iterator[np.ndarray]:
        generator = self.shared(purpose, name)
        while True:
            yield self._law(law)(generator, (len(self.runs), *shape))

    @staticmethod
    def _law(law):
        return UNIT_LAWS[law] if isinstance(law, str) else law


class Stuck(Together):
    """Streams whose noise is drawn once and used at each iteration."""

    def sequence(self, purpose, *arguments, **options) -> Iterator[np.ndarray]:
        drawn = super().sequence(purpose, *arguments, **options)
        if purpose != "noise":
            return drawn
        return repeat(next(drawn))


@dataclass(frozen=True)
class Measured(LinearObservation):
    """Observations without noise of their own, one measurement of agent 3 ``moved``: the
    one whose matrix is nearly the largest, in the last message."""

    moved: float = 0.0

    def data(self, t, unit):
        found = np.array(super().data(t, 0.0 * unit))
        if t == LATE:
            found[..., 2, 0] += self.moved
        return found


def scenes(names: tuple[str, ...] | None = None) -> list[Scene]:
    """The representative settings."""
    builders: dict[str, Callable[[], Scene]] = {
        "gradient_descent": _descent,
        "dp_ci": _consensus,
        "dvp": lambda: _admm("dvp", Budget(4.0, 0.0)),
        "m_admm": lambda: _admm("m_admm", Budget(4.0, 0.0)),
        "pr_admm": lambda: _admm("pr_admm", Budget(2.0, 1e-4), calibration="accountant"),
        "pp_admm": lambda: _admm("pp_admm", Budget(2.0, 1e-4), calibration="accountant"),
    }
    return [build() for name, build in builders.items() if names is None or name in names]


def _graph():
    return networks.build(Streams(0, (0,)), "complete", AGENTS)


def _descent() -> Scene:
    records, box, horizon = 20, 1.0, 5

    def problem(record: float) -> MeanEstimation:
        means = np.zeros((1, AGENTS, 2))
        means[0, 0] = record / records
        return MeanEstimation(means, records, box)

    pair, network = (problem(-box), problem(box)), _graph()
    noisy = algorithms.load("gradient_descent")(
        calibration="gaussian_dp", spending="whole"
    ).calibrate(Budget(3.0, 1e-3), pair[0], network, horizon)
    far = problem(-5 * box), problem(5 * box)
    return Scene("gradient_descent", noisy, pair, far, network, horizon)


def _consensus() -> Scene:
    parameters = {**EXAMPLE, "noise": 0.0}
    built = linear_observation(Streams(0, (0,)), AGENTS, **parameters)

    def problem(moved: float) -> Measured:
        parts = {field.name: getattr(built, field.name) for field in fields(built)}
        return Measured(**parts, moved=moved)

    network, horizon = _graph(), LATE + 1
    noisy = algorithms.load("dp_ci")().calibrate(Budget(2.0, 0.0), built, network, horizon)
    pair = problem(0.0), problem(float(noisy.delta))
    far = problem(0.0), problem(6 * float(noisy.delta))
    return Scene("dp_ci", noisy, pair, far, network, horizon)


def _admm(name: str, budget: Budget, **options) -> Scene:
    horizon, records, network = 3, 20, _graph()

    def problem(size: float, side: float) -> LogisticRegression:
        features = np.zeros((AGENTS, records, 2))
        features[..., 1] = np.where(np.arange(records) % 2, 1.0, -1.0)
        features[0, 0] = (size * side, 0.0)
        labels = np.ones((AGENTS, records))
        return LogisticRegression(features, labels, features[0], labels[0], 1.0 / records, 1e-2)

    pair = problem(1.0, 1.0), problem(1.0, -1.0)
    noisy = algorithms.load(name)(**options).calibrate(budget, pair[0], network, horizon)
    return Scene(name, noisy, pair, (problem(12.0, 1.0), problem(12.0, -1.0)), network, horizon)


def messages(
    scene: Scene, problem: Any, runs: int, world: int, copy: str, *, hidden: bool = False
) -> np.ndarray:
    """All messages of all runs, [runs, iterations, agents, dim]; ``hidden``: before their noise."""
    kind = Stuck if copy == "reused noise" else Together
    groups = {"noise": f"{scene.name} {world}", "sampling": f"{scene.name} {world}"}
    streams = kind(ROOT, tuple(range(runs)), groups)
    if isinstance(problem, MeanEstimation):
        problem = replace(problem, means=np.broadcast_to(problem.means, (runs, AGENTS, 2)))
    algorithm = scene.algorithm
    if copy == "half noise":
        noises = ("noise", "fuzz")
        half = {key: getattr(algorithm, key) / 2 for key in noises if hasattr(algorithm, key)}
        algorithm = replace(algorithm, **half)
    seen: list[np.ndarray] = []

    def observe(t, active, now):
        if "released" not in now:
            return
        bare = hidden or (copy == "un-noised last message" and t == scene.horizon)
        seen.append(np.array(now["internal" if bare and "internal" in now else "released"][0]))

    stack([algorithm]).run(problem, scene.network, streams, np.array([scene.horizon]), observe)
    return np.stack(seen, axis=1)


def audited(scene: Scene, copy: str, runs: int) -> dict[str, Any]:
    """One audit: the bound on epsilon from all messages, and whether the claim is contradicted."""
    releases = scene.algorithm.releases(scene.pair[0], scene.network, scene.horizon)
    claim = account(releases, DELTA)
    pair = scene.far if copy == "no clipping" else scene.pair
    one, other = (messages(scene, p, runs, w, copy) for w, p in enumerate(pair))
    found = transcript_audit(one, other, delta=DELTA)
    row = _row(scene.name, "transcript", copy, claim.epsilon, found.bound, runs)
    if all(release.mechanism == "gaussian" for release in releases):
        # what Gaussian noise alone protects is mu-GDP, which is easier to contradict
        row["flagged"] |= found.fit.contradicts(gaussian_dp(releases))
    return row


def _row(name, level, copy, claimed, bound, runs) -> dict[str, Any]:
    return {
        "experiment": "", "algorithm": name, "variant": "", "setting": "representative",
        "level": level, "copy": copy, "delta": DELTA, "claimed": float(claimed),
        "bound": float(bound.epsilon), "ceiling": float(bound.ceiling), "runs": runs,
        "confidence": CONFIDENCE, "flagged": bool(bound.contradicts(claimed)),
    }  # fmt: skip


def white_box(runs: int) -> list[dict[str, Any]]:
    """Noise as it was really added: law, scale on both sides, independence; a row a place."""
    rows = []
    for scene in scenes():
        for copy in broken_copies(scene):
            if copy != "no clipping":  # noise says nothing of data
                rows += _noise_rows(scene, copy, runs)
    return rows


def _noise_rows(scene: Scene, copy: str, runs: int) -> Iterator[dict[str, Any]]:
    problem = scene.pair[0]
    sent, bare = (
        messages(scene, problem, runs, 0, copy, hidden=hidden) for hidden in (False, True)
    )
    law = "laplace" if scene.name == "dp_ci" else getattr(scene.algorithm, "law", "gaussian")
    world = scene.algorithm, problem, scene.network, scene.horizon
    found = in_units_of_the_claim(*world, sent, bare)
    for where, unit in found:
        # differences of messages are exact to some 15 digits; reuse is to be seen as equality
        # and one agent's iterations stand next to each other, since neighbours are compared.
        test = noise_scale_test(np.round(unit.swapaxes(1, 2), 12), 1.0, law=law)
        yield {
            "experiment": "", "algorithm": scene.name, "variant": "",
            "setting": "representative", "level": f"noise of the {where}", "copy": copy,
            "delta": 0.0, "claimed": test.scale, "bound": test.low, "ceiling": test.high,
            "runs": runs, "confidence": CONFIDENCE, "flagged": not test.passes,
        }  # fmt: skip


def broken_copies(scene: Scene) -> tuple[str, ...]:
    """Copies that can be made of it: a last message has no noise of its own to lose where the noise
    is inside the minimisation."""
    inside = getattr(type(scene.algorithm), "where", "output") != "output"
    return COPIES[:-1] if inside else COPIES


def audit_all(runs: int) -> list[dict[str, Any]]:
    """White-box tests and transcript audits of all scenes and copies."""
    found = white_box(min(runs, NOISE_RUNS))
    for scene in scenes():
        found += [audited(scene, copy, runs) for copy in broken_copies(scene)]
    return found
