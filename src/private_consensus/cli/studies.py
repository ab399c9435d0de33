"""Write, check and compute studies and their configuration files."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from pathlib import Path

from ..common.errors import InvalidInput
from ..common.secrets import redacted
from ..reproduction.studies import reproduction
from .output import emit


def schema(options: Namespace) -> None:
    """Print the JSON schema of a kind of configuration files."""
    from ..reproduction.configuration.schema import schemas

    contents = schemas()[options.kind]
    emit(options, contents, json.dumps(contents, indent=1))


def init(options: Namespace) -> None:
    """Write a new study, and print its files and the next command."""
    from ..reproduction.studies.writing import write_study

    files = [os.path.relpath(path) for path in write_study(options.study)]
    step = f"private-consensus reproduce {options.study} --scale smoke"
    emit(options, {"files": files, "next": [step]}, *files, f"Next: {step}")


def check(options: Namespace) -> int:
    """Validate a configuration, and print the counts or the errors; return 1 for errors."""
    from ..reproduction.studies import checking

    try:
        counts, errors = checking.check(options.path, options.scale), []
    except InvalidInput as error:
        counts, errors = {}, [redacted(line) for line in str(error).splitlines()]
    listed = ", ".join(f"{name}: {count}" for name, count in counts.items())
    lines = errors or [f"The configuration is valid ({listed})"]
    emit(options, {"valid": not errors, "errors": errors, **counts}, *lines)
    return 1 if errors else 0


def reproduce(options: Namespace) -> int:
    """Compute a study, and print the last lines of its summary; return the code of Snakemake."""
    code = reproduction.reproduce(
        options.study, options.scale, options.cores, log_to_stderr=options.json
    )
    from ..report.reading import closing_lines  # with packages of an extra

    summaries = Path(options.study, "results").glob("*/summary.md")
    newest = None if code else max(summaries, key=os.path.getmtime, default=None)
    lines = []
    if newest:
        provenances = newest.parent.glob("raw/*.provenance.json")
        lines = closing_lines(newest.parent, provenances)
    output = [f"Results: {newest}", *lines] if newest else []
    emit(options, {"exit_code": code, "summary": newest, "lines": lines}, *output)
    return code
