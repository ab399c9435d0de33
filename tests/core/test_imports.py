"""Test that jobs do not import slow libraries that they do not use."""

import subprocess
import sys

SLOW = ("scipy.stats", "scipy.signal", "networkx", "altair", "sklearn", "dp_accounting")
PROGRAM = f"""
import sys
from private_consensus import algorithms, problems
from private_consensus.reproduction.experiments import cells, numbers, plan, results
for room in (algorithms, problems):
    for name in room.names():
        room.load(name)
print([name for name in {SLOW} if name in sys.modules])
"""


def test_importing_algorithms_problems_and_plans_loads_no_slow_library():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
