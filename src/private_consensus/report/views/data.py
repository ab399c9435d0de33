"""Content of the page of data sets."""

from operator import itemgetter

from private_consensus.common.grouping import grouped
from private_consensus.reproduction.data.catalogue import DATA_SETS, entry

from ..reading import Results


def page(results: Results) -> dict[str, object]:
    """Collect the data sets with their origin, and the cards of their preparations."""
    by_origin = grouped(results.cards, itemgetter("dataset", "source", "checksum"))
    return {
        "data_sets": [
            {
                **cards[0],
                "surrogate": cards[0]["source"] == "surrogate",
                "needs": entry(name).needs if name in DATA_SETS else "",
                "preparations": cards,
            }
            for (name, *_), cards in by_origin.items()
        ]
    }
