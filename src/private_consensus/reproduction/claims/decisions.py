"""Decide which scales of an experiment may decide a claim."""

DECISIVE = "paper"
"""Scale with the runs, grids and data of the papers."""


def may_decide(scale: str) -> bool:
    """Return True if results of a scale may decide a claim, a sentence of advice or a ranking.

    A smaller scale has fewer runs and shorter grids. It shows that the workflow runs, and its
    numbers are shown without a verdict.

    Parameters
    ----------
    scale : str
        Name of the scale, such as ``paper`` or ``smoke``.

    Returns
    -------
    bool
    """
    return scale == DECISIVE
