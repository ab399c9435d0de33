"""Test mean ranks, sets of possibly best methods, Pareto fronts, gaps and budgets."""

from itertools import combinations

import numpy as np
import pytest
from handmade import rows, table
from scipy.stats import ttest_1samp

from private_consensus.comparison.ranks import complete_part, friedman, rank
from private_consensus.comparison.statistics import (
    budget_needed,
    closed_fractions,
    crossing,
    front,
    methods_by_mean,
)
from private_consensus.comparison.tables import compared, cube
from private_consensus.core.randomness import generator

# Areas under the curve of four classifiers on fourteen data sets (Demsar 2006, Table 6). In the
# last row but one, the table prints 0.975 twice and ranks the third before the fourth.
DEMSAR = np.array([
    [0.763, 0.768, 0.771, 0.798], [0.599, 0.591, 0.590, 0.569], [0.954, 0.971, 0.968, 0.967],
    [0.628, 0.661, 0.654, 0.657], [0.882, 0.888, 0.886, 0.898], [0.936, 0.931, 0.916, 0.931],
    [0.661, 0.668, 0.609, 0.685], [0.583, 0.583, 0.563, 0.625], [0.775, 0.838, 0.866, 0.875],
    [1.000, 1.000, 1.000, 1.000], [0.940, 0.962, 0.965, 0.962], [0.619, 0.666, 0.614, 0.669],
    [0.972, 0.981, 0.9751, 0.975], [0.957, 0.978, 0.946, 0.970],
])  # fmt: skip


DATA_SETS = [f"set {number}" for number in range(14)]


def test_mean_ranks_agree_with_the_published_example_of_demsar():
    """Demsar prints mean ranks 3.143, 2.000, 2.893, 1.964 for 14 data sets."""
    ranking = rank(["plain", "m", "cf", "both"], -DEMSAR, DATA_SETS)
    assert ranking.methods == ("both", "m", "cf", "plain")
    np.testing.assert_allclose(ranking.mean_ranks, [1.964, 2.0, 2.893, 3.143], atol=5e-4)
    assert (ranking.cells, ranking.of, ranking.problems) == (14, 14, tuple(DATA_SETS))
    column = ranking.by_problem[:, 0]
    expected = ttest_1samp(column, 0.0).confidence_interval()
    np.testing.assert_allclose([ranking.low[0], ranking.high[0]], [expected.low, expected.high])


def test_more_cells_of_one_problem_do_not_narrow_the_interval():
    """Copies of a cell are no additional evidence: mean and interval are unchanged."""
    values = np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 3.0], [1.0, 3.0, 2.0]])
    problems = ["a", "b", "c"]
    once = rank(["x", "y", "z"], values, problems)
    often = rank(["x", "y", "z"], np.repeat(values, [1, 20, 5], 0), np.repeat(problems, [1, 20, 5]))
    np.testing.assert_allclose(often.mean_ranks, once.mean_ranks)
    np.testing.assert_allclose(often.low, once.low)
    assert often.p == pytest.approx(once.p) and often.cells == 26


def test_intervals_are_truncated_to_possible_mean_ranks():
    values = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [2.0, 1.0, 3.0]])
    ranking = rank(["x", "y", "z"], values, ["a", "b", "c"])
    assert ranking.low[0] == 1.0 and ranking.high[1] == 3.0
    assert ranking.low[0] < ranking.mean_ranks[0] < ranking.high[0] < 3.0


def test_methods_are_distinguished_only_by_differences_on_several_problems():
    values = np.array([[1, 2, 9], [2, 1, 9], [1, 2, 9], [2, 1, 9], [1, 2, 9], [2, 1, 9]], float)
    ranking = rank(["a", "b", "worst"], values, list("uvwxyz"))
    assert ranking.indistinguishable() == ("b",)
    single_problem = rank(["a", "b", "worst"], values, ["same"] * 6)
    assert (
        single_problem.indistinguishable() == ("b", "worst") and np.isnan(single_problem.low).all()
    )


