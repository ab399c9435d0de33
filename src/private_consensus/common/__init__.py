"""Tools without domain knowledge that every other package uses.

``errors`` has the one error for bad input, :class:`~.errors.InvalidInput`, and checks of
arguments; ``yamls`` reads configuration with line numbers; ``provenance`` hashes the code and
settings that a result depends on; ``secrets`` redacts credentials from logs; ``extras`` names the
optional dependency that a command needs. No module of this package imports another package of
the project.
"""
