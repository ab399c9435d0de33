"""Compute verdicts on claims from measurements of runs.

A claim consists of tests (:mod:`.schema`). Each test is a statement about mean measurements:
statistics, and the region in which each has to lie (:mod:`.statements`). Each statistic has a
confidence interval over runs (:mod:`.intervals`). Compared series use the same random numbers, so
that comparisons are paired. The intervals determine the verdict and the number of runs that
would decide (:mod:`.judging`). :mod:`.differences` names the settings that differ from those of the
paper, and :mod:`.words` defines the names of verdicts.
"""

from .differences import differences
from .judging import evaluate
from .schema import Claim, Series, Test
from .table import adjusted, judge_all

__all__ = [
    "Claim",
    "Series",
    "Test",
    "adjusted",
    "differences",
    "evaluate",
    "judge_all",
]
