"""Print results, errors and progress of the commands."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from rich.console import Console
from rich.progress import Progress
from rich.table import Column, Table
from rich.text import Text

from ..api.json_values import to_json
from ..common.errors import one_line, shortened
from ..common.secrets import redacted

OUT = Console()
ERR = Console(stderr=True)
MAX_MESSAGE = 10_000
"""Characters of an error message that are printed."""


def emit(options: Namespace, contents: Mapping[str, object], *output: str | Table) -> None:
    """Print the result of a command as JSON, if ``json`` is set, or as lines and tables."""
    if options.json:
        print(to_json(contents))
        return
    for item in output:
        OUT.print(item) if isinstance(item, Table) else print(item)


def print_error(message: str) -> None:
    """Print one line without secrets and control characters to standard error."""
    line = shortened(redacted(one_line(message)), MAX_MESSAGE)
    print(f"private-consensus: {line}", file=sys.stderr)


@contextmanager
def progress(description: str, total: int | None = None) -> Generator[Callable[..., None]]:
    """Show on a terminal that a computation runs, and yield the function that updates the bar.

    By default, the number of steps is unknown.
    """
    with Progress(console=ERR, transient=True, disable=not ERR.is_terminal) as bar:
        yield partial(bar.update, bar.add_task(description, total=total))


def table(titles: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> Table:
    """Return a table of texts whose cells have no markup, with a caption below."""
    columns = [Column(title, overflow="fold") for title in titles]
    built = Table(*columns, caption=caption or None, caption_justify="left")
    for row in rows:
        built.add_row(*map(Text, row))
    return built
