"""Cite papers by authors and year."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_YEAR = re.compile(r"\b(?:19|20)\d\d\b")


def cited(paper: Mapping[str, Any]) -> str:
    """Return the citation of a paper, such as "Wang et al. 2022"; without authors its short title.

    Parameters
    ----------
    paper : mapping
        Authors, venue with the year, and titles, as :class:`.schema.PaperInfo` serializes them.

    Returns
    -------
    str
        Citation without the title of the paper.
    """
    names = [author.split()[-1] for author in paper["authors"]]
    if not names:
        return paper.get("short_title") or paper["title"]
    authors = " and ".join(names) if len(names) < 3 else f"{names[0]} et al."
    return " ".join([authors, *_YEAR.findall(paper["venue"])[-1:]])
