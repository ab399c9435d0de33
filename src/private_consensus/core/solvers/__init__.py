"""Batched minimisation: smooth convex functions, indefinite quadratics, local logistic problems."""

from .smooth import ROUNDING, TOLERANCE, Unsolved, minimise

__all__ = ["ROUNDING", "TOLERANCE", "Unsolved", "minimise"]
