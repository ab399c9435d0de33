"""Redaction of secrets: keys of publishers, and credentials in the URL of a mirror.

Both are taken from the environment only, where no file of a reproduction repeats them.
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
"""A path that was made of a URL has one slash."""


def key_in(variable: str) -> str | None:
    """The key that a variable of the environment holds; none where it is empty.

    Blanks and line ends around it, as an env file with other line ends leaves them, are no part
    of it.

    Raises
    ------
    InvalidInput
        If a blank or a character that no HTTP header may hold is within the key. The message does
        not contain it.
    """
    key = os.environ.get(variable, "").strip()
    if not re.fullmatch(r"[!-~]*", key):
        raise InvalidInput(variable, HIDDEN, "a key of printable ASCII characters without blanks")
    return key or None


def redacted(text: str) -> str:
    """A text without the secrets of the environment and without credentials in URLs."""
    for secret in _secrets():
        text = text.replace(secret, HIDDEN)
    return CREDENTIALS.sub(rf"\1{HIDDEN}@", text)


def mirror_location(configured: str | None) -> str | None:
    """The mirror that is named, or else the environment's, which alone may have credentials.

    A URL that came out of :func:`redacted` gets them again.

    Raises
    ------
    InvalidInput
        If a URL with credentials is named elsewhere: command lines and configurations are kept
        and shown in many places.
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


class Discreet(logging.Formatter):
    """Formats records, tracebacks included, without secrets."""

    def format(self, record: logging.LogRecord) -> str:
        """The line or lines of a record."""
        return redacted(super().format(record))


def _secrets() -> list[str]:
    """Longest first, so that no part of one is left over."""
    try:
        credentials = urlsplit(os.environ.get(MIRROR_VARIABLE, "")).netloc.rpartition("@")[0]
    except ValueError:  # no URL at all
        credentials = ""
    password = credentials.partition(":")[2]
    secrets = {password, unquote(password), *(os.environ.get(variable, "") for variable in KEYS)}
    secrets |= {repr(secret)[1:-1] for secret in secrets} | {secret.strip() for secret in secrets}
    # Shorter ones are part of too many words, and keep nothing safe.
    return sorted((secret for secret in secrets if len(secret) > 3), key=len, reverse=True)
