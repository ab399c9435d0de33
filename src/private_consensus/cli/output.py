"""Print results, errors and progress of the commands."""

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress
from rich.table import Column, Table
from rich.text import Text

from ..common.errors import one_line, shortened
from ..common.secrets import redacted

OUT = Console()
ERR = Console(stderr=True)
MAX_MESSAGE = 10_000
"""Characters of an error message that are printed."""


def show(*output: object) -> None:
    """Print the result of a command: tables, and lines without markup."""
    for item in output:
        OUT.print(item) if isinstance(item, Table) else print(item)


def print_error(message: str) -> None:
    """Print one line without secrets and control characters to standard error."""
    line = shortened(redacted(one_line(message)), MAX_MESSAGE)
    print(f"private-consensus: {line}", file=sys.stderr)


@contextmanager
def progress(description: str) -> Generator[Callable[[int, int], None]]:
    """Show on a terminal that a computation runs.

    The yielded function takes the number of finished steps and of all steps.
    """
    with Progress(console=ERR, transient=True, disable=not ERR.is_terminal) as bar:
        task = bar.add_task(description, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def table(titles: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> Table:
    """Return a table of texts whose cells have no markup, with a caption below."""
    columns = [Column(title, overflow="fold") for title in titles]
    built = Table(*columns, caption=caption or None, caption_justify="left")
    for row in rows:
        built.add_row(*map(Text, row))
    return built
