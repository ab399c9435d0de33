"""Test splits of user data: equal shares from all table formats, record-independent bounds."""

import math

import numpy as np
import pandas
import polars as pl
import pytest

import private_consensus as pc
from private_consensus.common.errors import InvalidInput
from private_consensus.core.problems.logistic_regression import LogisticRegression

RANDOM = np.random.default_rng(7)
SITES = np.repeat(["c", "a", "b"], [4, 9, 2])
TABLE = pl.DataFrame(
    {
        "age": RANDOM.uniform(20, 60, 15),
        "income": RANDOM.normal(0, 1, 15),
        "sex": np.where(np.arange(15) % 2, "f", "m"),
        "site": SITES,
        "ill": np.arange(15) % 3 % 2,
    }
)
OPTIONS = {
    "label": "ill",
    "agent": "site",
    "bounds": {"age": (0, 100)},
    "categories": {"sex": ["f", "m"]},
    "clip": 1.5,
}


def assert_equal_shares(a, b):
    assert a.agents == b.agents and a.ranges == b.ranges and a.bound == b.bound
    for name in ("features", "labels", "sizes", "test_features", "test_labels"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


def test_all_table_formats_give_equal_shares(tmp_path):
    shares = pc.split(TABLE, **OPTIONS)
    assert shares.agents == ("a", "b", "c") and shares.sizes.tolist() == [9, 2, 4]
    ranges = {"age": (0.0, 100.0), "income": None, "sex=f": (-1.0, 1.0), "sex=m": (-1.0, 1.0)}
    assert shares.ranges == ranges
    TABLE.write_csv(tmp_path / "own.csv")
    assert_equal_shares(shares, pc.split(tmp_path / "own.csv", **OPTIONS))
    assert_equal_shares(shares, pc.split(str(tmp_path / "own.csv"), **OPTIONS))
    assert_equal_shares(
        shares, pc.split({name: TABLE[name].to_list() for name in TABLE.columns}, **OPTIONS)
    )
    frame = pandas.DataFrame({name: TABLE[name].to_list() for name in TABLE.columns})
    frame["sex"] = frame["sex"].astype("category")
    assert_equal_shares(shares, pc.split(frame, **OPTIONS))


def test_an_array_has_numbered_columns():
    shares = pc.split(TABLE.select("age", "income").to_numpy(), agent=3, clip=30.0)
    assert list(shares.ranges) == ["column_0", "column_1"]
    assert np.linalg.norm(shares.features, axis=-1).max() == pytest.approx(30.0)


def test_the_objective_averages_all_records_and_ignores_padding():
    """Compare with sums over the records of each agent without padding."""
    shares = pc.split(TABLE, **OPTIONS)
    problem, ridge = shares.logistic_regression(0.1), 0.1
    x = RANDOM.normal(size=(3, problem.dim))
    losses, gradients, errors = [], [], []
    for agent, count in enumerate(shares.sizes):
        rows = np.c_[shares.features[agent, :count] / 1.5, np.ones(count)] / np.sqrt(2)
        signed = shares.labels[agent, :count, None] * rows
        margins = signed @ x[agent]
        losses.append(np.log1p(np.exp(-margins)))
        gradients.append(-3 / 15 * signed.T @ (1 / (1 + np.exp(margins))) + ridge * x[agent])
        errors.append((rows @ x[agent] > 0) != (shares.labels[agent, :count] > 0))
    np.testing.assert_allclose(problem.gradient(x), gradients)
    assert problem.measure("own_loss", x) == pytest.approx(np.mean([v.mean() for v in losses]))
    assert problem.local_error(x) == pytest.approx(np.concatenate(errors).mean())
    positive = TABLE["ill"].mean()
    majority = problem.measure("majority_train_accuracy", x)
    assert majority == pytest.approx(max(positive, 1 - positive))
    same_model = np.broadcast_to(x[0], x.shape)
    per_record = (
        problem.objective(same_model).sum() / 3
        - problem.objective(np.broadcast_to(problem.optimum, x.shape)).sum() / 3
    )
    assert problem.measure("excess_loss", same_model) == pytest.approx(per_record)
    assert problem.part(slice(0, 3)).sizes.tolist() == [3, 2, 3]


def test_an_audit_of_uneven_shares_does_not_contradict_the_claim():
    problem = pc.split(TABLE, **OPTIONS).logistic_regression(0.1)
    network = pc.networks.build(pc.Streams(0, (0,)), "ring", 3)
    algorithm, budget = pc.algorithms.load("muffliato_gd")(), pc.Budget(1.0, 1e-5)
    setting = algorithm, problem, network, budget, 2
    assert pc.audit(*setting, pairs=12).verdict == "not contradicted"
    done = pc.simulate(*setting, runs=1)
    assert done.guarantee.epsilon == pytest.approx(1.0, rel=1e-6)
    scale = done.algorithm.noise
    # Compute mu of two messages directly; all shares have the same sensitivity.
    mu = np.sqrt(2) * 2 * 3 / 15 / scale
    assert pc.privacy.gaussian_epsilon(mu, 1e-5) == pytest.approx(1.0, rel=1e-6)


def test_records_out_of_bounds_are_refused_unless_clipping_is_requested():
    table = TABLE.with_columns(age=pl.when(pl.col("site") == "b").then(130.0).otherwise(50.0))
    options = {**OPTIONS, "features": ["age"], "categories": None}
    unclipped = options | {"clip": None}
    message = r"age of data\[agent b, row 13\]: found 130.0, expected a number in \[0, 100\]"
    with pytest.raises(InvalidInput, match=message):
        pc.split(table, **unclipped)
    assert pc.split(table, **options).features[1, 0, 0] == 1.0
    message = r"norm of data\[agent c, row 0\]: found 50.0, expected an l2 norm of at most 10"
    with pytest.raises(InvalidInput, match=message):
        pc.split(table, **unclipped | {"bounds": None, "bound": 10})
    clipped = pc.split(table, **options | {"bounds": None, "clip": 10})
    assert clipped.features[0, 0, 0] == pytest.approx(10.0)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"clip": None}, "clip: missing, expected clip=NORM"),
        ({"bounds": {"sex": (0, 1)}}, "bounds: found 'sex', expected one of age, income"),
        ({"agent": 16}, "agent: found 16, expected a whole number >= 1 and <= 15"),
        ({"categories": None}, "sex of data.agent c, row 0.: found 'm', .* or categories="),
        ({"categories": {"sex": ["f", "f"]}}, "categories.sex: .* expected different values"),
        ({"label": "sick"}, "label: found 'sick', expected one of age, income"),
        ({"labels": None}, "labels: missing, expected two different labels"),
        ({"categories": ["sex"]}, "categories: .* expected a mapping of columns"),
        ({"labels": (1, 2)}, r"ill of data\[agent c, row 0\]: found 0, expected 1 or 2"),
        ({"features": ["age", "age"]}, "features: .* expected at least one column, each once"),
        ({"test": 1.0}, "test: found 1.0"),
        ({"bound": 2.0}, "bound: found 2.0, expected either bound or clip"),
    ],
)
def test_errors_name_the_missing_or_invalid_option_of_a_split(changed, message):
    with pytest.raises(InvalidInput, match=message):
        pc.split(TABLE, **OPTIONS | changed)


