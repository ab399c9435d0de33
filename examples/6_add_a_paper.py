r"""
Add a paper
===========

A paper is a configuration file with experiments, figures and claims. Each claim has a test. A study
is a folder with the configuration of a paper and, if needed, new algorithms.
"""

# %%
# ``private-consensus init`` writes a new study. This example calls the function behind it.

import sys
import tempfile
from pathlib import Path

import polars as pl

from private_consensus.reproduction.claims import judge_all
from private_consensus.reproduction.configuration import plan
from private_consensus.reproduction.results.cells import run_cell
from private_consensus.reproduction.results.files import DRAWN
from private_consensus.reproduction.studies import HOME, write_study

folder = Path(tempfile.mkdtemp(), "a_paper_of_mine")
for path in write_study(folder):
    print(path.relative_to(folder))

# %%
# The paper is ``mine.yaml`` of the previous example, with a published algorithm. Its claim: exact
# accounting has a smaller error than the published calibration at the same claimed epsilon.

CLAIMS = """
claims:
  mine_c01:
    claim: Exact accounting has the smaller error.
    location: this example
    figure: mine_fig1
    because: an ordering; no tolerance
    test: {
      kind: below, x: epsilon, method: gradient_descent.exact, measure: released.normalised_error,
      against: gradient_descent.literal
    }
"""

configuration = Path(sys.argv[0]).with_name("mine.yaml").read_text()
(folder / "config" / "papers" / "mine.yaml").write_text(configuration + CLAIMS)

config = {"scale": "paper", "seed": 1, "papers": ["mine"], "data": {}}
loaded = plan.load(config, folder / "config", HOME / "config")
measured = run_cell(loaded.cell("mine_fig1", "gradient_descent"), {})
runs, privacy = (rows.with_columns(source=pl.lit(DRAWN)) for rows in measured)

# %%
# ``judge_all`` computes a verdict for each claim from runs and privacy rows, with the statistic and
# its confidence interval.

claims = loaded.papers["mine"].claims
table = judge_all(claims, runs, privacy, paper="mine", deterministic=set(), reduced=False)
print(table.select("claim", "verdict", "value", "low", "high", "runs"))
