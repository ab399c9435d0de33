"""Tests of the report; a package, so that they can share what they make up."""
