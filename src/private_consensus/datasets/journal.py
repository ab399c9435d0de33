"""The log file of a job that acquires or prepares data."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from private_consensus.errors import InvalidInput


@contextmanager
def journal(path: str | Path) -> Iterator[None]:
    """Log to ``path``; what the user can mend ends the process with one sentence, not a trace."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(
        filename=path,
        filemode="w",
        level=logging.INFO,
        force=True,
        format="%(asctime)s %(levelname)s %(message)s",
    )
    try:
        yield
    except InvalidInput as error:
        logging.error("%s", error)
        sys.exit(str(error))
    except Exception:
        logging.exception("failed")
        raise