def test_friedmans_test_agrees_with_a_hand_calculation():
    """The ranks are 1 2 3 in three problems and 2 1 3 in one, with means 5/4, 7/4 and 3.

    The statistic is 12 * 4 / (3 * 4) * (sum of squares - 3 * 16 / 4)
    = 4 * (25/16 + 49/16 + 9 - 12) = 6.5.
    """
    values = np.array([[1, 2, 3], [10, 20, 30], [0.1, 0.2, 0.3], [2, 1, 3]])
    # chi-squared with two degrees of freedom
    assert friedman(values) == pytest.approx(np.exp(-6.5 / 2))


def test_equal_values_give_p_1_equal_mean_ranks_and_no_distinguishable_method():
    same = np.ones((5, 3))
    assert friedman(same) == 1.0
    ranking = rank(["a", "b", "c"], same, list("uvwxy"))
    assert set(ranking.mean_ranks) == {2.0} and ranking.indistinguishable() == ("b", "c")
    assert np.isnan(rank(["a", "b"], np.array([[1.0, 2.0]]), ["u"]).p)
    assert rank(["a"], np.full((0, 1), np.nan), []).methods == ()


def test_values_equal_up_to_rounding_are_ties_and_divergence_has_the_last_rank():
    values = np.array([[0.1 + 0.2, 0.3, np.inf], [1.0, 1.0, np.inf]])
    ranking = rank(["a", "b", "c"], values, ["u", "v"])
    assert dict(zip(ranking.methods, ranking.mean_ranks, strict=True)) == {
        "a": 1.5,
        "b": 1.5,
        "c": 3,
    }


def test_ranks_use_only_cells_in_which_all_compared_methods_ran():
    nan = np.nan
    values = np.array([[1, 2, nan, 9.0], [1, 2, nan, nan], [2, 1, nan, 9.0], [nan, nan, 5, nan]])
    ranking = rank(["a", "b", "seldom", "half"], values, ["u", "v", "v", "w"])
    # Three cells of two methods and two cells of three methods have equally many entries.
    # The selection with more methods is used.
    assert set(ranking.methods) == {"a", "b", "half"}
    assert (ranking.cells, ranking.of) == (2, 4)
    assert ranking.left_out == {"seldom": 1}


def test_the_complete_part_has_the_most_pairs_of_all_selections():
    names = list("abcdef")
    for seed in range(20):
        ran = generator(seed, "ran").uniform(size=(12, 6)) < np.linspace(0.95, 0.4, 6)
        cells, methods = complete_part(names, ran)
        assert ran[np.ix_(cells, methods)].all()
        max_pairs = max(
            size * ran[:, list(subset)].all(1).sum()
            for size in range(1, 7)
            for subset in combinations(range(6), size)
        )
        assert len(cells) * len(methods) == max_pairs


def test_a_method_with_more_cells_than_others_is_dropped_if_this_adds_pairs():
    """``wide`` ran in five cells. The other three methods ran in the same four cells."""
    ran = np.array([[0, 0, 0, 1]] * 4 + [[1, 1, 1, 1]] + [[1, 1, 1, 0]] * 3, bool)
    cells, methods = complete_part(["a", "b", "c", "wide"], ran)
    assert (cells.tolist(), methods.tolist()) == ([4, 5, 6, 7], [0, 1, 2])


def test_the_complete_part_does_not_depend_on_the_order_of_methods():
    ran = np.array([[1, 0], [0, 1]], bool)
    for names in (["a", "b"], ["b", "a"]):
        cells, methods = complete_part(names, ran)
        assert [names[i] for i in methods] == ["a"] and cells.tolist() == methods.tolist()


def test_cells_in_which_a_method_outside_the_ranking_is_better_are_counted():
    nan = np.nan
    values = np.array([[1, 2, 0.5], [1, 2, 3.0], [1, 2, nan], [1, 2, nan]])
    ranking = rank(["a", "b", "seldom"], values, list("uvwx"))
    assert ranking.left_out == {"seldom": 2}
    assert ranking.left_out_lower == 1


