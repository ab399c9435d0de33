"""Check that prepared data have enough rows for the agents of a cell."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from private_consensus.common.errors import Refused
from private_consensus.common.readable import read_json
from private_consensus.core import problems


def require_rows(cell: Mapping[str, Any], cards: Iterable[str | Path]) -> None:
    """Raise :class:`InvalidInput` if prepared data have fewer rows than a cell needs.

    Data sets without a data card are not checked; their cell raises the error when it runs.

    Parameters
    ----------
    cell : mapping
        One algorithm of one experiment, with all its settings.
    cards : iterable of paths
        Data cards of the cell, as :class:`..datasets.card.Card` writes them.
    """
    cards_by_name = {card.stem: card for card in map(Path, cards) if card.exists()}
    if lines := list(dict.fromkeys(_too_few(cell, cards_by_name))):
        raise Refused(lines)


def _too_few(cell: Mapping[str, Any], cards: Mapping[str, Path]) -> Iterator[str]:
    """Yield one line per setting whose agents need more rows than the data have."""
    contents = {name: read_json(card) for name, card in cards.items()}
    for setting in cell["settings"]:
        problem, agents = setting["problem"], setting["network"]["agents"]
        prepared = problem.get("prepared")
        if prepared not in contents or problem["name"] not in AVAILABLE_ROWS:
            continue
        rows, parts = AVAILABLE_ROWS[problem["name"]](contents[prepared], agents)
        records, max_records = _records(problem), rows // parts
        if records > max_records:
            yield (
                f"{cell['experiment']}.{cell['algorithm']}: problem.records: found {records}, "
                f"expected at most {max_records} for {agents} agents: {cards[prepared]} has "
                f"{contents[prepared]['rows']} rows (delete it to prepare other data)"
            )


AVAILABLE_ROWS = {
    "logistic_regression": lambda card, agents: (card["rows"] - 1, agents),
    "perceptron": lambda card, agents: (card["splits"].get("train", card["rows"]), 1),
}
"""For each problem, a function of the data card and the number of agents. It returns the number of
rows that agents may hold, and the number of parts of ``records`` rows each. Logistic regression
assigns ``records`` rows to each agent and tests on the remaining rows, at least one. The perceptron
divides ``records`` rows of the training split among all agents."""


def _records(problem: Mapping[str, Any]) -> int:
    parameters = inspect.signature(problems.load(problem["name"]).build).parameters
    return problem.get("records", parameters["records"].default)
