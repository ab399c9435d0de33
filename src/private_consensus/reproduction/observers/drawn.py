"""Privacy losses to observers, as rows of the data of a figure.

graph      agents on a circle, each with its privacy loss to one marked agent
map        privacy loss of every ordered pair of agents
distance   privacy loss of pairs by distance, next to guarantees for other loss functions and to the
           sum of the privacy losses of single messages, which is no bound
rounds     privacy loss to each kind of observer after T rounds, with the noise for the largest T
coalitions privacy loss of one agent by size of the coalition: nearest, random and farthest agents
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from private_consensus.audits.views.causal import Observation, observation, registry_name
from private_consensus.audits.views.epsilon import epsilons
from private_consensus.audits.views.table import kinds, nearest
from private_consensus.common.errors import require
from private_consensus.core.randomness import Streams, generator
from private_consensus.privacy import gaussian_epsilon, gaussian_mu
from private_consensus.privacy.observers import (
    Coalition,
    Eavesdropper,
    Free,
    Observer,
    SecureSums,
    contraction_bound,
    light_cone_bound,
    noised_descent,
)
from private_consensus.privacy.observers.linear_view import dense
from private_consensus.privacy.observers.single_losses import descent_sum, gossip_sum

from ..experiments.numbers import on_circle
from .settings import calibrated, epsilon_of

OBSERVERS = {"agent": Coalition, "secure sums": SecureSums}
COMPUTED = "none, all is computed"
"""Data source stated by the figures: no data set is used."""
SHOWN = {
    "eavesdropper": ("worst",),
    "eavesdropper with an agent's secrets": ("worst",),
    "coalition of 2": ("worst",),
    "coalition of 3": ("worst",),
    "coalition of 5": ("worst",),
    "agent": ("worst", "median"),
    "secure sums": ("worst", "median"),
    "last models": ("worst",),
    "mean of last models": ("worst",),
}
"""Kinds of observers in the figure over rounds, each with the pairs that are drawn."""
SIZES = (2, 5)
"""Sizes of further coalitions in the figure over rounds."""
GUIDE = "a server's sum: mu as the root of T"
"""Label of the reference curve over rounds."""
ORDERS = 20
"""Number of random orders in which agents join a coalition."""
Row = dict[str, Any]


def view_points(views: Mapping[str, Any], seed: int) -> pl.DataFrame:
    """Return the data of one panel of a figure.

    Parameters
    ----------
    views : mapping
        Plain values of :class:`private_consensus.reproduction.experiments.schema.Views`.
    seed : int
        Seed of the reproduction.

    Returns
    -------
    DataFrame
        ``kind`` (node, edge, pair, line, mark), ``x`` and ``y`` of the element, and the guaranteed
        ``epsilon``, null if no message arrives or if nothing is guaranteed. Pairs also have
        ``observer`` and ``victim``, from 1, ``distance``, ``formula`` and ``label``.
    """
    budget = views["budget"]
    algorithm, problem, network = calibrated(
        *(views[key] for key in ("problem", "network", "algorithm")), Streams(seed, (0,)),
        epsilon=budget["epsilon"], delta=budget["delta"], horizon=views["horizon"],
    )  # fmt: skip
    observed = observation(algorithm, problem, network, views["horizon"])
    rows = list(_ROWS_BY_KIND[views["show"]](observed, views))
    empty = pl.lit(None, pl.Float64)
    fixed = {"algorithm": pl.lit(views["algorithm"]["name"]), "variant": pl.lit(views["show"]),
             "interpretation": pl.lit("resolved"), "runs": pl.lit(1),
             "interval": pl.lit("")}  # fmt: skip
    points = pl.DataFrame(rows, infer_schema_length=None).with_columns(**fixed)
    missing = [name for name in ("low", "high") if name not in points.columns]
    return points.with_columns(**dict.fromkeys(missing, empty))


def _pairs(observed: Observation, views: Mapping[str, Any]) -> Iterator[Row]:
    """Yield the privacy loss of every agent to every other agent."""
    options = {"last_states": observed.last_states}
    observers = [
        OBSERVERS[views["observer"]]((v,), **options) for v in range(observed.network.n_agents)
    ]
    for v, observer in enumerate(observers):
        for u, loss in epsilons(observed, observer, views["budget"]["delta"]).items():
            yield {
                "kind": "pair", "series": "pairs", "observer": v + 1, "target_agent": u + 1,
                "x": float(v + 1), "y": float(u + 1), "distance": int(observed.distances[u, v]),
                "epsilon": loss.guarantee or None, "formula": loss.formula,
                "label": loss.label,
            }  # fmt: skip


def _on_circle(observed: Observation, views: Mapping[str, Any]) -> Iterator[Row]:
    """Yield edges and agents on a circle, with the privacy losses to one agent."""
    n, observing_agent = observed.network.n_agents, views["agent"] - 1
    view = OBSERVERS[views["observer"]]((observing_agent,), last_states=observed.last_states)
    losses = epsilons(observed, view, views["budget"]["delta"])
    x, y, edges = on_circle(observed.network.adjacency)
    for edge in edges:
        yield {"kind": "edge", "series": "links", **edge}
    for u in range(n):
        loss = losses.get(u)
        yield {"kind": "node", "series": "agents", "node": u + 1, "x": x[u], "y": y[u],
               "distance": int(observed.distances[u, observing_agent]),
               "epsilon": (loss.guarantee or None) if loss else None}  # fmt: skip


def _by_distance(observed: Observation, views: Mapping[str, Any]) -> Iterator[Row]:
    """Yield the pairs by distance, their quantiles, and the references."""
    pairs = [{**row, "x": float(row["distance"]), "y": row["epsilon"] or 0.0}
             for row in _pairs(observed, views)]  # fmt: skip
    yield from pairs
    distances = sorted({int(row["distance"]) for row in pairs})
    for d in distances:
        yield _median("median pair", d, [r["y"] for r in pairs if r["distance"] == d])
    for name, values in _references(observed, views).items():
        yield from (_point(name, d, values[d]) for d in distances if d in values)


def _references(observed: Observation, views: Mapping[str, Any]) -> dict[str, dict[int, float]]:
    """Return the epsilons with which pairs are compared, by name and distance."""
    delta, agents = views["budget"]["delta"], observed.network.n_agents
    instance = observed.problem, observed.network, observed.horizon
    eavesdropper_epsilon = epsilon_of(observed.algorithm, delta, *instance)
    distances = sorted({int(d) for d in observed.distances[observed.distances > 0]})
    references = {"every message, the eavesdropper": dict.fromkeys(distances, eavesdropper_epsilon)}
    name = registry_name(observed.algorithm)
    descends = name == "muffliato_gd" and observed.algorithm.rounds == 1
    if name != "muffliato" and not descends:
        return references
    mu = float(gaussian_mu(eavesdropper_epsilon, delta))
    server = float(gaussian_epsilon(mu / np.sqrt(agents - 1), delta))
    references["a server's sum"] = dict.fromkeys(distances, server)
    if descends:
        references |= _guarantees_of_other_losses(observed, delta, distances)
    total, unit = (descent_sum, mu**2 / observed.horizon) if descends else (gossip_sum, mu**2)
    sums = np.array([total(observed.network.mixing, observed.horizon, v) for v in range(agents)])
    middle = {d: np.median(sums[observed.distances == d]) for d in distances}
    references["sum of single messages, no bound"] = {
        d: float(gaussian_epsilon(np.sqrt(unit * value), delta)) for d, value in middle.items()
    }
    return references


def _guarantees_of_other_losses(
    observed: Observation, delta: float, distances: list[int]
) -> dict[str, dict]:
    """Return the guarantee of the worst pair by distance, for gradients of other losses.

    The gradients of every round may change by the same amount.
    """
    algorithm = observed.algorithm
    system = noised_descent(
        observed.network.mixing, observed.horizon, gain=float(algorithm.eta),
        noise=float(algorithm.eta * algorithm.noise.scale), adjacency=observed.network.adjacency,
    )  # fmt: skip
    changes = Free(algorithm.change(observed.problem))
    bounds: dict[str, dict[int, float]] = {CONVEX: {}, ANY: {}}
    for v in range(observed.network.n_agents):
        for u in np.flatnonzero(observed.distances[v] > 0):
            d, view = int(observed.distances[u, v]), Coalition((v,))
            cone = light_cone_bound(system, view, int(u), changes)
            moved = contraction_bound(system, view, int(u), changes, 1.0)
            for kind, mu in ((CONVEX, min(moved, cone)), (ANY, cone)):
                bounds[kind][d] = max(bounds[kind].get(d, 0.0), mu)
    return {
        kind: {d: float(gaussian_epsilon(by[d], delta)) for d in distances if d in by}
        for kind, by in bounds.items()
    }


CONVEX = "any convex smooth loss (F1)"
ANY = "any loss (F0)"


def _over_rounds(observed: Observation, views: Mapping[str, Any]) -> Iterator[Row]:
    """Yield the privacy loss to each kind of observer after each number of rounds."""
    expected = f"whole numbers from 1 to the horizon, {observed.horizon}"
    is_valid = bool(views["rounds"]) and all(1 <= t <= observed.horizon for t in views["rounds"])
    require(is_valid, "privacy_loss.rounds", views["rounds"], expected)
    delta = views["budget"]["delta"]
    for t in views["rounds"]:
        after_t = observation(observed.algorithm, observed.problem, observed.network, t)
        for kind, observers in _observers_by_kind(after_t):
            values = sorted(
                loss.guarantee
                for observer in observers
                for loss in epsilons(after_t, observer, delta).values()
            )
            by_pair = {"worst": values[-1], "median": values[len(values) // 2]}
            for pair in SHOWN[kind]:
                has_several_pairs = len(SHOWN[kind]) > 1
                yield _point(
                    f"{kind}, {pair} pair" if has_several_pairs else kind, t, by_pair[pair]
                )
    yield from _guide(observed, views)
    yield from _last_noise(observed)


def _observers_by_kind(observed: Observation) -> Iterator[tuple[str, list[Observer]]]:
    """Yield the observers by kind: those of the table and further ones.

    Further observers are an eavesdropper with the secrets of an agent, and coalitions of adjacent
    agents.
    """
    yield from kinds(observed)
    n, options = observed.network.n_agents, {"last_states": observed.last_states}
    yield "eavesdropper with an agent's secrets", [Eavesdropper((v,)) for v in range(n)]
    for size in SIZES:
        if n > size:
            groups = sorted({tuple(sorted(nearest(observed, v, size))) for v in range(n)})
            yield f"coalition of {size}", [Coalition(members, **options) for members in groups]


def _guide(observed: Observation, views: Mapping[str, Any]) -> Iterator[Row]:
    """Yield a reference curve, mu proportional to the square root of the rounds.

    It requires equal noise in all rounds, and ends at the loss of an agent to a server's sum.
    """
    if len(_noisy_rounds(observed)) < observed.horizon:
        return
    delta = views["budget"]["delta"]
    instance = observed.problem, observed.network, observed.horizon
    mu = gaussian_mu(epsilon_of(observed.algorithm, delta, *instance), delta)
    last = float(mu) / np.sqrt(observed.network.n_agents - 1)
    for t in views["rounds"]:
        yield _point(GUIDE, t, float(gaussian_epsilon(last * np.sqrt(t / observed.horizon), delta)))


def _last_noise(observed: Observation) -> Iterator[Row]:
    """Yield a mark at the start of the final rounds without noise, if there are any."""
    noisy = _noisy_rounds(observed)
    if noisy and noisy[-1] < observed.horizon:
        yield {"kind": "mark", "series": "no fresh noise from here on", "x": noisy[-1] + 1.0}


def _noisy_rounds(observed: Observation) -> list[int]:
    """Return the rounds with fresh noise, from 1; empty for an algorithm that is not linear."""
    rounds = [] if observed.system is None else observed.system.channels[0].rounds
    return [t for t, round_ in enumerate(rounds, 1) if dense(round_.noise).any()]


def _by_coalition_size(observed: Observation, views: Mapping[str, Any]) -> Iterator[Row]:
    """Yield the privacy loss of one agent by the size of a coalition.

    A mark is at the number of its neighbours: a coalition of all neighbours isolates the agent.
    """
    n, target = observed.network.n_agents, views["agent"] - 1
    near = [u for u in nearest(observed, target, n) if u != target]
    random = generator(0, "coalitions")
    orders = [random.permutation(near) for _ in range(ORDERS)]

    def loss_to(members: Any) -> float:
        """Return the guaranteed epsilon of the agent against a coalition."""
        view = Coalition(tuple(map(int, members)), last_states=observed.last_states)
        return epsilons(observed, view, views["budget"]["delta"], [target])[target].guarantee

    for k in range(1, n):
        yield _point(NEAREST, k, loss_to(near[:k]))
        yield _point(FARTHEST, k, loss_to(near[-k:]))
        yield _median(RANDOM, k, [loss_to(order[:k]) for order in orders])
    neighbours = float(observed.network.adjacency[target].sum())
    yield {"kind": "mark", "series": "all of its neighbours", "x": neighbours}


NEAREST, RANDOM, FARTHEST = "nearest to it", "random, the median", "farthest from it"


def _point(series: str, x: float, y: float, **band: float) -> Row:
    """Return a point of a curve, with ends ``low`` and ``high`` of a band; 0 becomes null."""
    value = float(y) or None
    return {"kind": "line", "series": series, "x": float(x), "y": value, "epsilon": value,
            **{end: float(bound) or None for end, bound in band.items()}}  # fmt: skip


def _median(series: str, x: float, values: Sequence[float]) -> Row:
    """Return the median of some values as a point, with a band from decile to decile."""
    low, middle, high = np.quantile(values, (0.1, 0.5, 0.9), method="nearest")
    return _point(series, x, middle, low=low, high=high)


_ROWS_BY_KIND = {
    "graph": _on_circle,
    "map": _pairs,
    "distance": _by_distance,
    "rounds": _over_rounds,
    "coalitions": _by_coalition_size,
}
