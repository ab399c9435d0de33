"""The page of privacy: the lower bound beside a claim."""

from private_consensus.report.views.errata import audits as audit_table
from private_consensus.report.views.mutants import bench
from private_consensus.report.views.privacy import _audited, _furthest, _with_audits


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


def audit(algorithm, level, bound):
    return {
        "algorithm": algorithm, "level": level, "copy": "correct", "bound": bound,
        "claimed": 0.5, "delta": 0.001, "flagged": False,
    }  # fmt: skip


def test_where_no_setting_was_audited_a_part_or_a_small_setting_is_shown():
    rows = [{"algorithm": name, "verdicts": [{"empirical": ""}]} for name in ("d zoa", "dgd", "m")]
    audits = [
        audit("release_audit", "release of d_zoa", 1.0),
        audit("release_audit", "release of d_zoa", 2.0),
        audit("m", "transcript", 0.25),
        audit("m", "noise of the message", 1.0),
    ]
    shown = [row["audit"] for row in _with_audits(rows, audits)]
    assert shown == [
        "2 of 0.5, release of d zoa at delta 0.001",
        "not audited",
        "0.25 of 0.5, a small setting at delta 0.001; noise as claimed where it is added",
    ]


def test_the_level_of_a_bound_is_that_of_its_row():
    rows = [
        {**audit("canary_audit", "one-run canaries", 1.8), "variant": "main", "experiment": "",
         "setting": "main", "ceiling": float("nan"), "runs": 1, "confidence": confidence}
        for confidence in (0.999, 0.95, 1 - 0.01 / 378, 1.0)
    ]  # fmt: skip
    shown = [row["confidence"] for row in audit_table(rows)]
    assert shown == ["99.9 %", "95 %", "99.9974 %", "computed"]


def test_of_the_bench_what_must_be_caught_is_counted_apart():
    def broken(algorithm, fault, ratio, how, runs):
        return {
            "algorithm": algorithm, "fault": fault, "meaningful": ratio >= 1.5, "how": how,
            "caught": bool(how), "runs": runs,
        }  # fmt: skip

    shown = bench(
        [
            broken("a_b", "none", 1.0, "", 1000),
            broken("a_b", "no noise", 2.0, "contradicted; differs from its declaration", 250),
            broken("c", "no noise", 2.0, "differs from its declaration", 500),
            broken("c", "less noise", 1.2, "differs from its declaration", 1000),
            broken("c", "told", 3.0, "", 1000),
        ]
    )
    (noise, less, told), (first, second) = shown["faults"], shown["algorithms"]
    assert (noise["caught"], noise["contradicted"], noise["runs"]) == ("2 of 2", 1, 500)
    assert (less["caught"], less["others"]) == ("0 of 0", "1 of 1")
    assert not told["all"] and shown["missed"] == ["c: told"]
    assert (first["name"], second["caught"]) == ("a b", "1 of 2")
    assert (shown["correct"], shown["alarms"]) == (1, 0)
    assert bench([]) == {}
