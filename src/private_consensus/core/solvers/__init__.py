"""Batched minimisation of smooth convex functions and of indefinite quadratics."""

from .smooth import ROUNDING, TOLERANCE, Unsolved, minimise

__all__ = ["ROUNDING", "TOLERANCE", "Unsolved", "minimise"]
