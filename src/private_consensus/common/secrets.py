"""Redaction of secrets: keys of publishers, and credentials in the URL of a mirror.

Both come from environment variables only, so that no file of a reproduction contains them.
"""

from __future__ import annotations

import logging
import os
import re
from urllib.parse import unquote, urlsplit

from .errors import InvalidInput, require

MIRROR_VARIABLE = "PRIVATE_CONSENSUS_MIRROR"
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
    for secret in _secrets():
        text = text.replace(secret, HIDDEN)
    return CREDENTIALS.sub(rf"\1{HIDDEN}@", text)


def mirror_location(configured: str | None) -> str | None:
    """Return the location of the mirror, from the configuration or from the environment.

    A configured URL from which :func:`redacted` has removed the credentials is replaced by the URL
    of the environment with its credentials. A configured URL with credentials raises
    ``InvalidInput``: command lines and configurations are stored and printed, so that they must not
    contain any.
    """
    environment_value = os.environ.get(MIRROR_VARIABLE) or None
    if not configured or (environment_value and configured == redacted(environment_value)):
        return environment_value
    require(
        not CREDENTIALS.search(configured),
        "data.mirror",
        redacted(configured),
        f"a URL without user and password; {MIRROR_VARIABLE} may hold one with them",
    )
    return configured


class RedactingFormatter(logging.Formatter):
    """Formatter of log records that replaces secrets, also in tracebacks."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of a record without secrets."""
        return redacted(super().format(record))


def _secrets() -> list[str]:
    """Return all secrets, the longest first, so that no part of a longer secret remains."""
    try:
        credentials = urlsplit(os.environ.get(MIRROR_VARIABLE, "")).netloc.rpartition("@")[0]
    except ValueError:  # not a URL
        credentials = ""
    password = credentials.partition(":")[2]
    secrets = {password, unquote(password), *(os.environ.get(variable, "") for variable in KEYS)}
    secrets |= {repr(secret)[1:-1] for secret in secrets} | {secret.strip() for secret in secrets}
    # Shorter texts occur in ordinary words, which must stay readable.
    return sorted((secret for secret in secrets if len(secret) > 3), key=len, reverse=True)
