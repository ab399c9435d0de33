"""Tests of the report, in a package so that they share synthetic results."""
