"""Audits of whole transcripts of the algorithms themselves, and of copies broken on purpose.

All messages of all agents are seen. A claim is tested at a delta of 0.01, where few thousand runs
can contradict something; it is the epsilon that the accountant finds for the same releases at that
delta.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from ..algorithms.base import stack
from ..algorithms.decentralized_sgd import DecentralizedSGD
from ..algorithms.functional_mechanism import FunctionalMechanism
from ..privacy import account, gaussian_dp
from ..privacy.audit import CONFIDENCE, noise_scale_test, transcript_audit
from ..randomness import UNIT_LAWS, Streams
from .recovery import coefficient_units, in_units_of_the_claim
from .rounds import heard_in_rounds
from .scenes import Scene, scenes

DELTA, ROOT = 1e-2, 20_253
NOISE_RUNS = 500
"""Runs after which a noise that is 5 % off is seen, nine times of ten or more."""
COPIES = ("correct", "half noise", "no clipping", "reused noise", "un-noised last message")
NOISES = ("noise", "sigma", "noise_selected", "noise_rest", "noise_objective", "noise_fairness")
HALF_MESSAGE = "half message noise"
"""Of algorithms that have a noise of the minimisation, too, which "half noise" is about."""


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


class Play(NamedTuple):
    """Messages, and what they are before what is added to them: [runs, iterations, agents, dim]."""

    sent: np.ndarray
    bare: np.ndarray


def played(scene: Scene, problem: Any, runs: int, world: int, copy: str) -> Play:
    """All runs of a scene on one of its data sets."""
    streams, problem = _streams(scene, runs, world, copy), repeated(problem, runs)
    algorithm = stack([_halved(scene.algorithm, copy)])
    if isinstance(algorithm, FunctionalMechanism):
        return at_once(algorithm, problem, scene.network, streams)
    world = problem, scene.network, scene.horizon, streams
    if isinstance(algorithm, DecentralizedSGD):
        sent, bare = heard_in_rounds(algorithm, *world, stuck=copy == "reused noise")
    else:
        sent, bare = _heard(algorithm, *world)
    if copy == "un-noised last message":
        sent[-1] = bare[-1]
    return Play(np.stack(sent, axis=1), np.stack(bare, axis=1))


def _heard(algorithm, problem, network, horizon: int, streams):
    """Of each iteration what was sent, and that without noise: [runs, agents, dim]."""
    state = algorithm.start(problem, network, streams, 1)
    draws = algorithm.draws(problem, streams)
    sent, bare = [], []
    for t in range(1, horizon + 1):
        draw = next(draws)
        before, state = state, algorithm.step(state, problem, network, draw, t)
        now = algorithm.seen(state, problem, t)
        if "internal" in now:
            bare.append(now["internal"][0])
        else:
            silenced = algorithm.step(before, problem, network, silent(draw), t)
            bare.append(algorithm.seen(silenced, problem, t)["released"][0])
        sent.append(now["released"][0])
    return sent, bare


def _streams(scene: Scene, runs: int, world: int, copy: str) -> Together:
    kind = Stuck if copy == "reused noise" else Together
    groups = {"noise": f"{scene.name} {world}", "sampling": f"{scene.name} {world}"}
    return kind(ROOT, tuple(range(runs)), groups)


def repeated(problem: Any, runs: int) -> Any:
    """The same data in each run, where a problem keeps those of each."""
    for name in ("means", "test"):
        if hasattr(problem, name):
            one = getattr(problem, name)
            return replace(problem, **{name: np.broadcast_to(one, (runs, *one.shape[1:]))})
    return problem


def at_once(algorithm, problem, network, streams) -> Play:
    """Of what lets out one minimiser: that, and the one without noise is nowhere."""
    seen = {}
    algorithm.run(problem, network, streams, np.array([1]), lambda t, active, now: seen.update(now))
    sent = seen["released"][0][:, None]
    return Play(sent, np.full_like(sent, np.nan))


def _halved(algorithm, copy: str):
    names = {"half noise": NOISES, HALF_MESSAGE: ("fuzz",)}.get(copy, ())
    halved = {key: getattr(algorithm, key) / 2 for key in names if hasattr(algorithm, key)}
    return replace(algorithm, **halved)


def silent(draw: Any) -> Any:
    """The same draw without its noise; what is random beside it stays."""
    if isinstance(draw, np.ndarray):
        return np.zeros_like(draw)
    return draw._replace(noise=np.zeros_like(draw.noise))


def audited(scene: Scene, copy: str, runs: int) -> dict[str, Any]:
    """One audit: the bound on epsilon from all messages, and whether the claim is contradicted."""
    runs = min(runs, scene.most)
    releases = scene.algorithm.releases(scene.pair[0], scene.network, scene.horizon)
    claim = account(releases, DELTA)
    pair = scene.far if copy == "no clipping" else scene.pair
    one, other = (played(scene, p, runs, w, copy).sent for w, p in enumerate(pair))
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
    for where, unit in _recovered(scene, problem, copy, runs):
        if not _touched(scene, copy, where):
            continue
        # differences of messages are exact to some 15 digits; reuse is to be seen as equality
        # and one agent's iterations stand next to each other, since neighbours are compared.
        test = noise_scale_test(np.round(unit.swapaxes(1, 2), 12), 1.0, law=_law(scene))
        yield {
            "experiment": "", "algorithm": scene.name, "variant": "",
            "setting": "representative", "level": f"noise of the {where}", "copy": copy,
            "delta": 0.0, "claimed": test.scale, "bound": test.low, "ceiling": test.high,
            "runs": runs, "confidence": CONFIDENCE, "flagged": not test.passes,
        }  # fmt: skip


def _recovered(scene: Scene, problem: Any, copy: str, runs: int):
    """Places and units of :func:`in_units_of_the_claim`; of coefficients, those that are noised."""
    if isinstance(scene.algorithm, FunctionalMechanism):
        streams, problem = _streams(scene, runs, 0, copy), repeated(problem, runs)
        broken = stack([_halved(scene.algorithm, copy)])
        noised = broken.perturbed(problem, streams)
        return [("coefficients", coefficient_units(stack([scene.algorithm]), problem, *noised))]
    world = scene.algorithm, problem, scene.network, scene.horizon
    return in_units_of_the_claim(*world, *played(scene, problem, runs, 0, copy))


def _law(scene: Scene) -> str:
    if scene.name == "dp_ci":
        return "laplace"
    kind = "mechanism" if isinstance(scene.algorithm, FunctionalMechanism) else "law"
    return getattr(scene.algorithm, kind, "gaussian")


def _touched(scene: Scene, copy: str, where: str) -> bool:
    """Whether a copy that halves one of two noises is broken in this place."""
    if copy == HALF_MESSAGE:
        return where == "message"
    return copy != "half noise" or where != "message" or not hasattr(scene.algorithm, "fuzz")


def broken_copies(scene: Scene) -> tuple[str, ...]:
    """Copies that can be made of it: a last message has no noise of its own to lose where the noise
    is inside the minimisation, and what is noised once has neither a last message nor a reuse."""
    if isinstance(scene.algorithm, FunctionalMechanism):
        return COPIES[:3]
    inside = getattr(type(scene.algorithm), "where", "output") != "output"
    copies = COPIES[:-1] if inside else COPIES
    return (*copies, HALF_MESSAGE) if hasattr(scene.algorithm, "fuzz") else copies


def audit_all(runs: int) -> list[dict[str, Any]]:
    """White-box tests and transcript audits of all scenes and copies."""
    found = white_box(min(runs, NOISE_RUNS))
    for scene in scenes():
        found += [audited(scene, copy, runs) for copy in broken_copies(scene)]
    return found
