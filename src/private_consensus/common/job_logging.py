"""Log file of a job, with its settings, versions, wall time and the traceback of an error."""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .errors import Diverged, InvalidInput, shortened
from .provenance import versions
from .secrets import RedactingFormatter, redacted
from .usage import measured

MAX_SETTINGS = 500
"""Largest number of characters of a job's settings in its log."""


@contextmanager
def job_logging(
    path: str | Path, settings: Any = None, usage: str | Path | None = None
) -> Generator[None]:
    """Write a log file; an error ends the process with its message or traceback.

    Neither the log nor the output of the process contains secrets. The log has the first
    :data:`MAX_SETTINGS` characters of the settings as JSON. If the job ends normally,
    :func:`.usage.measured` writes time and memory to the file ``usage``. Every error becomes a
    ``SystemExit``, with the message of :class:`.InvalidInput` and :class:`.Diverged`, or the
    traceback of other errors.
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
        with measured(usage):
            yield
    except (InvalidInput, Diverged) as error:
        logging.error("%s", error)
        sys.exit(redacted(str(error)))
    except Exception:
        logging.exception("failed")
        sys.exit(redacted(traceback.format_exc()))
    logging.info("done in %.2f s", time.perf_counter() - begin)
