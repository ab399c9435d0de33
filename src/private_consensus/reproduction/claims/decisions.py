"""Scales whose results may decide claims, advice and rankings."""

DECISIVE = "paper"
"""Scale with the numbers of runs, the grids and the data of the papers."""


def may_decide(scale: str) -> bool:
    """Return True if results of a scale may decide a claim, a sentence of advice or a ranking.

    A smaller scale has fewer runs and shorter grids. It only tests the workflow; its numbers are
    reported without verdicts.

    Parameters
    ----------
    scale : str
        Name of the scale, such as ``paper`` or ``smoke``.

    Returns
    -------
    bool
    """
    return scale == DECISIVE