def test_a_clearly_worse_method_is_not_possibly_best():
    random = generator(1, "runs")
    shared = random.normal(size=10)
    runs = {
        "good": 1 + shared + 0.01 * random.normal(size=10),
        "as good": 1 + shared + 0.01 * random.normal(size=10),
        "worse": 2 + shared + 0.01 * random.normal(size=10),
        "diverged": np.full(10, np.inf),
    }
    standings = {standing.method: standing for standing in methods_by_mean(runs)}
    assert {name for name, standing in standings.items() if standing.may_be_best} == {
        "as good",
        "good",
    }
    # Runs are paired, so their standard deviation of 1 does not widen the interval.
    assert 0.9 < standings["worse"].behind_low < 1 < standings["worse"].behind_high < 1.1
    assert standings["diverged"].behind_low == np.inf
    assert list(standings)[-1] == "diverged"


def test_the_set_of_possibly_best_methods_has_the_stated_coverage():
    """All of five equal methods are best; their differences are normal, so Student's t is exact."""
    random = generator(2, "coverage")
    standings_of_a = [
        next(p for p in methods_by_mean(dict(zip("abcde", values, strict=True))) if p.method == "a")
        for values in random.normal(size=(400, 5, 10))
    ]
    share = np.mean([standing.may_be_best for standing in standings_of_a])
    assert 0.95 <= share < 1.0


def test_two_runs_exclude_no_method():
    standings = methods_by_mean({"a": np.array([1.0, 1.1]), "b": np.array([2.0, 2.3])})
    assert all(standing.may_be_best for standing in standings)
    assert standings[0].method == "a" and standings[1].behind_low == -np.inf


def test_the_pareto_front_equals_a_brute_force_search():
    points = generator(5, "points").integers(0, 6, (40, 3)).astype(float)
    on = front(points)
    for i, point in enumerate(points):
        dominated = any((p <= point).all() and (p < point).any() for p in points)
        assert on[i] == (not dominated)


def test_the_pareto_front_excludes_diverged_methods_and_unknown_costs():
    """The methods are cheap, good, dominated, diverged and of unknown cost, in this order."""
    points = [[2.0, 1.0], [1.0, 5.0], [1.0, 6.0], [np.inf, 0.0], [0.0, np.nan]]
    assert front(np.array(points)).tolist() == [True, True, False, False, False]


def closed(method, local, central):
    """Return the fraction of the gap between local and central training that one method closes."""
    return closed_fractions(method[None], local, central)[0]


def test_the_closed_fraction_of_a_gap_agrees_with_known_fractions():
    random = generator(7, "gap")
    shared = random.normal(size=12)
    local, central = 5 + shared, 1 + shared
    for share in (-0.5, 0.0, 0.25, 1.0, 1.2):
        estimate = closed(local - share * 4, local, central)
        assert (estimate.value, estimate.low, estimate.high) == pytest.approx(
            (share,) * 3, abs=1e-12
        )
    noisy = closed(local - 2 + 0.1 * random.normal(size=12), local, central)
    assert noisy.low < 0.5 < noisy.high and noisy.high - noisy.low < 0.1


def test_closed_fractions_of_several_methods_equal_those_of_each_method():
    random = generator(9, "gap")
    local, central = 5 + random.normal(size=(2, 12)) * [[1.0], [0.2]] - [[0.0], [4.0]]
    methods = np.stack([local - 1, random.normal(size=12), np.full(12, np.inf), local, central])
    methods[1, 3] = np.inf
    shares = closed_fractions(methods, local, central)
    assert shares == [closed(method, local, central) for method in methods]
    assert [share.value for share in shares] == [
        pytest.approx(shares[0].value),
        *[-np.inf] * 2,
        0,
        1,
    ]
    unknown = closed_fractions(methods, central, local)
    assert np.isnan([share.value for share in unknown]).all() and len(unknown) == len(methods)
    assert [share.value for share in closed_fractions(methods[2:3], local, central)] == [-np.inf]


