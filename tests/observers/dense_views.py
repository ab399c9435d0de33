"""Graphs for tests, and a brute-force mu by exact elimination, independent of the library."""

from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np


def graph(n, links):
    adjacency = np.zeros((n, n), dtype=bool)
    for i, j in links:
        adjacency[i, j] = adjacency[j, i] = True
    return adjacency


def path(n):
    return graph(n, pairwise(range(n)))


def ring(n):
    return graph(n, [(i, (i + 1) % n) for i in range(n)])


def star(n):
    return graph(n, [(0, i) for i in range(1, n)])


def complete(n):
    return graph(n, combinations(range(n), 2))


def lopsided():
    """Return an asymmetric graph of seven agents: a triangle with a tail and a branch."""
    return graph(7, [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (3, 6)])


def metropolis(adjacency):
    """Return the weights 1/(1 + max degree) as exact fractions."""
    n, degrees = len(adjacency), adjacency.sum(1)
    weights = [
        [Fraction(int(adjacency[i, j]), 1 + int(max(degrees[i], degrees[j]))) for j in range(n)]
        for i in range(n)
    ]
    for i in range(n):
        weights[i][i] = 1 - sum(weights[i])
    return weights


def floats(weights):
    return np.array([[float(w) for w in row] for row in weights])


def energy(seen_noise, seen_change):
    """Return min |delta|^2 subject to B delta = a, by exact elimination; None if infeasible.

    Rows are lists of fractions.
    """
    k = len(seen_noise)
    system = [
        [sum(x * y for x, y in zip(seen_noise[i], seen_noise[j], strict=True)) for j in range(k)]
        + [seen_change[i]]
        for i in range(k)
    ]
    pivots, row = [], 0
    for column in range(k):
        pivot = next((r for r in range(row, k) if system[r][column] != 0), None)
        if pivot is None:
            continue
        system[row], system[pivot] = system[pivot], system[row]
        system[row] = [value / system[row][column] for value in system[row]]
        for r in range(k):
            if r != row and system[r][column] != 0:
                factor = system[r][column]
                system[r] = [x - factor * y for x, y in zip(system[r], system[row], strict=True)]
        pivots.append((row, column))
        row += 1
    if any(system[r][k] != 0 for r in range(row, k)):
        return None
    return sum(system[r][k] * seen_change[c] for r, c in pivots)


def descent_rows(weights, horizon, changes, victim, *, gains=None, noises=None, unknown=None):
    """Return the noise coefficients and the change of each message, by running the loop.

    ``unknown`` agents have noise that counts. Indexed [t][agent].
    """
    n = len(weights)
    unknown = set(range(n)) if unknown is None else set(unknown)
    gains, noises = gains or [1] * horizon, noises or [1] * horizon
    state = [([Fraction(0)] * (n * horizon), Fraction(0)) for _ in range(n)]
    rows = []
    for t in range(horizon):
        mixed = []
        for i in range(n):
            noise = [
                sum(weights[i][j] * state[j][0][q] for j in range(n)) for q in range(n * horizon)
            ]
            moved = sum(weights[i][j] * state[j][1] for j in range(n))
            if i in unknown:
                noise[t * n + i] += noises[t]
            if i == victim:
                moved += gains[t] * changes[t]
            mixed.append((noise, moved))
        state = mixed
        rows.append(state)
    return rows


def brute_force(weights, horizon, changes, victim, observed, known_agents=(), **options):
    """Return mu^2 of an observer of the messages of agents ``observed``, or of weighted sums.

    ``observed`` lists agents or mappings from agents to weights.
    """
    unknown = set(range(len(weights))) - set(known_agents)
    rows = descent_rows(weights, horizon, changes, victim, unknown=unknown, **options)
    noise, moved = [], []
    for state in rows:
        for agent_or_weights in observed:
            agent_weights = (
                agent_or_weights
                if isinstance(agent_or_weights, dict)
                else {agent_or_weights: Fraction(1)}
            )
            noise.append(
                [
                    sum(w * state[j][0][q] for j, w in agent_weights.items())
                    for q in range(len(state[0][0]))
                ]
            )
            moved.append(sum(w * state[j][1] for j, w in agent_weights.items()))
    return energy(noise, moved)


def rational(matrix):
    matrix = matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix)
    convert = np.vectorize(lambda x: Fraction(float(x)).limit_denominator(10**5), otypes=[object])
    return convert(matrix) if matrix.size else np.zeros(matrix.shape, dtype=object)


def forward_view(system, observer, victim):
    """Return the noise coefficients and the response to a change of 1 in every round.

    Computed by running the rounds.
    """
    horizon, noises = system.horizon, len(system.rounds[0].owners)
    columns = []
    for t in range(horizon):
        for k in range(noises):
            z = [[Fraction(0)] * noises for _ in range(horizon)]
            z[t][k] = Fraction(1)
            columns.append(_forward(system, observer, z, None))
    z = [[Fraction(0)] * noises for _ in range(horizon)]
    return [list(row) for row in zip(*columns, strict=True)], _forward(system, observer, z, victim)


def _forward(system, observer, z, victim):
    state = np.zeros(system.rounds[0].transition.shape[0], dtype=object)
    inputs = np.zeros(system.n_agents, dtype=object)
    if victim is not None:
        inputs[victim] = Fraction(1)
    received = []
    for round_, drawn in zip(system.rounds, z, strict=True):
        unknown = np.array(drawn, dtype=object) * observer.unknown(round_)
        now = (state, inputs, unknown)
        state_matrices = (round_.transition, round_.inputs, round_.noise)
        message_matrices = (round_.message_transition, round_.message_inputs, round_.message_noise)
        message = sum(rational(m).dot(x) for m, x in zip(message_matrices, now, strict=True))
        state = sum(rational(m).dot(x) for m, x in zip(state_matrices, now, strict=True))
        received += list(rational(observer.rows(round_)).dot(message))
    final = observer.final_rows(system)
    return received + (
        list(rational(final).dot(rational(system.output).dot(state))) if len(final) else []
    )
