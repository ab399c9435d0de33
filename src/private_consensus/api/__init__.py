"""Simulation results and estimators of the Python API."""