def test_a_missing_value_is_named_with_agent_row_and_column():
    columns = {"x": [None, 1.0, 0.0], "text": ["a", None, "b"], "site": ["a", "b", "b"]}
    for data in (pl.DataFrame(columns), pandas.DataFrame(columns)):
        with pytest.raises(InvalidInput, match=r"^x of data\[agent a, row 0\]: missing"):
            pc.split(data, agent="site", features=["x"], bounds=(0, 1))
        with pytest.raises(InvalidInput, match=r"^text of data\[agent b, row 1\]: missing"):
            pc.split(data, agent="site", features=["x"], label="text", labels=("a", "b"))
        with pytest.raises(InvalidInput, match=r"^agent of row 1: missing"):
            pc.split(data, agent="text", features=["x"], clip=1.0)


def test_integers_of_128_bits_are_numbers(tmp_path):
    (tmp_path / "table.csv").write_text(f"x,ill\n{2**80},0\n1,1\n")
    shares = pc.split(tmp_path / "table.csv", label="ill", agent="ill", bound=2.0**80)
    np.testing.assert_array_equal(shares.features.ravel(), [2.0**80, 1.0])


@pytest.mark.parametrize("size", [1e-320, 1.0, 1e150])
def test_records_of_any_finite_norm_are_clipped_to_the_bound(size):
    columns = {"a": [size, 3.0, 0.0], "b": [0.0, 4.0, 0.0], "site": [0, 0, 0]}
    shares = pc.split(columns, agent="site", clip=1.0)
    expected = [min(size, 1.0), 1.0, 0.0]
    np.testing.assert_allclose(np.hypot(*shares.features[0].T), expected, rtol=1e-15)
    np.testing.assert_allclose(shares.features[0, 1], [0.6, 0.8], rtol=1e-15)


