"""Differentially private decentralized learning: published results, re-run and checked."""

__version__ = "0.1.0"
