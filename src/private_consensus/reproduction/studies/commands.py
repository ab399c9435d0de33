"""Define ``init`` and ``reproduce`` of the command line."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from private_consensus.common.json_values import to_json

from .reproduction import reproduce
from .writing import write_study


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Add the two commands with their arguments."""
    beginning = commands.add_parser("init", help="write a study of one's own to a new folder")
    beginning.add_argument("study", metavar="STUDY", help="a new folder; its name is the study's")
    beginning.set_defaults(command=_init)

    making = commands.add_parser("reproduce", help="figures, claims, privacy, audits of a study")
    making.add_argument("study", metavar="STUDY", nargs="?", default=".", help="its folder")
    making.add_argument("--scale", help="smoke for the small one (default: the configuration's)")
    making.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    making.set_defaults(command=_reproduce)


def _init(options: argparse.Namespace) -> None:
    files = [os.path.relpath(path) for path in write_study(options.study)]
    step = f"private-consensus reproduce {options.study} --scale smoke"
    if options.json:
        print(to_json({"files": files, "next": [step]}))
    else:
        print(*files, f"Next: {step}", sep="\n")


def _reproduce(options: argparse.Namespace) -> int:
    code = reproduce(options.study, options.scale, options.cores, log_to_stderr=options.json)
    summaries = Path(options.study, "results").glob("*/summary.md")
    from ..report.closing import closing_lines  # with packages of an extra

    newest = None if code else max(summaries, key=os.path.getmtime, default=None)
    lines = [] if newest is None else list(closing_lines(newest.parent))
    if options.json:
        print(to_json({"exit_code": code, "summary": newest, "lines": lines}))
    elif newest is not None:
        print(f"What was found: {newest}", *lines, sep="\n")
    return code
