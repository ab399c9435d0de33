r"""
Add a paper
===========

A paper is a file with what it claims, and a test for each claim that can fail. A study in a folder
of one's own is such a paper with an algorithm, and it is written for you.
"""

# %%
# ``private-consensus init`` from the command line; here by its function.

import sys
import tempfile
from pathlib import Path

import polars as pl

from private_consensus.reproduction.claims import Claim, judge_all
from private_consensus.reproduction.experiments import plan
from private_consensus.reproduction.experiments.cells import run_cell
from private_consensus.reproduction.experiments.results import DRAWN
from private_consensus.reproduction.studies import HOME, write_study

folder = Path(tempfile.mkdtemp(), "a_paper_of_mine")
for path in write_study(folder):
    print(path.relative_to(folder))

# %%
# The paper is the one of the tutorial before, ``mine.yaml``, with a published algorithm, so that
# nothing has to be installed. Its claim: exact accounting has a smaller error than the printed
# calibration at the same claimed epsilon.

CLAIMS = """
claims:
  mine_c01:
    claim: Exact accounting has the smaller error.
    place: this tutorial
    figure: mine_fig1
    headline: exact
    because: an ordering; no tolerance
    test: {kind: below, x: epsilon, measure: released.normalised_error}
    series: {of: gradient_descent.exact}
    against: gradient_descent.literal
"""

mine = Path(sys.argv[0]).with_name("mine.yaml").read_text()
(folder / "config" / "papers" / "mine.yaml").write_text(mine + CLAIMS)

config = {"scale": "paper", "seed": 1, "papers": ["mine"], "data": {}}
asked = plan.load(config, folder / "config", HOME / "config")
measured = run_cell(asked.cell("mine_fig1", "gradient_descent"), {})
runs, privacy = (rows.with_columns(source=pl.lit(DRAWN)) for rows in measured)

# %%
# The judge sees runs and privacy, not words: a verdict comes with its statistic, an interval that
# all elements share by Holm's method, and the tolerance at which it would be another.

claims = {
    key: Claim(**claim.model_dump(mode="json"))
    for key, claim in asked.papers["mine"].claims.items()
}
table = judge_all(claims, runs, privacy, paper="mine", deterministic=set(), reduced=False)
print(table.select("claim", "verdict", "value", "low", "high", "runs"))
