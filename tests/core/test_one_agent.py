"""Test every algorithm with one agent: finite measurements, or one error that says why not."""

from argparse import Namespace

import numpy as np
import pytest

from private_consensus import InvalidInput, algorithms
from private_consensus.cli.parser import build_parser
from private_consensus.cli.settings import plan
from private_consensus.common.errors import Refused
from private_consensus.reproduction.results.cells import run_cell

REASONS = ("agents", "kappa", "constant")
"""Too few agents, a sensitivity that grows with fewer agents, observations of one agent alone."""


def _options(name: str) -> Namespace:
    options = "--agents 1 --network single --runs 2"
    return build_parser().parse_args(["run", name, *options.split()])


@pytest.mark.parametrize("name", algorithms.names())
def test_one_agent(name):
    try:
        cell, prepared, _ = plan(_options(name))
        runs, _ = run_cell(cell, prepared, lambda done, of: None)
    except (InvalidInput, Refused) as error:
        assert any(reason in str(error) for reason in REASONS)
    else:
        # The lasso's optimum may be 0, so that its normalised error is infinite.
        assert not np.isnan(runs["value"].to_numpy()).any()
