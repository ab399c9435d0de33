"""Run the tests of ``docs/faults.yaml`` and tabulate the outcomes: ``python -m tests.faults``."""

from __future__ import annotations

import argparse
import datetime
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from xml.etree import ElementTree

from private_consensus.common import yamls
from private_consensus.common.provenance import write_json
from private_consensus.common.readable import read_json
from private_consensus.reproduction.publishing.manifest import machine
from private_consensus.reproduction.report import described_commit

ROOT = Path(__file__).parents[1]
HELD, BROKEN, UNTRIED = "held", "did not hold", "not tried"


def main() -> int:
    """Run the tests of all rows and return 1 if a row fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("tests", nargs="*", help="of these rows alone; others stay as they were")
    parser.add_argument("--out", type=Path, default=Path("results/reference/faults.json"))
    parser.add_argument("--cores", type=int, default=1)
    options = parser.parse_args()
    rows = yamls.read(ROOT / "docs" / "faults.yaml")
    if unknown := set(options.tests) - {row["test"] for row in rows}:
        parser.error(f"no row names {', '.join(sorted(unknown))}")
    asked = [row for row in rows if not options.tests or row["test"] in options.tests]
    found = tried((row["test"] for row in asked), options.cores)
    earlier = read_json(options.out) if options.tests and options.out.exists() else []
    known = {row["fault"]: row for row in earlier}
    known |= {row["fault"]: {**about(), **judged(row, found)} for row in asked}
    write_json(options.out, [known[row["fault"]] for row in rows if row["fault"] in known])
    for row in asked:
        print(f"{known[row['fault']]['outcome']}: {row['fault']}")
    return int(any(known[row["fault"]]["outcome"] == BROKEN for row in asked))


def tried(tests: Iterable[str], cores: int) -> dict[str, list[str]]:
    """Run tests in a new process and return the outcomes of their cases.

    The result is that of :func:`outcomes`, and empty if pytest did not end.

    In a process of its own: tests fork from one that has imported nothing of the project.
    """
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder, "junit.xml")
        shared = ["-n", str(cores), "--dist", "loadfile", "--no-loadscope-reorder"]
        more = [*(shared if cores > 1 else ()), f"--junitxml={told}"]
        subprocess.run([sys.executable, "-m", "pytest", *places(tests), *more], cwd=ROOT)
        return outcomes(told.read_text(encoding="utf-8")) if told.exists() else {}


def places(tests: Iterable[str]) -> list[str]:
    """Return the files and names of tests in the form in which pytest selects them."""
    wanted = set(tests)
    return [
        f"{file}::{name}"
        for file in sorted((ROOT / "tests").rglob("test_*.py"))
        for name in re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.M)
        if name in wanted
    ]


def outcomes(xml: str) -> dict[str, list[str]]:
    """Return the message of each case of each test: empty if it passed, or failure or skip."""
    found: dict[str, list[str]] = {}
    for case in ElementTree.fromstring(xml).iter("testcase"):
        said = [f"{part.tag}: {part.get('message', '')}" for part in case
                if part.tag in ("failure", "error", "skipped")]  # fmt: skip
        found.setdefault(case.get("name", "").partition("[")[0], []).append("; ".join(said))
    return found


def judged(row: Mapping[str, str], found: Mapping[str, list[str]]) -> dict[str, str]:
    """Return a row of the table with its outcome: passed, failed or not tried."""
    cases = found.get(row["test"], [])
    skipped = sorted({said for said in cases if said.startswith("skipped")})
    if any(said and not said.startswith("skipped") for said in cases):
        return {"fault": row["fault"], "outcome": BROKEN}
    if skipped or not cases:
        because = "; ".join(said.partition(": ")[2] for said in skipped)
        return {"fault": row["fault"], "outcome": f"{UNTRIED}: {because}" if because else UNTRIED}
    return {"fault": row["fault"], "outcome": HELD}


def about() -> dict[str, str]:
    """Return the commit, the date, the versions and the machine of this run."""
    return {
        "commit": described_commit(ROOT),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "python": platform.python_version(),
        "cpu": machine()["processor"],
    }


if __name__ == "__main__":
    sys.exit(main())
