"""Test that one function combines accountant, lower bound and audit into every verdict."""

import math
from itertools import product

import pytest

from private_consensus import cli
from private_consensus.cli import running
from private_consensus.privacy.verdicts import AUDIT_VERDICTS, NO_CLAIM, VERDICTS, verdict_of
from private_consensus.reproduction.audits.table import judged
from private_consensus.reproduction.results.cells import run_cell

EPSILONS = (0.5, 1.0, 1.0 + 1e-12, 1.5, math.inf)
AUDITS = (None, *AUDIT_VERDICTS)
KNOWN = list(product(EPSILONS, (True, False), (None, 0.0, *EPSILONS), (True, False), AUDITS))
"""Tuples (accountant, proven, lower bound, argument broken, audit verdict); the claim is 1."""


def expected(accounted, proven, lower, broken, audit):
    """Return the verdict according to the table in docs/explanation/verdicts.md."""
    refuted = audit == "violated" or (lower is not None and lower > 1.1)
    differs = audit == "differs from its declaration" and not refuted
    above = not proven or accounted > 1.1 or audit == "not proven"
    unproven = above and not refuted and not differs
    open_audit = audit == "inconclusive" and not (refuted or differs or unproven)
    fine = not (refuted or differs or unproven or open_audit)
    lines = {
        "violated": refuted, "differs from its declaration": differs, "not proven": unproven,
        "inconclusive": open_audit, "holds by slack": fine and broken, "holds": fine and not broken,
    }  # fmt: skip
    (word,) = [word for word, applies in lines.items() if applies]
    return word


def combined(accounted, proven, lower, broken, audit, claimed=1.0):
    row = {
        "epsilon_claimed": claimed, "epsilon_accountant": accounted, "epsilon_lower": lower,
        "proven": proven,
    }  # fmt: skip
    return verdict_of(row, audit=audit, argument_broken=broken)


def test_verdict_equals_the_documented_table_for_every_combination():
    assert len(KNOWN) == 5 * 2 * 7 * 2 * 6
    for combination in KNOWN:
        assert combined(*combination) == expected(*combination), combination
    assert {combined(*combination) for combination in KNOWN} == set(VERDICTS) - {NO_CLAIM}


def test_verdict_of_an_infinite_claim_is_not_private():
    assert {combined(*combination, claimed=math.inf) for combination in KNOWN} == {NO_CLAIM}


def test_verdict_is_monotone_in_upper_bound_lower_bound_and_audit_verdict():
    order = {word: index for index, word in enumerate(VERDICTS)}
    for accounted, proven, lower, broken, audit in KNOWN:
        stated = order[combined(accounted, proven, lower, broken, audit)]
        assert order[combined(accounted / 2, proven, lower, broken, audit)] >= stated
        assert order[combined(accounted, proven, 3 * (lower or 0), broken, audit)] <= stated
        for worse in AUDIT_VERDICTS[: AUDIT_VERDICTS.index(audit)] if audit else ():
            assert order[combined(accounted, proven, lower, broken, worse)] <= stated


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
def test_command_line_cell_and_audit_table_give_equal_verdicts(arguments, capsys, monkeypatch):
    cells = []

    def watched(*cell_arguments):
        cells.append(run_cell(*cell_arguments)[1])
        return run_cell(*cell_arguments)

    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(running, "run_cell", watched)
    cli.main(["run", *arguments, "--horizon", "3", "--runs", "1"])
    printed = " ".join(capsys.readouterr().out.split()).rpartition("; ")[-1]
    (cell,) = cells
    assert printed == cell["verdict"][0] == verdict_of(cell.row(0, named=True))
    assert judged(cell, {}, [])["verdict"].to_list() == cell["verdict"].to_list()