def test_no_public_number_depends_on_a_record():
    """Replacing a record within the bounds leaves all public numbers unchanged."""
    replacement = pl.DataFrame({"age": 99.0, "income": 70.0, "sex": "f", "site": "a", "ill": 1})
    table = TABLE.with_columns(pl.col("ill").cast(pl.Int64))
    neighbour = pl.concat([table[:5], replacement.cast(table.schema), table[6:]])
    shares, moved = (pc.split(data, **OPTIONS) for data in (table, neighbour))
    for name in ("agents", "ranges", "bound", "clip", "label_names"):
        assert getattr(shares, name) == getattr(moved, name), name
    first, second = shares.logistic_regression(), moved.logistic_regression()
    for name in ("weight", "ridge", "smoothness", "record_gradient_change", "lipschitz"):
        assert getattr(first, name) == getattr(second, name), name
    assert (first.features != second.features).any()


def test_records_are_split_by_number_of_agents_and_test_fraction():
    columns = {"features": ["age", "income"], "categories": None}
    assert sorted(pc.split(TABLE, **OPTIONS | columns | {"agent": 4}).sizes) == [3, 4, 4, 4]
    of_sites = pc.split(TABLE, **OPTIONS | columns | {"test": 0.5})
    assert of_sites.sizes.tolist() == [5, 1, 2] and len(of_sites.test_labels) == 7
    even = pc.split(TABLE, **OPTIONS | columns | {"agent": 4, "test": 0.5})
    assert even.sizes.sum() + len(even.test_labels) == 15
    assert even.sizes.max() - even.sizes.min() <= 1
    rows = np.concatenate([even.features[i, :n] for i, n in enumerate(even.sizes)])
    all_rows = np.concatenate([rows, even.test_features])
    unsplit = pc.split(TABLE, **OPTIONS | columns | {"agent": 1}).features[0]
    assert sorted(map(tuple, all_rows)) == sorted(map(tuple, unsplit))
    again = pc.split(TABLE, **OPTIONS | columns | {"agent": 4, "test": 0.5})
    assert_equal_shares(even, again)


@pytest.mark.parametrize("clip", [None, 0.8, 50.0])
def test_the_prediction_rule_gives_the_margins_of_all_records(clip):
    """Predict from the table and the rule, with records outside the bounds if there is clipping."""
    income = pl.col("income") * (1.0 if clip is None else 3.0)
    table = TABLE.with_columns(income=income, ill=pl.Series(["no", "yes", "no"] * 5))
    bounds = {"age": (0, 100), "income": (-3, 3)}
    options = {**OPTIONS, "bounds": bounds, "clip": clip, "labels": ("no", "yes")}
    shares = pc.split(table, **options)
    problem = shares.logistic_regression()
    model = np.random.default_rng(3).normal(size=problem.dim)
    rule = shares.prediction_rule(model)
    assert rule["labels"] == {"-1": "no", "+1": "yes"} and rule["clip"] == clip
    assert rule["bounds"] == {**bounds, "sex=f": (-1.0, 1.0), "sex=m": (-1.0, 1.0)}
    for number, site in enumerate(shares.agents):
        for j, record in enumerate(table.filter(site=site).rows(named=True)):
            values = {"sex=f": float(record["sex"] == "f"), "sex=m": float(record["sex"] == "m")}
            for name, (low, high) in bounds.items():
                value = record[name] if clip is None else min(max(record[name], low), high)
                values[name] = (2 * value - low - high) / (high - low)
            norm = math.sqrt(sum(value**2 for value in values.values()))
            factor = 1.0 if clip is None else min(1.0, clip / norm)
            slopes = rule["encoded_coefficients"]
            odds = rule["encoded_intercept"]
            odds += factor * sum(slopes[name] * values[name] for name in values)
            assert odds == pytest.approx(model @ problem.features[number, j])
            assert rule["labels"]["+1" if problem.labels[number, j] > 0 else "-1"] == record["ill"]
    with pytest.raises(InvalidInput, match=r"model: found .4,., expected an array of 5 coeff"):
        shares.prediction_rule(model[1:])
    unlabelled = pc.split(table.drop("ill"), **options | {"label": None})
    with pytest.raises(InvalidInput, match="label: missing, expected labels"):
        unlabelled.logistic_regression()


