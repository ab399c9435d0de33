"""Test the reference results: refusals, retained files and significant changes."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import t

from private_consensus import cli
from private_consensus.common.errors import InvalidInput
from private_consensus.publishing import compare, publish
from private_consensus.publishing.differences import (
    changed,
    error_by_chance,
    paired,
    standard_errors,
)
from private_consensus.publishing.reference import MAX_ROWS, require_aggregates
from private_consensus.reproduction.results.numbers import INTERVAL, QUARTILES, RANGE, SPREAD

from .conftest import MADE_UP, write_result

AUDITED = {
    "experiment": [""], "algorithm": ["one"], "variant": [""], "setting": ["representative"],
    "level": ["this setting"],
    "copy": ["correct"], "claimed": [1.0], "verdict": ["not contradicted"],
}  # fmt: skip
REFERENCE = Path(__file__).parents[2] / "results" / "reference"
CONFIG = {"seed": 1, "papers": ["first", "second"], "runs": None}


@pytest.fixture
def run(results, run_folder):
    """Write a run at the scale of the papers and return it with its folder."""
    paper_results = replace(results, scale="paper")
    write_result(pl.DataFrame(paper_results.claims), run_folder / "claims.parquet")
    write_result(pl.DataFrame(paper_results.privacy), run_folder / "privacy.parquet")
    (run_folder / "audit").mkdir(exist_ok=True)
    (run_folder / "logs").mkdir(exist_ok=True)
    (run_folder / "logs" / "first_fig1.dgd.tsv").write_text("s\tcpu_time\n1.5\t1.0\n")
    write_result(pl.DataFrame(AUDITED), run_folder / "audit" / "audits.parquet")
    return paper_results, run_folder


@pytest.fixture
def reference(run, tmp_path):
    results, run_folder = run
    folder = tmp_path / "reference"
    publish(results, run=run_folder, folder=folder, config=CONFIG, papers=CONFIG["papers"])
    return folder


def test_reference_results_are_complete_and_record_their_provenance(reference):
    manifest = json.loads((reference / "manifest.json").read_text())
    files = {p.relative_to(reference).as_posix() for p in reference.rglob("*") if p.is_file()}
    assert set(manifest["sha256"]) == files - {"manifest.json"}
    assert {"figures/first_fig1.svg", "figures/first_fig1.png", "scorecard.md"} <= files
    assert pl.read_csv(reference / "audit" / "audits.csv").to_dict(as_series=False) == AUDITED
    assert manifest["data"][0]["checksum"] == "ab" * 32
    assert manifest["wall seconds"] == {"first_fig1.dgd": 1.5}


@pytest.mark.parametrize(
    ("changes", "config", "message"),
    [
        ({"scale": "smoke"}, {}, "scale"),
        ({}, {"runs": 3}, "runs"),
        ({}, {"papers": ["first"]}, "second"),
        ({"facts": MADE_UP}, {}, "surrogate"),
    ],
)
def test_reduced_incomplete_or_surrogate_results_do_not_replace_the_reference(
    run, reference, changes, config, message
):
    results, run_folder = run
    if "facts" in changes:
        changes = {"facts": {k: {**f, "source": MADE_UP} for k, f in results.facts.items()}}
    before = (reference / "manifest.json").read_bytes()
    with pytest.raises(InvalidInput, match=message):
        publish(
            replace(results, **changes), run=run_folder, folder=reference,
            config={**CONFIG, **config}, papers=CONFIG["papers"],
        )  # fmt: skip
    assert (reference / "manifest.json").read_bytes() == before


@pytest.mark.parametrize(
    "frame",
    [
        pl.DataFrame({"record": [1], "y": [0.5]}),
        pl.DataFrame({"run": [1], "y": [0.5]}),
        pl.DataFrame({"y": [[0.5, 1.0]]}),
        pl.DataFrame({"y": np.zeros(MAX_ROWS + 1)}),
    ],
)
def test_tables_that_may_contain_single_records_are_rejected(frame):
    with pytest.raises(InvalidInput):
        require_aggregates("figure", frame)


def test_changed_numbers_verdicts_and_epsilons_are_reported(run, reference, capsys):
    _, run_folder = run
    numbers = pl.read_parquet(run_folder / "data" / "first_fig1.parquet")
    write_result(
        numbers.with_columns(y=pl.col("y") + 1), run_folder / "data" / "first_fig1.parquet"
    )
    claims = pl.read_parquet(run_folder / "claims.parquet")
    write_result(claims.with_columns(verdict=pl.lit("held")), run_folder / "claims.parquet")
    privacy = pl.read_parquet(run_folder / "privacy.parquet")
    write_result(
        privacy.with_columns(epsilon_accountant=pl.lit(9.0)), run_folder / "privacy.parquet"
    )
    (run_folder / "data" / "second_fig1.parquet").unlink()
    flagged = pl.DataFrame(AUDITED | {"verdict": ["leaks"]})
    write_result(flagged, run_folder / "audit" / "audits.parquet")
    comparison = compare(run_folder, reference)
    verdicts = (claims["verdict"] != "held").sum() + 1  # plus one audit
    assert comparison.changed == numbers.height + privacy.height + verdicts
    assert comparison.lines[0] == "data/second_fig1.parquet: not in the run"
    assert (comparison.missing, comparison.absent, comparison.new) == (1, 0, 0)
    assert comparison.lines[-1].startswith("privacy: epsilon_accountant of ")
    audit = (
        "audit/audits: verdict of algorithm one, setting representative, level this setting, "
        "copy correct: not contradicted became leaks"
    )
    assert audit in comparison.lines
    assert cli.main(["compare", str(run_folder), "--reference", str(reference)]) == 1
    capsys.readouterr()


@pytest.mark.parametrize("column", ["epsilon_lower", "epsilon_empirical"])
def test_a_changed_or_missing_lower_bound_is_reported(run, reference, column):
    _, run_folder = run
    tables = [pl.read_parquet(folder / "privacy.parquet") for folder in (reference, run_folder)]
    for folder, privacy, bound in zip((reference, run_folder), tables, (1.0, 1.1), strict=True):
        write_result(privacy.with_columns(pl.lit(bound).alias(column)), folder / "privacy.parquet")
    assert compare(run_folder, reference).changed == tables[0].height
    write_result(tables[1].drop(column, strict=False), run_folder / "privacy.parquet")
    assert compare(run_folder, reference).lines == (f"privacy: {column} is missing",)
    write_result(tables[0].with_columns(pl.lit(1.0).alias(column)), run_folder / "privacy.parquet")
    assert compare(run_folder, reference).same


def test_an_exact_comparison_finds_changes_below_the_monte_carlo_error(run, reference, capsys):
    _, run_folder = run
    assert cli.main(["compare", str(run_folder), "--reference", str(reference), "--exact"]) == 0
    file = run_folder / "data" / "first_fig1.parquet"
    numbers = pl.read_parquet(file)
    for factor, changes in ((1 + 1e-9, 0), (1 + 1e-5, numbers.height)):
        write_result(numbers.with_columns(y=pl.col("y") * factor), file)
        assert compare(run_folder, reference, exact=True).changed == changes
    assert cli.main(["compare", str(run_folder), "--reference", str(reference), "--exact"]) == 1
    file.unlink()
    missing = compare(run_folder, reference, exact=True).lines
    assert missing == ("data/first_fig1.parquet: not in the run",)
    capsys.readouterr()


@pytest.mark.parametrize("exact", [False, True])
def test_common_rows_of_tables_with_different_rows_are_compared(run, reference, exact):
    _, run_folder = run
    file = run_folder / "data" / "first_fig1.parquet"
    numbers = pl.read_parquet(reference / "data" / "first_fig1.parquet")
    # The run lacks the first row, has a new row in front, and the other rows in reverse order.
    new = numbers.head(1).with_columns(x=pl.col("x") + 100)
    rerun = pl.concat([new, numbers.tail(-1).reverse()])
    write_result(rerun, file)
    comparison = compare(run_folder, reference, exact=exact)
    assert (comparison.changed, comparison.absent, comparison.new) == (0, 1, 1)
    assert not comparison.same
    last = pl.int_range(pl.len()) == numbers.height - 1
    write_result(rerun.with_columns(y=pl.when(last).then(9.5).otherwise("y")), file)
    comparison = compare(run_folder, reference, exact=exact)
    assert (comparison.changed, comparison.absent, comparison.new) == (1, 1, 1)


def test_rows_with_equal_keys_and_missing_or_rounded_keys_are_joined():
    keys = {"panel": ["a", "a", None], "x": [0.1 + 0.2, 0.3, np.nan]}
    before = pl.DataFrame({**keys, "n": [1, 1, 1], "y": [1.0, 2.0, 3.0]})
    after = before.with_columns(pl.col("n").cast(pl.UInt32), x=pl.Series([0.3, 0.1 + 0.2, np.nan]))
    pair = paired("data/f", before, after)
    assert (pair.absent, pair.new) == ([], [])
    assert pair.after["y"].to_list() == [1.0, 2.0, 3.0]


def points(y, half, kind=INTERVAL, runs=25):
    y = np.asarray(y, float)
    return pl.DataFrame({"x": np.arange(len(y)) * 1.0, "y": y, "low": y - half, "high": y + half,
                         "runs": [runs] * len(y), "interval": [kind] * len(y)})  # fmt: skip


def significant(first, second, count):
    pair = paired("data/f", first, second)
    return changed(pair, "y", error_by_chance(pair, count))


def test_a_mean_change_is_significant_beyond_the_student_quantile():
    allowed = t.isf(0.05 / (2 * 3), 24) * np.hypot(0.1, 0.1)
    for shift, count in ((0.999 * allowed, 0), (1.001 * allowed + 1e-5, 1)):
        both = points([1, 2, 3], 0.1), points([1 + shift, 2, 3], 0.1)
        assert len(significant(*both, 3)) == count


def test_at_most_a_tenth_of_pairs_from_one_distribution_differ_significantly():
    draws, count = np.random.default_rng(5), 0
    for _ in range(200):
        first, second = draws.normal(0, 1, (2, 20, 25))
        frames = [points(v.mean(1), v.std(1, ddof=1) / 5) for v in (first, second)]
        count += bool(significant(*frames, 20))
    assert count <= 20


def test_infinite_means_and_errors_are_compared():
    values = [1.0, np.inf, np.inf, np.nan]
    first, second = points(values, 0.0), points([np.inf, np.inf, 1.0, np.nan], 0.0)
    assert len(significant(first, second, 1)) == 2
    wide = points([1.0, 2.0], np.array([np.inf, 0.1]))
    assert significant(wide, points([5.0, 2.0], 0.1), 2) == []


@pytest.mark.parametrize(("kind", "half"), [(QUARTILES, 0.6745), (RANGE, 2.0), (SPREAD, 2.0)])
def test_standard_errors_are_derived_from_quartiles_ranges_and_deviations(kind, half):
    expected_error = 0.12533 if kind == QUARTILES else 0.2
    assert standard_errors(points([0.0], half, kind, 100)) == pytest.approx(expected_error, 1e-3)


def test_violated_reference_settings_have_a_lower_bound_above_their_claim():
    settings = pl.read_parquet(REFERENCE / "privacy.parquet")
    violated = settings.filter(pl.col("verdict") == "violated")
    lower = pl.max_horizontal("epsilon_lower", "epsilon_empirical")
    unfounded = violated.filter((lower > pl.col("epsilon_claimed")).not_().fill_null(True))
    assert violated.height > 0
    assert unfounded.select("experiment", "algorithm", "variant").rows() == []
