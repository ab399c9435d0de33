"""The page of privacy: the lower bound beside a claim."""

from private_consensus.report.views.privacy import _audited, _furthest


def row(bound, claimed, audit="transcript"):
    return {"epsilon_empirical": bound, "epsilon_claimed": claimed, "audit": audit}


def test_the_bound_that_is_furthest_above_its_claim_is_shown():
    found = _audited([row(5.0, 10.0, "weak"), row(3.0, 1.0, "strong"), row(None, 2.0)])
    assert found["empirical"] == "3"
    assert found["audit"] == "strong; 2 of 3 settings"
    assert _audited([row(3.0, 1.0, "strong")])["audit"] == "strong"


def test_what_was_not_audited_is_said_and_never_shown_instead_of_a_bound():
    silent, heard = _audited([row(None, 1.0)]), _audited([row(0.0, 1.0)])
    assert (silent["empirical"], silent["audit"]) == ("", "not audited")
    assert _furthest([silent, heard]) is heard
