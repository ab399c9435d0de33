"""The log file of a job that acquires or prepares data."""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from private_consensus.errors import InvalidInput

from .secrets import Discreet, redacted


@contextmanager
def journal(path: str | Path) -> Iterator[None]:
    """Log to ``path``; what the user can mend ends the process with one sentence, not a trace.

    Whatever is said, in the log and on the way out, is free of secrets.
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    handler = logging.FileHandler(path, mode="w")
    handler.setFormatter(Discreet("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO, force=True, handlers=[handler])
    try:
        yield
    except InvalidInput as error:
        logging.error("%s", error)
        sys.exit(redacted(str(error)))
    except Exception:
        logging.exception("failed")
        sys.exit(redacted(traceback.format_exc()))
