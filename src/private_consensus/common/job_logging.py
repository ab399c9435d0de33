"""The log file of a job: settings and versions first, wall time last, an error in full."""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .errors import Diverged, InvalidInput, shortened
from .provenance import versions
from .secrets import Discreet, redacted
from .usage import measured

MAX_SETTINGS = 500
"""Characters of a job's settings that its log repeats."""


@contextmanager
def job_logging(
    path: str | Path, settings: Any = None, usage: str | Path | None = None
) -> Iterator[None]:
    """Log to ``path``; what the user can mend ends the process with one sentence, not a trace.

    Whatever is logged, or printed when the process ends, is free of secrets.

    Parameters
    ----------
    path : path
    settings : object, optional
        What the job computes, as JSON; the log has its first :data:`MAX_SETTINGS` characters.
    usage : path, optional
        Where :func:`.usage.measured` writes what a job took that ended well.

    Raises
    ------
    SystemExit
        For every error, with its sentence or its trace.
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    handler = logging.FileHandler(path, mode="w", encoding="utf-8")
    handler.setFormatter(Discreet("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO, force=True, handlers=[handler])
    if settings is not None:
        # Snakemake prints the log of a failed job. Secrets go first: half of one is not recognised.
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
