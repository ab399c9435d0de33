"""Results shaped for a reader: plain dictionaries that a template lays out."""
