"""Test that every theorem has a computation or a reason, and that each computation can fail."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.stats import norm

from private_consensus.report.views import theorems as view
from private_consensus.reproduction.claims.words import (
    HELD,
    IN_PART,
    NOT_HELD,
    UNDECIDED,
    UNTESTABLE,
)
from private_consensus.reproduction.experiments.files import read_paper
from private_consensus.reproduction.experiments.results import rows_of
from private_consensus.reproduction.statements import COMPUTATIONS, compute
from private_consensus.reproduction.statements.base import (
    at_least,
    bound,
    conclude,
    equal,
    falls_as,
    geometric,
    grows_as,
)
from private_consensus.reproduction.statements.counterexamples import COMPUTATIONS as ERRATA
from private_consensus.reproduction.statements.sgd import epsilon_of_q_dpsgd_2
from private_consensus.reproduction.statements.table import computed, read_theorems

CONFIG = Path(__file__).parents[2] / "config"
RAW = yaml.safe_load((CONFIG / "theorems.yaml").read_text())
ONCE = {}


def once(name):
    """Return the result of a computation, cached for the other tests of this module."""
    if name not in ONCE:
        ONCE[name] = compute(name)
    return ONCE[name]


# Number of statements per paper and kind; "Sentence" counts statements without a number.
NUMBERED = {
    "showkatbakhsh": {
        "Theorem": 2,
        "Lemma": 5,
        "Proposition": 4,
        "Corollary": 2,
        "Remark": 3,
        "Sentence": 7,
    },
    "xiao": {"Theorem": 9, "Lemma": 1, "Equation": 3, "Footnote": 1, "Sentence": 3},
    "gratton": {"Theorem": 3, "Lemma": 3, "Corollary": 1, "Equation": 1, "Sentence": 3},
    "wang": {"Theorem": 6, "Lemma": 4, "Remark": 10, "Sentence": 2},
    "ding": {
        "Theorem": 20,
        "Lemma": 24,
        "Proposition": 2,
        "Corollary": 2,
        "Remark": 11,
        "Sentence": 4,
    },
}


def test_no_numbered_statement_is_missing():
    listed = {
        paper: {kind: sum(name.startswith(kind) for name in entries) for kind in NUMBERED[paper]}
        for paper, entries in RAW.items()
    }
    assert listed == NUMBERED
    trailing_number = re.compile(r"(\d+)$")
    for kind, count in NUMBERED["ding"].items():
        numbers = sorted(
            int(trailing_number.search(n)[1]) for n in RAW["ding"] if n.startswith(kind)
        )
        assert numbers == list(range(1, count + 1))


def test_theorem_entries_use_exactly_the_available_computations():
    theorems = read_theorems(RAW, ERRATA)
    assert {e.function for p in theorems.values() for e in p.values()} - {""} == set(COMPUTATIONS)


@pytest.mark.parametrize("name", COMPUTATIONS)
def test_a_stronger_statement_fails(name):
    """A part fails if its bound is tightened by more than the margin of the part.

    At the statements of the papers, the parts with a margin of at least 1 hold.
    """
    finding = once(name)
    assert len(finding.description) > 20
    margins = [theorem_part.margin for theorem_part in finding.parts]
    finite = [m for m in margins if 0 < m < math.inf]
    assert [theorem_part.holds for theorem_part in finding.parts] == [
        m >= 1 - p.slack for m, p in zip(margins, finding.parts, strict=True)
    ]
    if finding.verdict in (HELD, UNDECIDED, IN_PART) and finite:
        stronger = compute(name, 0.8 / max(finite))
        failing = [p for p, m in zip(stronger.parts, margins, strict=True) if m < math.inf]
        assert failing and not any(theorem_part.holds for theorem_part in failing), name
    if finding.verdict in (HELD, UNDECIDED):
        assert all(theorem_part.holds for theorem_part in finding.parts)
        assert min(margins) < math.inf or name == "consensus_innovation.lemma_4_9"


KNOWN = {
    "concentrated.lemma_8": NOT_HELD,  # half of the divergence at order 2
    "gradient_descent.theorem_1": IN_PART,  # the last message is exact
    "admm.theorem_2": NOT_HELD,  # one message would have no privacy cost
    "admm.theorem_3": HELD,
    "admm.theorem_6": UNDECIDED,
    "admm_remarks.sentence_2": HELD,
    "admm_remarks.sentence_3": IN_PART,  # the noise has the same size
    "admm_remarks.sentence_4": HELD,
    "zeroth_order.theorem_2": NOT_HELD,
    "zeroth_order_remarks.sentence_1": IN_PART,  # tuning explains more
    "zeroth_order_remarks.sentence_2": IN_PART,  # not in the tails
    "zeroth_order_remarks.sentence_3": HELD,
    "consensus_innovation.theorem_4_17": HELD,
    "consensus_remarks.remark_3_6": HELD,
    "consensus_remarks.remark_4_7": HELD,
    "consensus_remarks.remark_4_8": IN_PART,  # not at t = 0
    "consensus_remarks.sentence_1": IN_PART,  # one measurement keeps its guarantee
    "functional.theorem_19": HELD,
    "functional.theorem_18": HELD,  # by slack
    "sgd.lemma_18": NOT_HELD,
    "gradient_descent.theorem_2": NOT_HELD,  # the constant is exceeded at a weak budget
    "zeroth_order.theorem_3": NOT_HELD,  # one agent's variance is not enough on a large graph
    "schedules.rate_to_the_ball": HELD,
    "schedules.scales_of_noise": IN_PART,  # the term is minimal, the error is not
    "schedules.remark_1": HELD,
    "descent_remarks.sentence_4": HELD,
    "descent_remarks.sentence_5": IN_PART,  # the bound does not fall
    "descent_remarks.sentence_6": HELD,
    "descent_remarks.sentence_7": HELD,  # (12) starts from x(T)
    "local.theorem_2_1": HELD,
    "local.theorem_3_1": NOT_HELD,  # the rate fails for consensus
    "local.theorem_3_2": NOT_HELD,  # (48) admits divergence for M < 1
    "local.theorem_3_3": NOT_HELD,
    "constrained.equation_12": HELD,
    "constrained.equation_13": HELD,
    "local.footnote_1": UNDECIDED,
    "local_remarks.sentence_1": IN_PART,  # mu is epsilon, and no ln(1/delta)
    "local_remarks.sentence_2": IN_PART,  # not against a known batch
    "local_remarks.sentence_3": HELD,
    "admm.theorem_4": UNDECIDED,  # its proof uses Lemma 9, which is false
    "admm.theorem_5": UNDECIDED,
    "objectives.remark_1": HELD,
    "objectives.gaussian_against_gamma": HELD,
    "sgd_remarks.remark_10": IN_PART,
}


@pytest.mark.parametrize("name", KNOWN)
def test_verdicts_equal_those_derived_by_hand(name):
    assert once(name).verdict == KNOWN[name]


def test_numbers_equal_those_derived_by_hand():
    first = once("admm.theorem_2").parts[0]
    assert (first.stated, first.margin) == (0.0, 0.0)
    assert once("concentrated.lemma_8").parts[0].margin == pytest.approx(0.5, rel=1e-3)
    # Two normal sums 5 and 16.4 standard deviations apart (Chernoff's inequality loses some).
    attacks = [epsilon_of_q_dpsgd_2(rounds) for rounds in (1000, 10_000)]
    for epsilon, distance in zip(attacks, (5.0, 16.4), strict=True):
        wrong = norm.cdf(-distance / 2)
        assert 0.6 < epsilon / math.log((1 - wrong) / wrong) < 1
    assert once("sgd.theorem_15").parts[0].measured == attacks[1]
    assert once("consensus_innovation.theorem_4_11").parts[3].measured == pytest.approx(
        0.6, abs=0.01
    )
    # 2p/kappa at the budgets 4 and 40, 4p/kappa at 40; eta_1 = 21/40.
    papers, printed, proven = once("gradient_descent.theorem_2").parts[1:]
    unit = {e: (21 / 40) ** 2 * 4 * (e + 2 * math.log(2000)) / e**2 for e in (4, 40)}
    assert papers.stated == pytest.approx(2 * unit[4]) and papers.holds
    assert printed.stated == pytest.approx(2 * unit[40]) and not printed.holds
    assert proven.stated == pytest.approx(4 * unit[40]) and proven.holds
    # Without projection the value is 2 / (2a - 1/2) units for a = 21/40; projection lowers it.
    assert 0.09 < proven.measured < 2 / (2 * 21 / 40 - 0.5) * unit[40]
    # T^2 over the product of the sums of s^(1/2) and s^(-1/2) is 3/4, up to boundary terms.
    assert once("schedules.scales_of_noise").parts[1].measured == pytest.approx(0.75, rel=0.03)
    small, large, all_agents = once("zeroth_order.theorem_3").parts
    assert small.holds and not large.holds and all_agents.holds
    # tau = lambda_max(L+)^2 / (2 lambda_min(L-)) with 80 agents and self-loops.
    assert large.stated == pytest.approx(160**2 / (2 * 80))
    # U hat on a path of five: largest and smallest eigenvalue 2 +- 2 cos(pi/5), V_1^2 = V_2^2 = 5.
    high, low = (2 + sign * 2 * math.cos(math.pi / 5) for sign in (1, -1))
    u_hat = (high + 2 * math.sqrt(high / 2)) * 5 + 2 * 5 / (0.5**2 * low) + 1
    # 2 eta / T times its square at the smallest margin, T = 10 without noise.
    assert once("admm.theorem_4").parts[0].stated == pytest.approx(u_hat**2 / 10, rel=0.01)
    # The mean norms of the two distributions are d / zeta and about sqrt(d) sigma.
    assert once("objectives.gaussian_against_gamma").parts[0].margin == pytest.approx(1, abs=1e-3)


# Cross-references between statements, claims and errata.

PAPER_OF = dict(zip("01234", ("showkatbakhsh", "xiao", "gratton", "wang", "ding"), strict=True))
KINDS = "Theorem|Lemma|Corollary|Proposition|Remark|Equation|Footnote"
NUMBER = r"\d+(?:\.\d+)?"
STATEMENT = re.compile(rf"({KINDS})s? ({NUMBER})(?:(, | and | or | to )({NUMBER}))?")


def named_statements(paper, text):
    """Return the numbered statements that a text names, such as `Theorems 1 to 3`."""
    names = set()
    for kind, first, joint, last in STATEMENT.findall(text):
        numbers = {first, last} - {""}
        if joint == " to ":
            numbers = set(map(str, range(int(first), int(last) + 1)))
        names |= {f"{kind} {number}" for number in numbers}
    return names & RAW[paper].keys()


def claims_of(paper):
    return read_paper(CONFIG / "papers" / f"{paper}.yaml")["claims"]


PAPERS = list(PAPER_OF.values())


@pytest.mark.parametrize("paper", PAPERS)
def test_claims_and_statements_refer_to_each_other(paper):
    claims = claims_of(paper)
    stated_pairs = {
        (name, statement)
        for name, claim in claims.items()
        for statement in named_statements(paper, f"{claim['location']}; {claim['because']}")
    }
    listed = {(claim, s) for s, entry in RAW[paper].items() for claim in entry.get("claims", ())}
    assert stated_pairs <= listed and {claim for claim, _ in listed} <= claims.keys()


def unexplained(pairs):
    """Return pairs of claim and statement with different verdicts and no stated reason."""
    return [name for name, first, second, reason in pairs if first != second and not reason]


@pytest.mark.parametrize("paper", PAPERS)
def test_different_verdicts_of_a_claim_and_its_statement_have_a_reason(paper):
    rows = rows_of(CONFIG.parent / "results" / "reference" / "claims.parquet").to_dicts()
    published = {row["id"]: row["verdict"] for row in rows if row["is_primary"]}
    pairs = [
        ((statement, claim), published[claim], verdict_of(entry), reason)
        for statement, entry in RAW[paper].items()
        for claim, reason in entry.get("claims", {}).items()
        if claim in published
    ]
    assert pairs and unexplained(pairs) == []


def verdict_of(entry):
    return once(entry["function"]).verdict if "function" in entry else UNTESTABLE


def test_different_verdicts_without_a_reason_are_reported():
    assert unexplained([("a", HELD, NOT_HELD, ""), ("b", HELD, HELD, "")]) == ["a"]
    assert unexplained([("a", HELD, NOT_HELD, "other range: x")]) == []


WITHOUT_STATEMENT = {"E1.8", "E4.15"}
"""Errata about an algorithm without a numbered statement, and about a definition."""


def test_errata_and_statements_refer_to_each_other():
    written = yaml.safe_load((CONFIG / "errata.yaml").read_text())
    by_erratum = {(n, s) for n, e in written.items() for s in e.get("statements", ())}
    by_statement = {
        (number, name)
        for paper, entries in RAW.items()
        for name, entry in entries.items()
        for number in entry.get("errata", ())
        if PAPER_OF[number[1]] == paper
    }
    assert by_erratum == by_statement
    assert written.keys() - {number for number, _ in by_erratum} == WITHOUT_STATEMENT
    for number, entry in written.items():
        missing = named_statements(PAPER_OF[number[1]], entry["location"]) - set(
            entry.get("statements", ())
        )
        assert not missing, (number, missing)


# Functions that compare a stated bound with measured values.


def test_an_upper_bound_is_compared_at_its_worst_point():
    theorem_part = bound("x", [1.0, 2.0, 3.0], [0.5, 2.5, 1.0])
    assert (
        theorem_part.stated,
        theorem_part.measured,
        theorem_part.margin,
        theorem_part.holds,
    ) == (2.0, 2.5, 0.8, False)
    assert bound("x", 1.0, [0.0, 1.0]).holds
    assert not bound("x", -1.0, [0.5, 0.0]).holds  # a negative bound fails
    assert not bound("x", 1.0, math.inf).holds and not bound("x", math.nan, 1.0).holds


def test_equal_is_two_sided():
    assert equal("x", [1.0, 2.0], [1.0, 2.0]).holds
    for wrong in (0.999, 1.001):
        assert not equal("x", 1.0, wrong).holds and not equal("x", wrong, 1.0).holds


def test_rate_tests_distinguish_exponents():
    t = np.geomspace(10, 1e6, 30)
    assert falls_as("x", t, t**-0.5, 0.5).holds and falls_as("x", t, t**-0.7, 0.5).holds
    assert not falls_as("x", t, t**-0.4, 0.5).holds and not falls_as("x", t, 1 + t**-1.0, 0.5).holds
    assert not falls_as("x", t, t**-0.46, 0.5).holds and falls_as("x", t, t**-0.48, 0.5).holds
    assert not grows_as("x", t, t**2.04, 2.0).holds and grows_as("x", t, t**2.02, 2.0).holds
    assert grows_as("x", t, t**2, 2.0).holds and not grows_as("x", t, t**2.2, 2.0).holds


def test_stated_and_measured_values_exclude_the_slack():
    """Neither value includes the slack: they are the stated exponent and the measured slope."""
    t = np.geomspace(10, 1e6, 30)
    theorem_part = falls_as("x", t, t**-0.7, 0.5)
    assert (theorem_part.stated, theorem_part.measured) == (0.5, pytest.approx(0.7))
    theorem_part = grows_as("x", t, t**1.5, 2.0)
    assert (theorem_part.stated, theorem_part.measured) == (2.0, pytest.approx(1.5))
    k = np.arange(200)
    slower = np.exp(-np.where(k < 100, 0.1 * k, 10 + 0.05 * (k - 99)))
    theorem_part = geometric("x", k, slower)
    assert (theorem_part.stated, theorem_part.measured) == (pytest.approx(0.1), pytest.approx(0.05))
    assert theorem_part.margin == pytest.approx(0.5) and not theorem_part.holds
    theorem_part = at_least("x", [1.0, 2.0], [1.5, 1.8])
    assert (theorem_part.stated, theorem_part.measured) == (2.0, 1.8) and not theorem_part.holds


def test_a_lower_bound_is_compared_at_its_worst_point():
    assert at_least("x", [1.0, 2.0], [1.0, 2.5]).holds and not at_least("x", 1.0, 0.999).holds
    assert not at_least("x", 1.0, math.nan).holds and not at_least("x", 1.0, 1.1, scale=0.8).holds


def test_a_power_law_is_not_geometric_convergence():
    k = np.arange(1, 200)
    assert geometric("x", k, 3 * 0.9**k).holds and geometric("x", k, np.exp(-0.01 * k)).holds
    assert not geometric("x", k, 1 / k).holds and not geometric("x", k, k**-3.0).holds
    assert not geometric("x", k, np.ones(len(k))).holds and not geometric("x", k, 1.1**k).holds


def test_verdicts_follow_from_parts():
    yes, no = bound("x", 1, 0.5), bound("x", 1, 2)
    assert conclude(yes, description="").verdict == HELD
    assert conclude(yes, no, description="").verdict == NOT_HELD  # one point contradicts
    assert conclude(yes, no, description="", compound=True).verdict == IN_PART
    assert conclude(no, no, description="", compound=True).verdict == NOT_HELD
    assert conclude(yes, description="", proven=False).verdict == UNDECIDED
    assert conclude(yes, no, description="", proven=False).verdict == NOT_HELD


# Table of theorems, report page and command line.

SOME = {
    "wang": {
        "Theorem 4.17": {"statement": "a", "function": "consensus_innovation.theorem_4_17"},
        "Theorem 9": {"statement": "b", "because": "c"},
    }
}


def with_all(raw):
    remaining_names = COMPUTATIONS.keys() - {
        e.get("function") for p in raw.values() for e in p.values()
    }
    return raw | {"rest": {name: {"statement": name, "function": name} for name in remaining_names}}


def test_a_theorem_row_has_its_verdict_and_margin():
    theorems = read_theorems(with_all(SOME), [])
    first, second = computed({"wang": theorems["wang"]}).to_dicts()
    assert first["verdict"] == HELD and first["margin"] == pytest.approx(80 / 79)
    assert second["verdict"] == UNTESTABLE and second["margin"] is None
    paper = {"title": "T", "authors": ["Jimin Wang"], "venue": "a journal, 2022"}
    papers = view.by_paper([first, second], {"wang": paper})
    assert (papers[0]["name"], papers[0]["title"]) == ("Wang 2022", "T")
    assert [s["verdict"] for s in papers[0]["statements"]] == [HELD, UNTESTABLE]
    assert view.counts([first, second])[0]["count"] == 1
    [related] = view.by_claim([{**first, "claims": "wang_c03: other range"}])["wang_c03"]
    assert (related["anchor"], related["verdict"]) == ("wang-theorem-4-17", HELD)
