"""The privacy audit: promised against delivered privacy, with one computation per difference.

``errata`` holds the statements and their outcomes, ``counterexamples`` a computation for each,
``audit`` the function that executes an algorithm and tests what it claims, ``settings`` its rows,
``table`` joins all of them to one row a setting.
"""
