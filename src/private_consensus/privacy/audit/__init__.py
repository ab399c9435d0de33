"""Statistics that can contradict a privacy claim; none of them can prove one.

Confidence and delta are parameters of every call and fields of every result, without defaults.

:mod:`.claims`
    (epsilon, delta)-DP, mu-GDP and privacy profiles as constraints on the two rates of an event.
:mod:`.bounds`
    ``mu_bound``: mu from the rates of one event; ``Bound``, whose ``p_value`` is that of a claim.
:mod:`.statistics`
    ``audit_statistics``: cross-fitted bounds that hold simultaneously, for given and for learned
    statistics. The learned statistics are linear discriminants and classifiers
    (:mod:`.distinguishers`), and values that repeat (:mod:`.atoms`).
:mod:`.noise`
    ``noise_test``: recovered noise against its declared distribution and scale, in all groups, and
    for freshness and independence.
:mod:`.sequential`
    ``planned_looks`` at which an audit may stop early and keep its level; ``detectable_epsilon`` is
    the largest claim that a number of runs can contradict.
:mod:`.families`
    ``claim_p_value`` of an audit, and ``holm`` for a table of them.

Rows are independent runs of the same algorithm, on data set D or on its neighbour D'.
Everything selected from outcomes (statistic, direction, threshold) is selected on some rows and
tested on others, so that the stated confidence includes the selection. No statistic needs a known
distribution: mu-GDP and (epsilon, delta)-DP bound the rates of every event.

To contradict a claim of (epsilon, delta) at a tiny delta, an audit needs very many runs. The
releases from which the claim was computed also give an epsilon at a larger delta, and a mu or a
profile. These claims are easier to test.

Measured by ``benchmarks/audit_rates.py`` on a mechanism that is exactly 1-GDP (six messages of
three coordinates, 4,000 runs of each data set, epsilon claimed at delta 0.01), flagged at 99.9 %:

===================================  =======  ====  =====  =========
copy                                 epsilon    mu  noise  of trials
===================================  =======  ====  =====  =========
correct                                    0     0      0        100
noise x .8                                 0    20     20         20
noise x .5                                20    20     20         20
noise on half of the coordinates          20    20     20         20
last message without noise                20    20     20         20
every third message without noise         20    20     20         20
same noise in all or in two messages      20    20     20         20
data move thrice as much                  20    20      0         20
===================================  =======  ====  =====  =========

The correct copy at 90 %: 1, 3 and 6 of 100. Pairs that are exactly mu-GDP, observed through tanh or
a cube at 4,000 runs: 0 of 200 contradicted at 99.9 %, 22 (mu = 1) and 21 (mu = 3) of 200 at 90 %.
"""
