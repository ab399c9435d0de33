"""Privacy losses to observers of a part of the messages, for ``config/observers.yaml``."""
