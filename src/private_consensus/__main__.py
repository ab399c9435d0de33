"""Run the command line as ``python -m private_consensus``."""

import sys

from .cli import main

sys.exit(main())
