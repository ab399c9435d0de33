"""Log file of a job (settings, versions, traceback of an error), and file of time and memory."""

import json
import logging
import resource
import sys
import time
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .errors import Diverged, InvalidInput, shortened
from .provenance import versions, write_text
from .secrets import RedactingFormatter, redacted

MAX_SETTINGS = 500
"""Largest number of characters of a job's settings in its log."""
TITLES = ("s", "cpu_time", "max_rss")
"""Columns of the table: wall seconds, CPU seconds, and peak memory in MB."""
_BYTES = 1 if sys.platform == "darwin" else 1024
"""Bytes per unit in which the operating system counts memory."""


@contextmanager
def job_logging(path: str | Path, settings: Any = None) -> Generator[None]:
    """Write a log file; an error ends the process with its message or traceback.

    Neither the log nor the output of the process contains secrets. The log has the first
    :data:`MAX_SETTINGS` characters of the settings as JSON. If the job ends normally,
    :func:`measured` writes time and memory to a file next to the log, with the suffix ``.tsv``.
    Every error becomes a ``SystemExit``, with the message of :class:`.InvalidInput` and
    :class:`.Diverged`, or the traceback of other errors.
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    handler = logging.FileHandler(path, mode="w", encoding="utf-8")
    handler.setFormatter(RedactingFormatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO, force=True, handlers=[handler])
    if settings is not None:
        # Secrets are removed before the text is shortened: half of a secret is not recognised.
        text = redacted(json.dumps(settings, sort_keys=True, default=str))
        logging.info("settings %s", shortened(text, MAX_SETTINGS))
    logging.info("versions %s", versions())
    begin = time.perf_counter()
    try:
        with measured(Path(path).with_suffix(".tsv")):
            yield
    except (InvalidInput, Diverged) as error:
        logging.error("%s", error)
        sys.exit(redacted(str(error)))
    except Exception:
        logging.exception("failed")
        sys.exit(redacted(traceback.format_exc()))
    logging.info("done in %.2f s", time.perf_counter() - begin)


@contextmanager
def measured(path: Path) -> Generator[None]:
    """Write time and memory of this process if the context ends without an error.

    CPU seconds and peak memory are the counts of the operating system since the start of this
    process, with imports and with finished child processes. Wall seconds are those of the context.
    The file has one row with the columns ``TITLES``.
    """
    begin = time.perf_counter()
    yield
    row = (time.perf_counter() - begin, *used())
    lines = ("\t".join(TITLES), "\t".join(f"{number:.2f}" for number in row))
    write_text(path, "\n".join(lines) + "\n")


def used() -> tuple[float, float]:
    """Return CPU seconds and peak memory in MB of this process and its finished children."""
    usages = [
        resource.getrusage(owner) for owner in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    ]
    seconds = sum(usage.ru_utime + usage.ru_stime for usage in usages)
    return seconds, max(usage.ru_maxrss for usage in usages) * _BYTES / 2**20
