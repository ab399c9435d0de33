"""Verdicts on claims, from measurements of runs.

A claim becomes tests (:mod:`.schema`), each a statement about mean measurements: statistics with a
region in which the claim is true (:mod:`.statements`). Each gets an interval over runs, the same
runs for all curves, so that comparisons stay paired (:mod:`.intervals`); from these follow the
verdict, the number of runs that would decide and the tolerance at which it would be another
(:mod:`.judging`), in the words of :mod:`.words`.
"""

from .judging import Element, Verdict, evaluate
from .schema import Claim, Kind, Quantifier, Series, Test
from .table import judge_all
from .words import HELD, IN_PART, MEANINGS, NOT_HELD, UNDECIDED, UNTESTABLE, VERDICTS

__all__ = [
    "HELD",
    "IN_PART",
    "MEANINGS",
    "NOT_HELD",
    "UNDECIDED",
    "UNTESTABLE",
    "VERDICTS",
    "Claim",
    "Element",
    "Kind",
    "Quantifier",
    "Series",
    "Test",
    "Verdict",
    "evaluate",
    "judge_all",
]
