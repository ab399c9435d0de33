"""The audits: executions of algorithms on neighbouring data sets, and the audits of faults."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..reading import Results
from . import errata, mutants


def page(results: Results) -> dict[str, Any]:
    """Collect the content of the page of audits."""
    rows = errata.audits(results.audit.get("audits", []))
    outcomes = Counter((row["word"], row["look"]) for row in rows if row["copy"] == "correct")
    return {
        "audits": rows,
        "outcomes": [
            {"verdict": word, "look": look, "count": count}
            for (word, look), count in outcomes.most_common()
        ],
        "mutants": mutants.bench(results.audit.get("mutants", [])),
    }
