"""Algorithms from outside the project: correct ones and broken ones."""
