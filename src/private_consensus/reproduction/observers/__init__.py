"""Privacy loss to partial observers for the settings of ``config/observers.yaml``."""
