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
from private_consensus.publishing.manifest import machine
from private_consensus.report import described_commit

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
    selected_rows = [row for row in rows if not options.tests or row["test"] in options.tests]
    outcomes_by_test = tried((row["test"] for row in selected_rows), options.cores)
    earlier = read_json(options.out) if options.tests and options.out.exists() else []
    recorded = {row["fault"]: row for row in earlier}
    recorded |= {
        row["fault"]: {**about(), **judged(row, outcomes_by_test)} for row in selected_rows
    }
    write_json(options.out, [recorded[row["fault"]] for row in rows if row["fault"] in recorded])
    for row in selected_rows:
        print(f"{recorded[row['fault']]['outcome']}: {row['fault']}")
    return int(any(recorded[row["fault"]]["outcome"] == BROKEN for row in selected_rows))


def tried(tests: Iterable[str], cores: int) -> dict[str, list[str]]:
    """Run tests in a new process and return the outcomes of their cases.

    The result is that of :func:`outcomes`, and empty if pytest did not end.

    The new process is needed because tests fork from a process without imports of the project.
    """
    with tempfile.TemporaryDirectory() as folder:
        report_path = Path(folder, "junit.xml")
        shared = ["-n", str(cores), "--dist", "loadfile", "--no-loadscope-reorder"]
        options = [*(shared if cores > 1 else ()), f"--junitxml={report_path}"]
        subprocess.run([sys.executable, "-m", "pytest", *places(tests), *options], cwd=ROOT)
        return outcomes(report_path.read_text(encoding="utf-8")) if report_path.exists() else {}


def places(tests: Iterable[str]) -> list[str]:
    """Return the files and names of tests in the form in which pytest selects them."""
    test_names = set(tests)
    return [
        f"{file}::{name}"
        for file in sorted((ROOT / "tests").rglob("test_*.py"))
        for name in re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.M)
        if name in test_names
    ]


def outcomes(xml: str) -> dict[str, list[str]]:
    """Return the message of each case of each test: empty if it passed, or failure or skip."""
    messages: dict[str, list[str]] = {}
    for case in ElementTree.fromstring(xml).iter("testcase"):
        problems = [f"{element.tag}: {element.get('message', '')}" for element in case
                    if element.tag in ("failure", "error", "skipped")]  # fmt: skip
        messages.setdefault(case.get("name", "").partition("[")[0], []).append("; ".join(problems))
    return messages


def judged(row: Mapping[str, str], messages_by_test: Mapping[str, list[str]]) -> dict[str, str]:
    """Return a row of the table with its outcome: passed, failed or not tried."""
    cases = messages_by_test.get(row["test"], [])
    skipped = sorted({message for message in cases if message.startswith("skipped")})
    if any(message and not message.startswith("skipped") for message in cases):
        return {"fault": row["fault"], "outcome": BROKEN}
    if skipped or not cases:
        because = "; ".join(message.partition(": ")[2] for message in skipped)
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
