"""One function says whether a claim holds, and all that show a verdict show this one."""

import math
from itertools import product

import pytest

from private_consensus import cli
from private_consensus.audits.table import judged
from private_consensus.experiments.cells import run_cell
from private_consensus.privacy import (
    HOLDS,
    HOLDS_BY_SLACK,
    NOT_PRIVATE,
    NOT_PROVEN,
    VERDICTS,
    VIOLATED,
    verdict,
    verdict_of,
)

EPSILONS = (0.5, 1.0, 1.0 + 1e-12, 1.5, math.inf)
KNOWN = list(product(EPSILONS, (True, False), (None, 0.0, *EPSILONS), (True, False)))


@pytest.mark.parametrize(("accounted", "proven", "lower", "broken"), KNOWN)
def test_a_verdict_follows_from_the_two_sides(accounted, proven, lower, broken):
    found = verdict(1.0, accounted, proven=proven, lower=lower, argument_broken=broken)
    above = lower is not None and lower > 1.1
    below = proven and accounted < 1.1
    assert (found == VIOLATED) == above
    assert (found in (HOLDS, HOLDS_BY_SLACK)) == (below and not above)
    assert (found == NOT_PROVEN) == (not below and not above)
    assert (found == HOLDS_BY_SLACK) <= broken <= (found != HOLDS)


@pytest.mark.parametrize(("accounted", "proven", "lower", "broken"), KNOWN)
def test_where_nothing_is_claimed_nothing_is_said(accounted, proven, lower, broken):
    found = verdict(math.inf, accounted, proven=proven, lower=lower, argument_broken=broken)
    assert found == NOT_PRIVATE


def test_more_knowledge_from_above_never_makes_a_verdict_worse_nor_from_below_better():
    order = {word: place for place, word in enumerate(VERDICTS)}
    for accounted, proven, lower, broken in KNOWN:
        known = {"proven": proven, "lower": lower, "argument_broken": broken}
        found = order[verdict(1.0, accounted, **known)]
        assert order[verdict(1.0, accounted / 2, **known)] >= found
        assert order[verdict(1.0, accounted, **{**known, "lower": 3 * (lower or 0)})] <= found


@pytest.mark.parametrize("method", ["gaussian", "pure", "pld", "none"])
@pytest.mark.parametrize("accounted", [1.5, math.inf])
@pytest.mark.parametrize("proven", [True, False])
@pytest.mark.parametrize(("lower", "found"), [(1.2, VIOLATED), (0.9, NOT_PROVEN), (0, NOT_PROVEN)])
def test_more_than_is_claimed_is_violated_only_with_a_lower_bound(
    method, accounted, proven, lower, found
):
    """However exact the accountant: whether its sensitivity is attained it cannot know."""
    row = {
        "epsilon_claimed": 1.0, "epsilon_accountant": accounted, "accountant": method,
        "epsilon_lower": lower, "proven": proven, "delta": 0.0, "sampling": "none",
    }  # fmt: skip
    assert verdict_of(row) == verdict_of(row, audited=0.5) == found
    assert verdict_of(row, audited=1.1) == VIOLATED


@pytest.mark.parametrize(
    "arguments",
    [
        ["exact_admm", "--epsilon", "1", "--delta", "1e-5"],
        ["dp_admm", "--epsilon", "1", "--delta", "1e-5"],
        ["gradient_descent", "--epsilon", "2"],
        ["ldp_admm", "--epsilon", "1"],
        ["gradient_descent", "--epsilon", "inf"],
    ],
)
def test_command_line_cell_and_table_say_the_same(arguments, capsys, monkeypatch):
    cells = []

    def watched(*given):
        cells.append(run_cell(*given)[1])
        return run_cell(*given)

    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(cli, "run_cell", watched)
    cli.main(["run", *arguments, "--horizon", "3", "--runs", "1"])
    printed = " ".join(capsys.readouterr().out.split()).rpartition("; ")[-1]
    (cell,) = cells
    assert printed == cell["verdict"][0] == verdict_of(cell.row(0, named=True))
    assert judged(cell, {}, [])["verdict"].to_list() == cell["verdict"].to_list()
