"""Configuration: from the files of ``config/papers`` to the plan.

``schema`` defines the keys of the files, ``papers`` reads them, ``checks`` refuses unknown names
and invalid settings, ``conditions`` states what restricts a claim, and ``plan`` has the cells.
"""