def test_the_mean_of_a_category_indicator_is_its_fraction():
    options = {"agent": "site", "bounds": {"age": (0, 100)}, "categories": {"sex": ["f", "m"]}}
    shares = pc.split(TABLE, features=["age", "sex"], **options)
    problem = shares.mean_estimation()
    fraction = (TABLE["sex"] == "f").mean()
    expected = [TABLE["age"].mean(), fraction, 1 - fraction]
    assert shares.unscaled(problem.target[0]) == pytest.approx(expected)
    unbounded = pc.split(TABLE, **options | {"features": ["income", "sex"], "bounds": None}, clip=1)
    with pytest.raises(
        InvalidInput, match=r"bounds: missing, expected bounds=\{'income': \(low, high\)\}"
    ):
        unbounded.mean_estimation()
    ambiguous = TABLE.with_columns(pl.col("income").alias("sex=f"))
    with pytest.raises(InvalidInput, match=r"data: found .*sex=f.*expected different names"):
        pc.split(ambiguous, features=["sex=f", "sex"], clip=1.0, **options | {"bounds": None})


def test_the_mean_of_uneven_shares_equals_the_mean_of_all_records():
    shares = pc.split(TABLE, agent="site", features=["age"], bounds=(0, 100))
    problem = shares.mean_estimation()
    assert problem.records == 5 and problem.size_ratio == 9 / 5
    assert shares.unscaled(problem.target[0]) == pytest.approx(TABLE["age"].mean())
    # Moving a record from one bound to the other changes the gradient by the stated amount.
    ends = [TABLE.with_columns(age=pl.Series([*TABLE["age"][:14], end])) for end in (0.0, 100.0)]
    options = {"agent": "site", "features": ["age"], "bounds": (0, 100)}
    low, high = (pc.split(table, **options).mean_estimation() for table in ends)
    x = np.zeros((1, 3, 1))
    moved = np.abs(low.gradient(x) - high.gradient(x))
    assert moved.max() == pytest.approx(problem.record_change("l2"))
    with pytest.raises(InvalidInput, match="number of records: found 14"):
        pc.split(TABLE[1:], **options).mean_estimation()


def test_nonempty_padding_and_invalid_sizes_are_refused():
    rows, labels = np.zeros((2, 3, 2)), np.full((2, 3), -1.0)
    rows[1, 2] = 0.5
    empty = np.zeros((0, 2)), np.zeros(0)
    with pytest.raises(InvalidInput, match=r"problem.labels\[agent 1, record 2\].*padding"):
        LogisticRegression(rows, labels, *empty, 1.0, 0.1, sizes=np.array([3, 2]))
    with pytest.raises(InvalidInput, match=r"problem.sizes\[agent 0\]: found 4"):
        LogisticRegression(rows, labels, *empty, 1.0, 0.1, sizes=np.array([4, 3]))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"age": [1, 2], "ill": [0]}, "data: found 'dict', expected a table"),
        ({"age": ["1", "x"], "ill": [0, 1]}, r"age of data\[agent 0, row 0\]: .* categories="),
        (TABLE[:0], "data: missing, expected at least one column and one record"),
        ({"": [1, 2], "ill": [0, 1]}, "data: found .* expected a title"),
        (pl.DataFrame({"x": [[1], [2]], "ill": [0, 1]}), r"x of data.*: found .*Series"),
        ({"x": np.ma.masked_array([0.5, 0.5], [True, False]), "ill": [0, 1]}, "x of .*: missing"),
        ({"x": np.array([1j, 2]), "ill": [0, 1]}, "^x of data.*: found"),
        ("absent.csv", "data: found 'absent.csv', expected a table .* or the path of a CSV file"),
    ],
)
def test_invalid_tables_are_refused(data, message):
    with pytest.raises(InvalidInput, match=message):
        pc.split(data, label="ill", agent=1, clip=1.0)


@pytest.mark.parametrize("bounds", [(-1.7e308, 1.7e308), (1e308, 1.1e308), (0.0, np.inf)])
def test_bounds_whose_difference_overflows_are_refused(bounds):
    with pytest.raises(InvalidInput, match=r"bounds\.x: .*expected a pair"):
        pc.split({"x": [0.0, 1.0]}, agent=2, bounds=bounds)
