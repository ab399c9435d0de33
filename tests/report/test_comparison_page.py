"""Test the comparison page: its tables and the data of its script."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from private_consensus.common import yamls
from private_consensus.common.provenance import write_json
from private_consensus.comparison.answers import INFINITE, METHOD_COLUMNS, REPEATED, UNPROVEN
from private_consensus.comparison.design import cells, described, read_comparison
from private_consensus.comparison.schema import OBSERVERS, TUNINGS
from private_consensus.report import write_site
from private_consensus.report.page import page as front
from private_consensus.report.page import pages
from private_consensus.report.reading import comparison_of
from private_consensus.report.undecided import scale_notice, without_decisions
from private_consensus.report.views.comparison import GOALS, RUNS, scripts

from . import chromium
from .checking import LARGEST_PAGE

LONG = -0.000123
"""A number with three significant digits and the maximum text length."""
COSTS = ["messages", "bits", "gradient_evaluations", "seconds"]
METHODS = ["local_training", "talks", "hopes"]


def method_row(method, mean, best, share=None):
    values = {
        "method": method, "mean": mean, "low": 0.9 * mean, "high": 1.1 * mean,
        "behind_low": 0.0 if best else 0.25, "may_be_best": best, "share": share,
        "share_low": share, "share_high": share, "excess_loss_worst": 2 * mean,
        "accuracy_mean": None, "consensus_error": 0.0, "front": 3,
    }  # fmt: skip
    return [values[key] for key in METHOD_COLUMNS]


def cell(epsilon, *rows, **changes):
    keys = {"problem": "lasso", "agents": 10, "graph": "ring", "partition": "iid", "missing": 0.0,
            "links": 0.0, "epsilon": epsilon, **changes}  # fmt: skip
    unproven = dict(zip(UNPROVEN, (2, 0.001, 7.5, INFINITE), strict=True))
    return {
        "cell": list(keys.values()),
        "tuned_paid": {
            "eavesdropper": list(rows), "unproven": [[unproven[key] for key in UNPROVEN]],
            "costs": [[1, 90, 900, 3000, 0.1]],
        },
    }  # fmt: skip


ALONE = method_row(0, 8.0, 0, share=0.0), method_row(0, 8.0, 1, share=0.0)
RANKING = {
    "methods": ["talks", "hopes"], "mean_ranks": [1.0, 2.0], "low": [0.5, 1.5], "high": [1.5, 2.5],
    "cells": 2, "of": 3, "p": None, "problems": ["lasso", "means"], "indistinguishable": ["hopes"],
    "left_out": {"local_training": 1},
}  # fmt: skip
WHOLE = {**RANKING, "low": [None, None], "high": [None, None]}
FOUND = {
    "headline": ["Talking has the lowest mean rank & more.", "Else talk."],
    "advice": [{
        "id": "talk", "question": "Talk & be <brief>?", "answer": "undecided",
        "because": "why", "observer": "eavesdropper",
        "verdict": "undecided", "verdict_alone": "held", "p": 0.01, "p_holm": 0.2, "pairs": 4,
        "confirmed": 4, "contradicted": 0, "nearest": "a against b", "value": -0.2, "low": -0.3,
        "high": -0.1, "runs": 10, "budgets": {"lasso": [0.1, 1.0]},
    }],
    "methods": [{"name": name, "title": name.replace("_", " "), "observer": "eavesdropper",
                 "because": ""} for name in METHODS],
    "delta": 1e-5, "relation": "replace one record", "runs": 10, "trials": 8,
    "epsilons": [0.1, 1.0],
    "axes": {"agents": [10, 5], "graph": ["ring", "grid"], "partition": ["iid"], "missing": [0.0],
             "links": [0.0, 0.2]},
    "titles": {"problem": {"lasso": "the lasso"}, "graph": {"ring": "a ring", "grid": "a grid"},
               "partition": {"iid": "i.i.d."}},
    "absent": [{"method": "hopes", "because": "It needs every agent.", "where": {"missing": 0.2},
                "times": 3}],
    "observers": ["eavesdropper"], "place": list(METHOD_COLUMNS), "unproven": list(UNPROVEN),
    "costs": COSTS,
    "ranks": {"eavesdropper": {
        "tuned_paid": {"remaining": RANKING, "all": WHOLE, "lasso": WHOLE},
        "tuned": {"remaining": WHOLE}, "transferred": {"remaining": WHOLE},
    }},
    "too_small": {"eavesdropper": {
        name: {"cells": 3, "judged": 3, "too_small": 1} for name in TUNINGS
    }},
    "primary": "tuned_paid", "public_records": 10, "records": {"lasso": 400, "means": 800},
    "baselines": ["nothing"],
    "learned": [{
        "problem": "lasso", "tuning": "tuned_paid", "epsilon": 1.0, "method": "talks", "loss": 2.0,
        "data_free": 8.0, "baseline": 4.0, "baseline_method": "local_training",
        "without_privacy": 0.5, "fraction": 0.8,
    }],
    "borders": [
        {"method": "talks", "parameter": "eta", "searches": 8, "low": 0, "high": 2,
         "natural": ["a step of 1/L"]},
        {"method": "talks", "parameter": "horizon", "searches": 8, "low": 0, "high": 0,
         "natural": []},
    ],
    "tuning_check": [{
        "method": "talks", "problem": "lasso", "epsilon": 1.0, "tuned": 0.011, "grid": 0.01,
        "ratio": 1.1, "low": -0.001, "high": 0.003, "points": 98, "passed": True,
    }],
    "problems": {"lasso": [
        cell(0.1, ALONE[1], method_row(1, 9.0, 0, share=-0.25)),
        cell(1.0, method_row(1, 2.0, 1, share=0.75), ALONE[0]),
        cell(1.0, method_row(1, 1.0, 1), links=0.2),
    ]},
    "budgets": {"lasso": [{"end": "local_training", "epsilon": 1.0, "goal": 8.0,
                           "needed": {"talks": [0.3, 0.0, INFINITE]}}]},
    "gains": {"eavesdropper": {"talks": {"tuned": [0.8, 0.7, 0.9, 5],
                                         "tuned_paid": [1.2, 1.1, 1.3, 5]}}},
}  # fmt: skip


@pytest.fixture
def compared(results):
    return replace(results, scale="paper", comparison=FOUND)


@pytest.fixture
def text(compared):
    return pages(compared)["comparison.html"]


def rows_after(text, heading):
    """Return the cells of the first table after a heading, by row."""
    table = text.split(f'id="{heading}"')[1].split("</table>")[0]
    body = table.split("<tbody>")[1]
    return [re.findall(r"<t[hd][^>]*>([^<]*)<", row) for row in body.split("</tr>")[:-1]]


def test_page_shows_the_headline_before_the_advice(text, compared):
    assert text.index("Talking has the lowest mean rank &amp;") < text.index("Talk &amp; be")
    assert "Undecided." in text
    assert "the lasso, ε = 0.1, 1" in text
    assert "&lt;brief&gt;" in text and "<brief>" not in text
    assert "without adjustment: held" in text and "undecided" in text
    assert "Which algorithm?" in front(compared)


def test_rank_table_states_the_number_of_cells_and_the_omitted_methods(text):
    table_rows = rows_after(text, "ranks-1")
    assert table_rows[0] == ["talks", "1 [0.5, 1.5]", *["1"] * 4]
    assert table_rows[2] == ["local training", *["in 1"] * 5]
    assert table_rows[3:] == [
        ["Methods with a rank", *["2"] * 5], ["Cells, of all cells", *["2 of 3"] * 5],
        ["Problems", *["2"] * 5],
        ["Friedman's p", *["–"] * 5],
    ]  # fmt: skip
    assert "talks does not differ significantly from the ranks of: hopes" in text
    assert "(baseline)" not in text


def test_rank_table_marks_models_without_privacy_cost(results):
    with_baseline = {**FOUND, "baselines": ["hopes"]}
    text = pages(replace(results, comparison=with_baseline))["comparison.html"]
    assert [row[0] for row in rows_after(text, "ranks-1")][:3] == [
        "talks", "hopes (baseline)", "local training"
    ]  # fmt: skip
    assert "does not differ significantly from the ranks of: hopes (baseline)" in text
    assert "tuning counted: 1 of 3; parameters known: 1 of 3" in text


def test_a_failed_check_of_the_parameter_search_is_reported(results):
    (row,) = FOUND["tuning_check"]
    failed = {**FOUND, "tuning_check": [{**row, "ratio": 1.27, "low": 0.001, "passed": False}]}
    text = pages(replace(results, comparison=failed))["comparison.html"]
    assert "fails at ε = 1: its loss is 1.27 times" in " ".join(text.split())


def test_page_tabulates_learned_losses_the_search_check_and_grid_borders(text):
    assert rows_after(text, "largest-budget") == [[
        "the lasso", "tuning counted", "1", "talks", "2", "8", "4 (local training)", "0.5", "80 %"
    ]]  # fmt: skip
    assert rows_after(text, "check") == [[
        "talks", "the lasso", "1", "0.011", "0.01", "98", "1.10", "[−0.001, 0.003]", "yes"
    ]]  # fmt: skip
    assert rows_after(text, "borders") == [["talks", "eta", "8", "0", "2", "a step of 1/L"]]
    assert "40 to 80 records per public record" in text


def test_published_results_have_their_date_and_runs_are_linked(compared, run_folder, tmp_path):
    runs = tmp_path / "runs.parquet"
    runs.write_bytes(b"runs")
    extra = {"published": "2026-01-02", "runs_path": str(runs)}
    published_results = replace(compared, comparison={**FOUND, **extra})
    write_site(published_results, run_folder, tmp_path / "report")
    text = (tmp_path / "report" / "comparison.html").read_text()
    assert "published results of 2026-01-02" in text and f'href="{RUNS}"' in text
    assert (tmp_path / "report" / RUNS).read_bytes() == b"runs"
    without = pages(compared)["comparison.html"]
    assert "published results" not in without and RUNS not in without


def test_fraction_of_the_gap_is_shown_per_budget_with_its_interval(text):
    shares_by_method = dict((name, shares) for name, *shares in rows_after(text, "gap"))
    assert shares_by_method["talks"] == ["−25 % [−25 %, −25 %]", "75 % [75 %, 75 %]"]
    assert shares_by_method["local training"] == ["0 % [0 %, 0 %]"] * 2


def test_budgets_outside_the_tested_range_are_shown_as_inequalities(text):
    assert rows_after(text, "budgets") == [["talks", "0.3", "≤ 0.1", "&gt; 1"]]


def test_gains_with_free_and_with_counted_tuning_are_shown_in_one_row(text):
    ((name, free, paid),) = rows_after(text, "gains")
    assert name == "talks" and free.startswith("0.8") and paid.startswith("1.2")


def test_unproven_methods_are_in_a_separate_table_with_their_bounds(text):
    assert rows_after(text, "unproven")[0] == ["hopes", "the lasso", "0.1", "[7.5, ∞]", "0.001"]
    assert rows_after(text, "absent") == [
        ["hopes", "missing = 0.2, 3 times", "It needs every agent."]
    ]


def test_page_without_a_comparison_states_the_command_to_compute_one(results):
    text = pages(results)["comparison.html"]
    assert "make comparison" in text and "comparison.js" not in text
    assert scripts(results.comparison) == {}


def test_script_data_are_split_by_problem_and_tuning(compared, run_folder, tmp_path):
    write_site(compared, run_folder, tmp_path / "report")
    assets = tmp_path / "report" / "assets"
    index = re.fullmatch(r"comparison\((.*)\);\n", (assets / "compared.js").read_text())
    assert json.loads(index[1])["methods"] == FOUND["methods"]
    assert "problems" not in json.loads(index[1])
    for tuning, count in {"tuned_paid": 3, "tuned": 0, "transferred": 0}.items():
        name = f"lasso-{tuning}"
        text = (assets / f"compared-{name}.js").read_text()
        cells = json.loads(re.fullmatch(rf'compared\("{name}", (.*)\);\n', text)[1])
        all_cells = FOUND["problems"]["lasso"]
        assert cells == [{"cell": c["cell"], **c["tuned_paid"]} for c in all_cells][:count]


def whole_design() -> dict:
    """Return results of the complete design for every method and cell.

    Every number has its maximum length.
    """
    raw = yamls.read(Path(__file__).parents[2] / "config" / "comparison.yaml")
    design = read_comparison(raw)
    design_record = json.loads(json.dumps(described(design, [])))
    names, observers = list(design.methods), list(OBSERVERS[:4])

    def rows(columns, methods=design.methods):
        return [[names.index(name), *[LONG] * (len(columns) - 1)] for name in methods]

    cell_results = {
        **{
            o: rows(METHOD_COLUMNS, [
                n for n, m in design.methods.items() if m.observer in (o, "anyone") and m.proven
            ])
            for o in observers
        },
        "unproven": rows(UNPROVEN, [n for n, m in design.methods.items() if not m.proven]),
        "costs": rows(["method", *COSTS]),
    }  # fmt: skip
    problems: dict[str, list] = {name: [] for name in design.problems}
    for grid_cell in cells(design):
        *keys, _ = grid_cell.row().values()
        problems[grid_cell.environment.problem].append(
            {"cell": keys, **dict.fromkeys(TUNINGS, cell_results)}
        )
    ranking = {**RANKING, "methods": names, "mean_ranks": [LONG] * len(names),
               "low": [LONG] * len(names), "high": [LONG] * len(names),
               "indistinguishable": names, "left_out": {}}  # fmt: skip
    goals = [{"end": end, "epsilon": 1.0, "goal": LONG, "needed": dict.fromkeys(names, [LONG] * 3)}
             for end in GOALS]  # fmt: skip
    gains = {name: {tuning: [LONG] * 3 + [5] for tuning in TUNINGS[:2]} for name in names}
    return {
        **FOUND, **{key: design_record[key] for key in REPEATED},
        "observers": observers, "problems": problems,
        "advice": FOUND["advice"] * 20, "absent": FOUND["absent"] * 100,
        "ranks": {
            o: {t: dict.fromkeys(["remaining", "all", *problems], ranking) for t in TUNINGS}
            for o in observers
        },
        "too_small": {o: FOUND["too_small"]["eavesdropper"] for o in observers},
        "learned": [], "borders": [], "tuning_check": [],
        "budgets": dict.fromkeys(problems, goals), "gains": {"eavesdropper": gains},
    }  # fmt: skip


def test_pages_and_files_of_the_complete_comparison_are_within_the_size_limit(results):
    answers = whole_design()
    assert sum(map(len, answers["problems"].values())) >= 100 and len(answers["methods"]) >= 31
    text = pages(replace(results, comparison=answers))["comparison.html"]
    assert text.count("<tr>") > 20 * len(answers["methods"])
    assert len(text.encode()) < LARGEST_PAGE
    for name, script in scripts(answers).items():
        assert len(script) < LARGEST_PAGE, name


PICK = """(name, value) => {
  const select = document.getElementById('pick-' + name);
  select.value = value;
  select.dispatchEvent(new Event('change'));
  return document.getElementById('compared-says').innerText;
}"""


@pytest.mark.browser
@pytest.mark.skipif(chromium.find() is None, reason="no browser is installed")
def test_page_shows_the_selected_cell_or_the_nearest_cell_that_was_run(
    compared, run_folder, tmp_path
):
    write_site(compared, run_folder, tmp_path / "report")
    with chromium.browser(tmp_path / "profile") as tab:
        for width in (1280, 390):
            tab.look(width, 812, "light")
            tab.open(tmp_path / "report" / "comparison.html")
            tab.until("document.querySelectorAll('#compared-ranking tbody tr').length === 2")
            says = "document.getElementById('compared-says').innerText"
            assert "talks is best" in tab.value(says) and "75 %" in tab.value(says)
            assert "larger by at least 0.25" in tab.value(says)
            hidden = "document.getElementById('compared-nearest').hidden"
            assert tab.value(hidden) is True
            assert "local training is best" in tab.value(f"({PICK})('epsilon', '0.1')")
            nearest = "document.getElementById('compared-nearest').innerText"
            tab.value(f"({PICK})('graph', 'grid')")
            assert "was not run" in tab.value(nearest) and "a ring, i.i.d., ε = 0.1" in tab.value(
                nearest
            )
            # Two cells differ in one axis each. The page shows the cell with the closer budget.
            tab.value(f"({PICK})('graph', 'ring')")
            assert "edges failing 0.2, ε = 1" in tab.value(f"({PICK})('links', '0.2')")
            assert "hopes" in tab.value("document.getElementById('compared-unranked').innerText")
            tab.value(f"({PICK})('tuning', 'tuned')")
            tab.until(f"{says}.startsWith('No cell of this problem')")
            assert tab.value("document.documentElement.scrollWidth") <= width
        assert tab.complaints() == []


def test_page_of_a_small_scale_shows_numbers_without_verdicts(results):
    small = replace(results, comparison=without_decisions(FOUND, results.scale))
    text = pages(small)["comparison.html"]
    assert "The smoke scale decides no claim" in text
    assert not [word for word in ("did not hold", ">held", "best private") if word in text]
    verdicts = {row["verdict"] for row in small.comparison["advice"]}
    assert verdicts <= {"undecided", "cannot be tested"}
    columns = FOUND["place"]
    best, mean = columns.index("may_be_best"), columns.index("mean")
    rows = small.comparison["problems"]["lasso"][0]["tuned_paid"]["eavesdropper"]
    full_rows = FOUND["problems"]["lasso"][0]["tuned_paid"]["eavesdropper"]
    assert [row[best] for row in rows] == [None] * len(full_rows)
    assert [row[mean] for row in rows] == [row[mean] for row in full_rows]


def test_published_answers_of_the_comparison_keep_their_decisions_at_a_small_scale(tmp_path):
    """Published results were computed at the scale of the papers."""
    assert comparison_of(tmp_path, "smoke") == {}
    for name, headline in (("reference", FOUND["headline"]), ("smoke", [scale_notice("smoke")])):
        write_json(tmp_path / name / "comparison" / "answers.json", FOUND)
        answers = comparison_of(tmp_path, "smoke")
        assert answers["headline"] == headline
        assert ("published" in answers) == (name == "reference")
