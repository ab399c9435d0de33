r"""
Enter a figure
==============

A figure is configuration, not code: an experiment says what is run, a figure which of its curves
are drawn. Here it is planned, run and drawn in one process; in a study of one's own
``private-consensus reproduce`` does the same, and keeps what is current.
"""

# %%
# The configuration, ``mine.yaml`` beside this tutorial, as it would stand in ``config/papers``.

import sys
import tempfile
from pathlib import Path


from private_consensus.reproduction.experiments import plan
from private_consensus.reproduction.experiments.cells import run_cell
from private_consensus.reproduction.experiments.numbers import figure_numbers
from private_consensus.reproduction.plotting import draw
from private_consensus.reproduction.studies import HOME

MINE = Path(sys.argv[0]).with_name("mine.yaml").read_text()
print(MINE)

folder = Path(tempfile.mkdtemp())
(folder / "papers").mkdir()
(folder / "papers" / "mine.yaml").write_text(MINE)

# %%
# Everything is checked before anything runs; what is wrong is named by its key.

config = {"scale": "paper", "seed": 1, "papers": ["mine"], "data": {}}
asked = plan.load(config, folder, HOME / "config")
print(asked.cells())

# %%
# A cell is one algorithm in one experiment, with all of its settings.

name, pair = "mine_fig1", ("mine_fig1", "gradient_descent")
runs, privacy = run_cell(asked.cell(*pair), {})
print(
    privacy.select("variant", "epsilon_claimed", "epsilon_formula", "epsilon_accountant", "verdict")
)

# %%
# And the figure, by the same code as those of the papers.

drawing = asked.drawing(name)
numbers = figure_numbers(drawing["panels"], {pair: (runs, privacy)}, source="drawn here")
chart = draw(name, "mine", numbers, drawing, asked.figure_styles(name))
