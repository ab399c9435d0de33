"""Objects for users of the Python API: results of a simulation and estimators."""