def test_the_closed_fraction_is_nan_without_a_gap():
    local = generator(8, "gap").normal(size=10)
    central = local + np.resize([1.0, -1.0], 10)
    assert np.isnan(closed(local, local, central)).all()
    assert np.isnan(closed(local, local, local + 1)).all()
    assert np.isnan(closed(local, local, np.full(10, np.inf))).all()
    assert closed(np.full(10, np.inf), central + 9, central).value == -np.inf


def test_the_budget_for_a_goal_is_interpolated_between_mean_losses():
    epsilons = [0.1, 1.0, 10.0]
    losses = 3.0 - 2.0 * np.log10(epsilons)  # 5, 3, 1
    assert crossing(epsilons, losses, 2.0) == pytest.approx(np.sqrt(10.0))
    assert crossing(epsilons, losses, 3.0) == pytest.approx(1.0)
    assert crossing(epsilons, losses, 6.0) == 0.0
    assert crossing(epsilons, losses, 0.5) == np.inf
    assert crossing(epsilons, [np.inf, 3.0, 1.0], 4.0) == 1.0
    # Not monotone: the regression pools 2 and 4.
    assert crossing(epsilons, [5.0, 2.0, 4.0], 3.0) == pytest.approx(1.0)


def test_a_budget_interval_contains_the_estimate_and_can_be_unbounded():
    random = generator(9, "goals")
    epsilons = [0.1, 1.0, 10.0]
    values = np.array([[5.0], [3.0], [1.0]]) + 0.3 * random.normal(size=(3, 10))
    budget = budget_needed(epsilons, values, 2.0)
    assert 1.0 < budget.low < budget.value < budget.high < 10.0
    never = budget_needed(epsilons, values, 0.0)
    assert never.value == np.inf and never.high == np.inf
    # Two runs give no upper bound.
    assert budget_needed(epsilons, values[:, :2], 2.0).high == np.inf


def test_the_cube_of_a_results_table_has_the_expected_methods_cells_and_means():
    results_table = table(
        rows("a", [1.0, 3.0]), rows("b", [4.0]), rows("a", [7.0], epsilon=3.0),
        rows("a", [9.0], tuning="tuned"), rows("a", [0.5], measure="accuracy_mean"),
        rows("unproven", [0.0], proven=False), rows("weak", [0.0], observer="sums"),
    )  # fmt: skip
    ranked = compared(results_table, "eavesdropper")
    losses = cube(ranked, "excess_loss_mean")
    assert losses.methods == ["a", "b"]
    assert [cell[-1] for cell in losses.cells] == [1.0, 3.0]
    np.testing.assert_array_equal(losses.means, [[2.0, 4.0], [7.0, np.nan]])
    assert cube(ranked, "accuracy_mean").means.tolist() == [[-0.5]]
    assert cube(ranked, "excess_loss_mean", "tuned").means.tolist() == [[9.0]]
    assert compared(results_table, "sums")["method"].to_list() == ["weak"]
    assert set(compared(results_table, "sums", ["b"])["method"]) == {"weak", "b"}


def test_methods_in_a_cell_are_compared_on_common_runs():
    results_table = table(
        rows("a", [1.0, 2.0, 3.0]), rows("b", [5.0, 6.0]), rows("c", [0.0], epsilon=3.0)
    )
    runs_by_method = cube(results_table, "excess_loss_mean").of_cell(0)
    assert {name: list(values) for name, values in runs_by_method.items()} == {
        "a": [1.0, 2.0], "b": [5.0, 6.0]
    }  # fmt: skip


def test_every_pair_of_points_on_a_pareto_front_is_incomparable():
    points = generator(6, "pairs").uniform(size=(30, 2))
    for i, j in combinations(np.flatnonzero(front(points)), 2):
        assert (points[i] < points[j]).any() and (points[j] < points[i]).any()
