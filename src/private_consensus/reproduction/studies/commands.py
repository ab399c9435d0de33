"""Define ``init``, ``check`` and ``reproduce`` of the command line."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from private_consensus.common.errors import InvalidInput
from private_consensus.common.json_values import to_json
from private_consensus.common.secrets import redacted

from .reproduction import reproduce
from .writing import write_study


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Add the three commands with their arguments."""
    init = commands.add_parser("init", help="write a study of your own to a new folder")
    init.add_argument("study", metavar="STUDY", help="new folder; its name names the study")
    init.set_defaults(command=_init)

    check = commands.add_parser("check", help="validate a configuration without running it")
    check.add_argument(
        "path", metavar="PATH", nargs="?", default=".",
        help="folder of a study, or a file of config/papers (default: this folder)",
    )  # fmt: skip
    check.add_argument("--scale", help="scale of the settings (default: that of the configuration)")
    check.set_defaults(command=_check)

    run = commands.add_parser("reproduce", help="compute figures, claims and audits of a study")
    run.add_argument("study", metavar="STUDY", nargs="?", default=".", help="folder of the study")
    run.add_argument("--scale", help="smoke for a small run (default: that of the configuration)")
    run.add_argument("--cores", type=int, default=os.cpu_count() or 1, help="parallel jobs")
    run.set_defaults(command=_reproduce)


def _init(options: argparse.Namespace) -> None:
    """Write a new study, and print its files and the next command."""
    files = [os.path.relpath(path) for path in write_study(options.study)]
    step = f"private-consensus reproduce {options.study} --scale smoke"
    if options.json:
        print(to_json({"files": files, "next": [step]}))
    else:
        print(*files, f"Next: {step}", sep="\n")


def _check(options: argparse.Namespace) -> int:
    """Validate a configuration, and print the counts or the errors."""
    from .checking import check  # with packages of an extra

    try:
        counts, errors = check(options.path, options.scale), []
    except InvalidInput as error:
        counts, errors = {}, [redacted(line) for line in str(error).splitlines()]
    if options.json:
        print(to_json({"valid": not errors, "errors": errors, **counts}))
    elif errors:
        print(*errors, sep="\n")
    else:
        listed = ", ".join(f"{name}: {count}" for name, count in counts.items())
        print(f"The configuration is valid ({listed})")
    return 1 if errors else 0


def _reproduce(options: argparse.Namespace) -> int:
    """Compute a study, and print the last lines of its summary."""
    code = reproduce(options.study, options.scale, options.cores, log_to_stderr=options.json)
    summaries = Path(options.study, "results").glob("*/summary.md")
    from ..report.closing import closing_lines  # with packages of an extra

    newest = None if code else max(summaries, key=os.path.getmtime, default=None)
    lines = [] if newest is None else list(closing_lines(newest.parent))
    if options.json:
        print(to_json({"exit_code": code, "summary": newest, "lines": lines}))
    elif newest is not None:
        print(f"Results: {newest}", *lines, sep="\n")
    return code
