r"""
Enter a figure
==============

A figure is configuration, not code. The entry of an experiment lists algorithms and settings, and
the entry of a figure lists its curves. This example plans, runs and draws a figure in one process.
In a study, ``private-consensus reproduce`` does the same and reuses results that are up to date.
"""

# %%
# The configuration is the file ``mine.yaml`` next to this example. In a study it is a file in
# ``config/papers``.

import sys
import tempfile
from pathlib import Path

from private_consensus.reproduction.configuration import plan
from private_consensus.reproduction.figures import draw
from private_consensus.reproduction.results.cells import run_cell
from private_consensus.reproduction.results.numbers import figure_numbers
from private_consensus.reproduction.studies import HOME

CONFIGURATION = Path(sys.argv[0]).with_name("mine.yaml").read_text()
print(CONFIGURATION)

folder = Path(tempfile.mkdtemp())
(folder / "papers").mkdir()
(folder / "papers" / "mine.yaml").write_text(CONFIGURATION)

# %%
# The configuration is validated before anything runs. An error names its key.

config = {"scale": "paper", "seed": 1, "papers": ["mine"], "data": {}}
loaded = plan.load(config, folder, HOME / "config")
print(loaded.cells())

# %%
# A cell is one algorithm in one experiment, with all of its settings.

name, pair = "mine_fig1", ("mine_fig1", "gradient_descent")
runs, privacy = run_cell(loaded.cell(*pair), {})
print(
    privacy.select("variant", "epsilon_claimed", "epsilon_formula", "epsilon_accountant", "verdict")
)

# %%
# The figure is drawn by the same code as the figures of the papers.

drawing = loaded.drawing(name)
numbers = figure_numbers(drawing["panels"], {pair: (runs, privacy)}, source="drawn here")
chart = draw(name, "mine", numbers, drawing, loaded.figure_styles(name))
