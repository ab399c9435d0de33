"""Redaction of secrets: the key of IPUMS, and credentials in URLs.

The key comes from the environment only, so that no file of a reproduction contains it.
"""

import logging
import os
import re

from .errors import InvalidInput

IPUMS_KEY = "IPUMS_API_KEY"
HIDDEN = "***"
CREDENTIALS = re.compile(r"(?<=:/)(/?)[^\s'\"]*@")
"""Credentials of a URL; a path that was built from a URL has only one slash."""


def ipums_key() -> str | None:
    """Return the key of IPUMS from the environment without surrounding blanks, if there is one.

    A key with a blank or a character that is not allowed in HTTP headers raises ``InvalidInput``,
    whose message does not contain the key.
    """
    key = os.environ.get(IPUMS_KEY, "").strip()
    if not re.fullmatch(r"[!-~]*", key):
        raise InvalidInput(IPUMS_KEY, HIDDEN, "a key of printable ASCII characters without blanks")
    return key or None


def redacted(text: str) -> str:
    """Replace the key in the environment and the credentials in URLs by ``***``."""
    key = os.environ.get(IPUMS_KEY, "")
    # Longer texts first, so that no part of them remains. Short texts occur in ordinary words.
    for secret in (repr(key)[1:-1], key, key.strip()):
        if len(secret) > 3:
            text = text.replace(secret, HIDDEN)
    return CREDENTIALS.sub(rf"\1{HIDDEN}@", text)


class RedactingFormatter(logging.Formatter):
    """Formatter of log records that replaces secrets, also in tracebacks."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of a record without secrets."""
        return redacted(super().format(record))
