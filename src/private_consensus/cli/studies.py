"""Write, check and compute studies and their configuration files."""

import json
import os
from argparse import Namespace

from ..common.readable import read_json
from ..reproduction.studies import reproduction
from .output import show


def schema(options: Namespace) -> None:
    """Print the JSON schema of a kind of configuration files."""
    from ..reproduction.configuration.schema import schemas

    show(json.dumps(schemas()[options.kind], indent=1))


def init(options: Namespace) -> None:
    """Write a new study, and print its files and the next command."""
    from ..reproduction.studies.writing import write_study

    files = [os.path.relpath(path) for path in write_study(options.study)]
    show(*files, f"Next: private-consensus reproduce {options.study} --scale smoke")


def check(options: Namespace) -> None:
    """Validate a configuration, and print the counts."""
    from ..reproduction.studies import checking

    counts = checking.check(options.path, options.scale)
    listed = ", ".join(f"{name}: {count}" for name, count in counts.items())
    show(f"The configuration is valid ({listed})")


def reproduce(options: Namespace) -> int:
    """Compute a study, and print findings of its audits; return 1 for findings, 2 for errors."""
    results = reproduction.reproduce(options.study, options.scale, options.cores)
    if results is None:
        return 2
    from ..report.reading import closing_lines  # with packages of an extra

    summary, findings = results / reproduction.SUMMARY, results / reproduction.FINDINGS
    lines = read_json(findings) if findings.is_file() else []
    listed = [f"Results: {os.path.relpath(summary)}"] if summary.is_file() else []
    show(*listed, *closing_lines(results, results.glob("raw/*.provenance.json")), *lines)
    return 1 if lines else 0
