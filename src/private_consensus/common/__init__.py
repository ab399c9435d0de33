"""Tools without domain knowledge that every other package uses.

``errors`` defines the error for invalid input, :class:`~.errors.InvalidInput`, and checks of
arguments. ``yamls`` reads configuration files. ``provenance`` hashes the code and the settings on
which a result depends. ``secrets`` redacts credentials. ``extras`` names missing optional
dependencies. No module of this package imports another package of the project.
"""
