"""The privacy audit: what is promised against what is delivered, with a computation for each
difference.

``errata`` holds the statements and their outcomes, ``counterexamples`` a computation for each,
``transcripts`` and ``controls`` the empirical tests, ``table`` joins all of them to one row a
setting.
"""
