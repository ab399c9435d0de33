"""Audits and analyses that experiments run like algorithms, with one module for each.

``canary_audit`` attacks one run of Q-DPSGD-1, ``release_audit`` attacks one release of D-ZOA, and
``dp_ci_moments`` computes the exact moments of DP-CI. ``core.algorithms`` finds them by name.
"""
