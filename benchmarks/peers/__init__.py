"""Other libraries that do what a part of this one does: how long they take for the same result.

``make peers`` installs them in an environment of their own; nothing else imports this package.
"""
