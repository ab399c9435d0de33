"""Compiled loops, each beside the plain NumPy that it is tested against.

Nothing here knows of algorithms or problems. Draws are functions of a key and a counter, a key
belongs to a run, and a run is computed by one thread: neither the number of threads nor the width
of vectors changes what is drawn.
"""
