"""Content of the page of statements: verdicts, computations, and errata with their corrections."""

from collections import defaultdict
from collections.abc import Iterable
from operator import itemgetter

from private_consensus.common.grouping import grouped

from ..reading import Results, Row
from .privacy import variant_words
from .verdicts import ICONS, counts

SEVERITIES = {
    "breaks": "breaks a guarantee", "argument": "proof of a guarantee", "proof": "proof",
    "noise": "excess noise", "ambiguous": "ambiguous", "misprint": "misprint",
}  # fmt: skip
"""Severity of an erratum to its name in the report."""


def page(results: Results) -> dict[str, object]:
    """Collect the content of the page: the statements of each paper, each with its errata."""
    papers = []
    for key, rows in grouped(results.statements, itemgetter("paper")).items():
        statements = [
            {**_statement(same[0]), "errata": [_erratum(r, results) for r in same if r["erratum"]]}
            for same in grouped(rows, itemgetter("number")).values()
        ]
        # Papers that were not run are named by their key.
        papers.append({"key": key, "name": results.names.get(key, key),
                       "counts": [item for item in counts(statements) if item["count"]],
                       "statements": statements})  # fmt: skip
    return {"papers": papers}


def by_claim(rows: Iterable[Row]) -> dict[str, list[dict[str, object]]]:
    """Map each claim to the statements that refer to it."""
    statements = defaultdict(list)
    for same in grouped(rows, itemgetter("paper", "number")).values():
        for line in same[0]["claims"].splitlines():
            statements[line.partition(": ")[0]].append(_statement(same[0]))
    return statements


def _statement(row: Row) -> dict[str, object]:
    return {
        **row,
        "anchor": f"{row['paper']}-{row['number'].lower().replace(' ', '-').replace('.', '-')}",
        "icon": ICONS[row["verdict"]],
    }


def _erratum(row: Row, results: Results) -> dict[str, object]:
    """Describe an erratum with the verdicts on its corrections and the figures with its methods."""
    verdicts = defaultdict(dict)
    for setting in results.privacy:
        verdicts[f"{setting['algorithm']}.{setting['variant']}"][setting["verdict"]] = None
    corrected = row["repaired"].split("; ") if row["repaired"] else []
    affected = set(row["affects"].split("; "))
    drawn = (
        (name, {curve["method"], f"{curve['method']}.{curve['variant']}"})
        for paper in results.papers.values()
        for name, figure in paper["figures"].items()
        for panel in figure["panels"]
        for curve in panel["curves"]
    )
    return {
        **row,
        "severity": SEVERITIES[row["severity"]],
        "figures": list(dict.fromkeys(name for name, names in drawn if names & affected)),
        "corrections": [
            f"{variant_words(name, results)}: "
            f"{', '.join(verdicts[name]) or 'not run at this scale'}"
            for name in corrected
        ],
    }
