"""Redaction of secrets: keys of publishers, and credentials in URLs.

Keys come from environment variables only, so that no file of a reproduction contains them.
"""

import logging
import os
import re

from .errors import InvalidInput

KEYS = ("IPUMS_API_KEY",)
HIDDEN = "***"
CREDENTIALS = re.compile(r"(?<=:/)(/?)[^\s'\"]*@")
"""Credentials of a URL; a path that was built from a URL has only one slash."""


def key_in(variable: str) -> str | None:
    """Return the key in an environment variable; None if it is empty.

    Leading and trailing whitespace is removed. A key with a blank or a character that is not
    allowed in HTTP headers raises ``InvalidInput``, whose message does not contain the key.
    """
    key = os.environ.get(variable, "").strip()
    if not re.fullmatch(r"[!-~]*", key):
        raise InvalidInput(variable, HIDDEN, "a key of printable ASCII characters without blanks")
    return key or None


def redacted(text: str) -> str:
    """Replace the secrets of the environment and the credentials in URLs by ``***``."""
    secrets = {os.environ.get(variable, "") for variable in KEYS}
    secrets |= {repr(secret)[1:-1] for secret in secrets} | {secret.strip() for secret in secrets}
    # Longer texts first, so that no part of them remains. Short texts occur in ordinary words.
    for secret in sorted((s for s in secrets if len(s) > 3), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return CREDENTIALS.sub(rf"\1{HIDDEN}@", text)


class RedactingFormatter(logging.Formatter):
    """Formatter of log records that replaces secrets, also in tracebacks."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of a record without secrets."""
        return redacted(super().format(record))
