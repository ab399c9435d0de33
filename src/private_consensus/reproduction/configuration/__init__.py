"""Configuration: from the files of ``config/papers`` to the plan.

``schema`` defines the keys of the files and reads them, ``checks`` refuses unknown names and
invalid settings, ``conditions`` describes the settings of figures and claims, and ``plan`` has the
cells.
"""
