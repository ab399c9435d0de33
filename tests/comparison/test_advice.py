"""Test that each sentence of advice is decided by pairs of cells and methods."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from handmade import BASE, rows, table
from synthetic import rows as synthetic
from synthetic import smoke

from private_consensus.common.errors import InvalidInput
from private_consensus.comparison.advice import Advice, Sentence, judged, read_advice
from private_consensus.comparison.design import cells
from private_consensus.comparison.headline import ahead_of_private, local_baselines, sentences
from private_consensus.comparison.ranks import rank
from private_consensus.comparison.tables import (
    baselines_of,
    compared,
    cube,
    learnable_by_transfer,
    learnable_cells,
    remaining,
)
from private_consensus.core.randomness import generator

ROOT = Path(__file__).parents[2]
NOISE = generator(4, "advice").normal(size=10)
AT = [
    {**BASE, "problem": problem, "epsilon": epsilon, "axis": "base"}
    for problem in ("mean_estimation", "lasso")
    for epsilon in (0.1, 1.0)
]


def results(levels):
    """Return results with specified levels per method and budget, and noise common to methods."""
    random = generator(5, "own")
    row_lists = [
        rows(name, level + NOISE + 0.01 * random.normal(size=10), problem=problem, epsilon=epsilon)
        for problem in ("mean_estimation", "lasso")
        for name, by_budget in levels.items()
        for epsilon, level in by_budget.items()
    ]
    return table(*row_lists)


DESIGN = {
    "methods": [
        {"name": "talks", "title": "Talks"},
        {"name": "public", "title": "Public records", "baseline": "public_minimiser"},
    ],
    "titles": {"problem": {}}, "trials": 16,
}  # fmt: skip
CROSSING = results({
    "local_training": {0.1: 5.0, 1.0: 5.0}, "talks": {0.1: 9.0, 1.0: 3.0},
    "never": {0.1: 9.5, 1.0: 9.5},
})  # fmt: skip


def sentence(**test):
    return Sentence(question="Is it?", because="why", tests=[test])


def verdict(comparison_table, stated, among=AT, min_problems=1):
    advice = Advice(min_problems=min_problems, sentences={"one": stated})
    (row,) = judged(advice, comparison_table, among)
    return row


def test_a_sentence_holds_if_all_of_its_pairs_are_confirmed():
    stated = sentence(
        smaller={"method": "local_training"}, than={"method": "others"}, where={"epsilon": [0.1]}
    )
    row = verdict(CROSSING, stated)
    assert (row["verdict"], row["pairs"], row["confirmed"]) == ("held", 4, 4)
    assert row["runs"] == 10 and row["high"] < 0


def test_contradicted_pairs_refute_a_universal_sentence():
    row = verdict(
        CROSSING, sentence(smaller={"method": "local_training"}, than={"method": "talks"})
    )
    assert (row["verdict"], row["confirmed"], row["contradicted"]) == ("did not hold", 2, 2)
    assert "epsilon = 1" in row["nearest"] and "talks" in row["nearest"]


def test_the_quantifier_some_requires_one_method_per_problem():
    stated = sentence(
        smaller={"method": "others"}, than={"method": "local_training"},
        where={"epsilon": [1.0]}, quantifier="some", group_by="problem",
    )  # fmt: skip
    assert verdict(CROSSING, stated)["verdict"] == "held"
    none = CROSSING.filter(~((CROSSING["problem"] == "lasso") & (CROSSING["method"] == "talks")))
    assert verdict(none, stated)["verdict"] == "held in part"


def test_each_method_is_compared_with_itself_across_tunings_and_cells():
    tuned = table(
        rows("a", 1 + NOISE / 100), rows("a", 2 + NOISE / 100, tuning="transferred"),
        rows("a", 0.5 + NOISE / 100, epsilon=3.0),
    )  # fmt: skip
    at = [{**BASE, "axis": "base"}, {**BASE, "epsilon": 3.0, "axis": "base"}]
    better = sentence(smaller={"method": "each"}, than={"method": "each", "tuning": "transferred"})
    assert verdict(tuned, better, at)["pairs"] == 1
    assert verdict(tuned, better, at)["verdict"] == "held"
    budget = sentence(
        smaller={"method": "each", "where": {"epsilon": 3.0}}, than={"method": "each"},
        where={"epsilon": [1.0]},
    )  # fmt: skip
    assert verdict(tuned, budget, at)["verdict"] == "held"


def test_too_few_runs_are_undecided_and_missing_methods_are_untestable():
    stated = sentence(smaller={"method": "local_training"}, than={"method": "talks"})
    few = CROSSING.filter(CROSSING["run"] < 3)
    assert verdict(few, stated)["verdict"] == "undecided"
    assert verdict(CROSSING.filter(CROSSING["method"] == "talks"), stated)["verdict"] == (
        "cannot be tested"
    )


def test_an_answer_states_its_problems_and_needs_enough_of_them():
    stated = sentence(smaller={"method": "local_training"}, than={"method": "never"})
    row = verdict(CROSSING, stated, min_problems=2)
    assert (row["verdict"], row["answer"]) == ("held", "yes (cells of 2 of 2 problems)")
    only_lasso = CROSSING.filter((pl.col("problem") == "lasso") & (pl.col("epsilon") == 1.0))
    row = verdict(only_lasso, stated, min_problems=2)
    assert row["budgets"] == {"mean_estimation": [], "lasso": [1.0]}
    assert (row["verdict"], row["confirmed"]) == ("undecided", 1)
    assert row["answer"] == "undecided (cells of 1 of 2 problems; 2 are required)"
    row = verdict(CROSSING.clear(), stated, min_problems=2)
    assert row["verdict"] == "cannot be tested"


def test_unproven_methods_are_excluded_from_advice():
    cheats = table(rows("cheat", NOISE - 100, proven=False))
    with_cheats = CROSSING.vstack(cheats.select(CROSSING.columns))
    at = [{**BASE, "epsilon": 1.0, "axis": "base"}]
    stated = sentence(smaller={"method": "others"}, than={"method": "talks"})
    assert "cheat" not in verdict(with_cheats, stated, at)["nearest"]
    assert verdict(with_cheats, stated, at)["pairs"] == 2


def test_verdicts_are_corrected_for_the_number_of_sentences():
    """A difference with p near 0.01 is significant alone, and undecided among twenty others."""
    step = generator(6, "weak").normal(size=10)
    step = (step - step.mean()) / step.std(ddof=1)
    weak = table(rows("a", step), rows("b", np.full(10, 0.95)))  # t = 3.0 with 9 degrees of freedom
    at = [{**BASE, "axis": "base"}]
    stated = sentence(smaller={"method": "a"}, than={"method": "b"})
    many = {"weak": stated} | {
        str(i): sentence(smaller={"method": "b"}, than={"method": "a"}) for i in range(20)
    }
    row = judged(Advice(min_problems=1, sentences=many), weak, at)[0]
    assert verdict(weak, stated, at)["verdict"] == row["verdict_alone"] == "held"
    assert row["p"] < 0.05 < row["p_holm"] and row["verdict"] == "undecided"


def test_every_configured_sentence_is_judged_on_synthetic_results():
    design = smoke()
    stated = read_advice(ROOT / "config" / "advice.yaml", list(design.methods))
    judgements = judged(stated, synthetic(design, runs=6), [cell.row() for cell in cells(design)])
    assert [row["id"] for row in judgements] == list(stated.sentences)
    words = {row["id"]: row["verdict"] for row in judgements}
    # Synthetic losses increase by a factor from each method to the next.
    assert words["communicate"] != "held"
    assert all(row["answer"] for row in judgements)
    assert all(row["because"] for row in judgements)


def test_advice_with_unknown_methods_columns_or_measures_is_refused(tmp_path):
    file = tmp_path / "advice.yaml"
    for text, key in {
        "{smaller: {method: nobody}, than: {method: others}}": "sentences.a.smaller.method",
        "{smaller: {method: each}, than: {method: local}}": "sentences.a",
        "{smaller: {method: local}, than: {method: others}, where: {colour: [1]}}": "a.where",
        "{smaller: {method: local}, than: {method: others}, measure: beauty}": "a.measure",
    }.items():
        questions = f"{{a: {{question: Is it?, because: b, tests: [{text}]}}}}"
        file.write_text(f"min_problems: 1\nsentences: {questions}\n")
        with pytest.raises(InvalidInput) as error:
            read_advice(file, ["local"])
        assert key in error.value.key


def quiet(comparison_table):
    """Subtract the noise per run that all methods share."""
    noise = {run: value for run, value in enumerate(NOISE)}
    return comparison_table.with_columns(
        value=pl.col("value") - pl.col("run").replace_strict(noise)
    )


def headline(comparison_table):
    losses = cube(compared(comparison_table, "eavesdropper"), "excess_loss_mean")
    outcomes = learnable_cells(losses, baselines_of(comparison_table))
    remaining_losses = remaining(losses, outcomes)
    ranking = rank(
        remaining_losses.methods,
        remaining_losses.means,
        [cell[0] for cell in remaining_losses.cells],
    )
    local = local_baselines(comparison_table, AT, outcomes)
    transferred = learnable_by_transfer(
        compared(comparison_table, "eavesdropper"), "excess_loss_mean"
    )
    return local, sentences({"tuned_paid": ranking}, outcomes, transferred, local, DESIGN)


def test_the_headline_states_the_cells_in_which_local_training_is_best():
    local, headline_sentences = headline(CROSSING)
    by_epsilon = [(0.1, "wins"), (1.0, "beaten")]
    assert local == {"mean_estimation": by_epsilon, "lasso": by_epsilon}
    assert "better than local training in 2 of 4 base cells" in headline_sentences[-1]
    assert (
        "local training is best on" in headline_sentences[-1]
        and "ε = 0.1" in headline_sentences[-1]
    )
    # Both mean ranks are 1.5: ties are ordered by name, and no difference is significant.
    assert (
        "local_training has the lowest mean rank: 1.5 of 3" in headline_sentences[0]
        and "Talks" in headline_sentences[0]
    )


def test_the_headline_names_the_method_with_the_lowest_mean_rank():
    for winner, loser in (("a", "b"), ("b", "a")):
        comparison_table = results({winner: {0.1: 1.0, 1.0: 1.0}, loser: {0.1: 3.0, 1.0: 3.0}})
        assert f", {winner} has the lowest mean rank: 1.0 of 2" in headline(comparison_table)[1][0]


def test_the_headline_names_a_baseline_as_such():
    first = headline(results({"talks": {0.1: 1.0, 1.0: 3.0}, "public": {0.1: 3.0, 1.0: 1.0}}))[1][0]
    assert "from Talks." in first
    assert ", Public records (baseline without private data) has the lowest mean rank" in first


def test_the_headline_counts_many_equal_methods_and_names_the_baselines_among_them():
    equal = {name: {0.1: 1.0, 1.0: 1.0} for name in ("a", "b", "c", "d", "e")}
    assert headline(results(equal))[1][0].endswith("differ significantly from 4 other methods.")
    first = headline(results({**equal, "public": equal.pop("e")}))[1][0]
    assert "differ significantly from 4 other methods, including Public records (baseline" in first


def test_the_headline_states_how_often_a_method_outside_the_ranking_is_better():
    everywhere = results({"a": {0.1: 1.0, 1.0: 1.0}, "b": {0.1: 3.0, 1.0: 3.0}})
    seldom = rows("seldom", NOISE, problem="lasso", epsilon=0.1)
    first = headline(everywhere.vstack(table(seldom).select(everywhere.columns)))[1][0]
    assert ": 1.0 of 2, " in first and "4 cells of 2 problems in which all 2 methods ran." in first
    assert first.endswith("has a lower loss in 1 of the 4 cells with a sufficient budget.")


def test_the_headline_counts_the_problems_on_which_a_baseline_is_best():
    private = {"a": {0.1: 5.0, 1.0: 1.0}, "b": {0.1: 6.0, 1.0: 3.0}}
    tables = results({**private, "public": {0.1: 3.0, 1.0: 3.0}}), results(private)
    with_baseline, without = (
        ahead_of_private(cube(rows_of_all, "excess_loss_mean"), ["public"], {**DESIGN, "cells": AT})
        for rows_of_all in tables
    )
    assert with_baseline[0].endswith(": at ε = 0.1 on 2 of 2, at ε = 1 on 0 of 2 problems.")
    assert without == []


def test_cells_in_which_a_model_without_data_is_best_are_excluded():
    """A model without data has loss 4: below all methods at epsilon 0.1, and above one at 1."""
    free = [
        row
        for problem in ("mean_estimation", "lasso")
        for epsilon in (0.1, 1.0)
        for row in rows("nothing", [4.0] * 10, problem=problem, epsilon=epsilon, observer="anyone",
                        epsilon_accountant=0.0)
    ]  # fmt: skip
    comparison_table = table(free).select(CROSSING.columns).vstack(quiet(CROSSING))
    local, headline_sentences = headline(comparison_table)
    assert [[epsilon for epsilon, _ in outcomes] for outcomes in local.values()] == [[1.0], [1.0]]
    assert (
        "In 2 of 4 cells" in headline_sentences[1]
        and "2 of 2 at ε = 0.1, 0 of 2 at ε = 1" in headline_sentences[1]
    )
    assert "if 16 trials are counted" in headline_sentences[1]
    assert "other problems" not in headline_sentences[1]
    small = Sentence(
        question="Is it?", because="why",
        tests=[{"smaller": {"method": "talks"}, "than": {"method": "others"}}],
    )  # fmt: skip
    assert verdict(comparison_table, small)["pairs"] == 4


def test_the_headline_states_where_parameters_from_other_problems_suffice():
    """Each budget is one cell. The model from public records, with loss 2, has no parameters."""
    at = {"problem": "lasso"}
    losses = {0.1: (5.0, 1.0), 1.0: (1.0, 3.0)}  # tuning counted, parameters from other problems
    row_lists = [
        row_list
        for epsilon, (counted, transferred) in losses.items()
        for row_list in (
            rows("talks", counted + NOISE / 100, epsilon=epsilon, **at),
            rows("talks", transferred + NOISE / 100, tuning="transferred", epsilon=epsilon, **at),
            rows("public", [2.0] * 10, epsilon=epsilon, observer="anyone", **at),
        )
    ]
    line = headline(table(*row_lists))[1][1]
    assert line.startswith("In 1 of 2 cells the budget is too small if 16 trials are counted")
    assert "some private method is better in 1 of 2 cells, including 1 of these 1;" in line
