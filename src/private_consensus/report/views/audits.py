"""Content of the page of audits: audits of the algorithms, and of algorithms with faults."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..reading import Results
from . import errata, mutants


def page(results: Results) -> dict[str, Any]:
    """Collect the content of the page of audits."""
    rows = errata.audits(results.audit.get("audits", []))
    outcomes = Counter((row["verdict"], row["icon"]) for row in rows if row["copy"] == "correct")
    return {
        "audits": rows,
        "outcomes": [
            {"verdict": verdict, "icon": icon, "count": count}
            for (verdict, icon), count in outcomes.most_common()
        ],
        "mutants": mutants.audit_counts(results.audit.get("mutants", [])),
    }
