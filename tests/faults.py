"""``python -m tests.faults``: the tests of ``docs/faults.yaml``, and what came of each row."""

from __future__ import annotations

import argparse
import datetime
import platform
import re
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest

from private_consensus import yamls
from private_consensus.provenance import write_json
from private_consensus.publishing.manifest import machine
from private_consensus.report import described_commit

ROOT = Path(__file__).parents[1]
HELD, BROKEN, UNTRIED = "held", "did not hold", "not tried"


def main() -> int:
    """Returns 1 where a row does not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/reference/faults.json"))
    options = parser.parse_args()
    rows = yamls.read(ROOT / "docs" / "faults.yaml")
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder, "junit.xml")
        asked = files_of(row["test"] for row in rows)
        pytest.main([*asked, "-k", names(rows), f"--junitxml={told}"])
        found = outcomes(told.read_text(encoding="utf-8"))
    written = [{**about(), **judged(row, found)} for row in rows]
    write_json(options.out, written)
    for row in written:
        print(f"{row['outcome']}: {row['fault']}")
    return int(any(row["outcome"] == BROKEN for row in written))


def names(rows: Iterable[Mapping[str, str]]) -> str:
    """What of the tests is asked for."""
    return " or ".join(sorted({row["test"] for row in rows}))


def files_of(tests: Iterable[str]) -> list[str]:
    """Files of the tests that have a function of one of the names."""
    wanted = set(tests)
    return [
        str(file)
        for file in sorted((ROOT / "tests").rglob("test_*.py"))
        if wanted & set(re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.M))
    ]


def outcomes(xml: str) -> dict[str, list[str]]:
    """What came of each case of a test: nothing, or why it failed or was skipped."""
    found: dict[str, list[str]] = {}
    for case in ElementTree.fromstring(xml).iter("testcase"):
        said = [f"{part.tag}: {part.get('message', '')}" for part in case
                if part.tag in ("failure", "error", "skipped")]  # fmt: skip
        found.setdefault(case.get("name", "").partition("[")[0], []).append("; ".join(said))
    return found


def judged(row: Mapping[str, str], found: Mapping[str, list[str]]) -> dict[str, str]:
    """A row with its outcome: all of its cases passed, one failed, or one was not tried."""
    cases = found.get(row["test"], [])
    skipped = sorted({said for said in cases if said.startswith("skipped")})
    if any(said and not said.startswith("skipped") for said in cases):
        return {"fault": row["fault"], "outcome": BROKEN}
    if skipped or not cases:
        because = "; ".join(said.partition(": ")[2] for said in skipped)
        return {"fault": row["fault"], "outcome": f"{UNTRIED}: {because}" if because else UNTRIED}
    return {"fault": row["fault"], "outcome": HELD}


def about() -> dict[str, str]:
    """When, with what and on what kind of machine."""
    return {
        "commit": described_commit(ROOT),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "python": platform.python_version(),
        "cpu": machine()["processor"],
    }


if __name__ == "__main__":
    sys.exit(main())
