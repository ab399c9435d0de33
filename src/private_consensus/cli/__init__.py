"""Run, audit and compare algorithms from the command line."""

import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from ..common.errors import InvalidInput
from .parser import build_parser

MAX_LINES = 20
"""Errors of one configuration that are printed; the others are counted."""
OPTIONAL = frozenset(
    ("PIL", "ipumspy", "jinja2", "pooch", "requests", "sklearn", "snakemake", "typst", "vl_convert")
)
"""Import names of the packages of the extra ``workflow``."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command of ``private-consensus`` and return its exit code.

    The code is 0 without errors and 2 for errors. It is 1 if ``compare`` finds changed numbers, or
    ``audit`` or ``reproduce`` evidence against a claim.
    """
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.encoding.lower() != "utf-8":
        sys.stdout.reconfigure(errors="backslashreplace")
    parser = build_parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 0
    # Imported here, so that the help is printed without delay.
    from .output import print_error

    try:
        module, function = options.command.split(".")
        code = getattr(import_module(f".{module}", __package__), function)(options) or 0
        sys.stdout.flush()
        return code
    except InvalidInput as error:
        lines = str(error).splitlines()
        if len(lines) > MAX_LINES:
            lines = [*lines[:MAX_LINES], f"and {len(lines) - MAX_LINES} more"]
        for line in lines:
            print_error(line)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in OPTIONAL:
            raise
        print_error(f"{error.name} is not installed: install the package with its extra [workflow]")
    except MemoryError as error:
        print_error(f"not enough memory: {error}")
    except BrokenPipeError:  # a command such as head has closed the output
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        text = f"Cannot access {error.filename}: {error.strerror}"
        print_error(str(error) if error.filename is None else text)
    return 2
