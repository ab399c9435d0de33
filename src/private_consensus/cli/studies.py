"""Write, check and compute studies and their configuration files."""

import json
import os
from argparse import Namespace
from pathlib import Path

from ..common.errors import InvalidInput
from ..common.secrets import redacted
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


def check(options: Namespace) -> int:
    """Validate a configuration, and print the counts or the errors; return 1 for errors."""
    from ..reproduction.studies import checking

    try:
        counts = checking.check(options.path, options.scale)
    except InvalidInput as error:
        show(*map(redacted, str(error).splitlines()))
        return 1
    listed = ", ".join(f"{name}: {count}" for name, count in counts.items())
    show(f"The configuration is valid ({listed})")
    return 0


def reproduce(options: Namespace) -> int:
    """Compute a study, and print the last lines of its summary; return the code of Snakemake."""
    code = reproduction.reproduce(options.study, options.scale, options.cores)
    from ..report.reading import closing_lines  # with packages of an extra

    summaries = Path(options.study, "results").glob("*/summary.md")
    newest = None if code else max(summaries, key=os.path.getmtime, default=None)
    if newest:
        provenances = newest.parent.glob("raw/*.provenance.json")
        show(f"Results: {newest}", *closing_lines(newest.parent, provenances))
    return code
