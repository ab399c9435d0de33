"""Sparse vector technique: noisy threshold tests with a privacy cost per answer "above".

References
----------
Lyu, Su, Li, "Understanding the sparse vector technique for differential privacy", PVLDB 2017:
Algorithm 7, whose case of two equal budgets and no numeric answers is Algorithm 1.
"""

import math

from private_consensus.common.errors import arguments

from .releases import MAX_COUNT, Release

REDRAWS = ("once", "after_release", "each")


def sparse_vector_scales(epsilon: float, *, sensitivity: float, count: int) -> tuple[float, float]:
    r"""Return the Laplace scales of threshold and queries that cost a pure ``epsilon`` in total.

    The threshold's noise is sampled once, the noise of each query separately. With c = ``count``
    and sensitivity :math:`\Delta` the scales are :math:`\Delta/\epsilon_1` and
    :math:`2c\Delta/\epsilon_2`. The parts :math:`\epsilon_1 : \epsilon_2 = 1 : (2c)^{2/3}` have the
    smallest variance of the difference of both noises.

    The sensitivity is that of each query, given all earlier answers. A query that uses an
    unreleased value computed from the data has no such bound.
    """
    for key, value in {"epsilon": epsilon, "sensitivity": sensitivity}.items():
        key, expected = f"sparse_vector.{key}", "a finite number above 0"
        arguments.number(key, value, expected, lambda v: 0 < v < math.inf)
    arguments.whole("sparse_vector.count", count, 1, MAX_COUNT)
    threshold_epsilon = epsilon / (1 + (2 * count) ** (2 / 3))
    query_epsilon = epsilon - threshold_epsilon
    return sensitivity / threshold_epsilon, 2 * count * sensitivity / query_epsilon


def sparse_vector_release(
    sensitivity: float,
    threshold_scale: float,
    query_scale: float,
    *,
    count: int,
    tests: int,
    redrawn: str,
) -> Release:
    r"""Return the release of noisy threshold tests that stop after ``count`` answers "above".

    The sensitivity is :math:`\Delta`, the Laplace scales of threshold and queries are :math:`s_1,
    s_2` (0 for no noise), and there are at most c answers "above" and T tests. The noise of the
    threshold is sampled

    ``once``
        before the first test: :math:`\Delta/s_1 + 2c\Delta/s_2`. Increase the noise of the
        threshold by :math:`\Delta`, at the cost :math:`\Delta/s_1`. Each "below" is then at least
        as likely on the neighbouring data, and each "above" needs a change of its query's noise by
        at most :math:`2\Delta`.
    ``after_release``
        again after each "above": :math:`c\,(\Delta/s_1 + 2\Delta/s_2)`. Between two draws this is
        the case above with one "above". After the c-th no test is made, so that there are at most c
        draws.
    ``each``
        before every test: :math:`T\Delta/\max(s_1, s_2)`. Every answer depends on a query with both
        noises, of which the larger one is changed by :math:`\Delta`. There are T pure releases.
    """
    arguments.choice("sparse_vector.redrawn", redrawn, REDRAWS)
    threshold, query = (
        sensitivity / scale if scale > 0 else math.inf for scale in (threshold_scale, query_scale)
    )
    if redrawn == "each":
        return Release("pure", epsilon=min(threshold, query), count=tests)
    draws = count if redrawn == "after_release" else 1
    return Release("pure", epsilon=draws * threshold + 2 * count * query)
