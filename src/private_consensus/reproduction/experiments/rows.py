"""Check that prepared data have as many rows as a cell assigns to its agents."""

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

    Data without a card are not checked here; their cell reports the error when it runs.

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
        if prepared not in contents or problem["name"] not in DEALT:
            continue
        rows, shares = DEALT[problem["name"]](contents[prepared], agents)
        records, max_records = _records(problem), rows // shares
        if records > max_records:
            yield (
                f"{cell['experiment']}.{cell['algorithm']}: problem.records: found {records}, "
                f"expected at most {max_records} for {agents} agents: {cards[prepared]} has "
                f"{contents[prepared]['rows']} rows (delete it to prepare other data)"
            )


DEALT = {
    "logistic_regression": lambda card, agents: (card["rows"] - 1, agents),
    "perceptron": lambda card, agents: (card["splits"].get("train", card["rows"]), 1),
}
"""By problem, rows of a card that agents may have, and how often ``records`` of them are assigned,
as its ``build`` has it. Logistic regression tests on what is left, one row at least, whatever the
splits; the perceptron is given the records of all agents together, and tests on a split."""


def _records(problem: Mapping[str, Any]) -> int:
    parameters = inspect.signature(problems.load(problem["name"]).build).parameters
    return problem.get("records", parameters["records"].default)
