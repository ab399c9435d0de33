"""Simulation results of the Python API."""
