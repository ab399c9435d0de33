"""Audits of algorithms: tests of the claimed against the delivered privacy.

``audit`` executes an algorithm and tests its claim, with pairs of data sets from ``probing``. The
tests are in ``judging`` and ``checks``, and ``result`` holds their outcome. ``analyses`` holds
audits and analyses that experiments run like algorithms.
"""
