"""Test the conversion of canonical tables to arrays: encodings, scalings, labels and cards."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from private_consensus.common.errors import InvalidInput
from private_consensus.reproduction.data import PREPARATIONS, Prepared, adult, prepare, scaling
from private_consensus.reproduction.data.acquisition import Acquisition, acquire

TABLES = [n for n, p in PREPARATIONS.items() if p.raw_file.endswith(".parquet")]
DIMENSIONS = {
    "adult-ordinal14": 14,
    "adult-onehot104": 104,
    "adult-onehot41": 41,
    "adult-fair13": 13,
    "adult-fair12": 12,
    "adult-fair12-bias": 13,
    "us-onehot58": 58,
    "us-fair11": 11,
    "brazil-onehot53": 53,
    "mnist-pixels": 784,
    "mnist-parity50": 50,
    "cifar10-pixels": 3072,
}


@pytest.fixture(scope="module")
def raws(tmp_path_factory):
    """Return small surrogate tables of all data sets."""
    cache = tmp_path_factory.mktemp("cache")
    acquisition = Acquisition(source="surrogate", cache=str(cache), surrogate_rows=1500)
    return {
        name: acquire(name, acquisition, seed=5)
        for name in ("adult", "us", "brazil", "mnist", "cifar10")
    }


def prepared(raws, name) -> Prepared:
    return prepare(name, *raws[PREPARATIONS[name].dataset])


@pytest.mark.parametrize("name", DIMENSIONS)
def test_feature_dimensions_equal_those_of_the_papers(raws, name):
    data = prepared(raws, name)
    assert data.features.shape[1] == len(data.columns) == data.card["dim"] == DIMENSIONS[name]


@pytest.mark.parametrize("name", PREPARATIONS)
def test_features_labels_and_splits_are_consistent(raws, name):
    data = prepared(raws, name)
    rows = len(data.features)
    assert np.isfinite(data.features).all() and data.features.min() >= 0
    assert len(data.labels) == rows == data.card["rows"]
    assert all(len(z) == rows and set(np.unique(z)) <= {0, 1} for z in data.protected.values())
    together = np.concatenate(list(data.splits.values()))
    assert sorted(together) == list(range(rows))
    assert data.labels.dtype == np.int8


@pytest.mark.parametrize("name", TABLES)
def test_rows_have_norm_at_most_one(raws, name):
    data = prepared(raws, name)
    norms = np.linalg.norm(data.features, axis=1)
    assert norms.max() <= 1 + 1e-12
    assert set(np.unique(data.labels)) == {-1, 1}
    if PREPARATIONS[name].row_norm == "unit":
        assert norms == pytest.approx(1)


def test_protected_attributes_are_coded_as_stated(raws):
    raw = raws["adult"][0]
    data = prepared(raws, "adult-fair12")
    assert (data.protected["sex"] == (raw["sex"] == "Male").to_numpy()).all()
    assert (data.protected["race"] == (raw["race"] == "White").to_numpy()).all()
    assert (data.protected["age"] == (raw["age"] >= 40).to_numpy()).all()
    assert data.card["protected"]["sex"] == "1 = male"
    assert "sex" not in data.columns and data.columns_of("sex").size == 0


def test_rows_with_missing_values_are_dropped_or_kept(raws):
    raw = raws["adult"][0]
    assert prepared(raws, "adult-onehot104").card["rows"] == raw.drop_nulls().height < raw.height
    prepared_fair = prepared(raws, "adult-fair-onehot")
    assert prepared_fair.card["rows"] == raw.height
    unknown = prepared_fair.features[:, prepared_fair.columns.index("occupation=?")] > 0
    assert (unknown == raw["occupation"].is_null().to_numpy()).all()


def test_one_hot_columns_of_an_attribute_sum_to_one_before_scaling(raws):
    table = raws["adult"][0].drop_nulls()
    encoded = adult.SCHEMA.encode(PREPARATIONS["adult-onehot104"], table)
    x, names = encoded.features, encoded.columns
    for attribute in adult.SCHEMA.categories:
        block = [i for i, n in enumerate(names) if n.startswith(f"{attribute}=")]
        if block:
            assert (x[:, block].sum(axis=1) == 1).all()
    first = table.row(0, named=True)
    assert x[0, names.index(f"race={first['race']}")] == 1
    assert x[0, names.index("age")] == first["age"]


def test_the_training_split_accounts_for_dropped_rows(raws, monkeypatch):
    raw, provenance = raws["adult"]
    monkeypatch.setattr(adult, "SCHEMA", replace(adult.SCHEMA, train=1000))
    data = prepare("adult-ordinal14", raw, provenance)
    complete = raw.head(1000).drop_nulls()
    assert len(data.splits["train"]) == complete.height < 1000
    positive = (complete["income"] == ">50K").to_numpy()
    assert ((data.labels[data.splits["train"]] == 1) == positive).all()


@pytest.mark.parametrize("name", ["adult-onehot41", "brazil-onehot53", "mnist-pixels"])
def test_saving_and_loading_preserves_prepared_data(raws, tmp_path, name):
    data = prepared(raws, name)
    data.save(tmp_path / "a.npz")
    again = Prepared.load(tmp_path / "a.npz")
    assert again.features.dtype == data.features.dtype
    assert (again.features == data.features).all() and (again.labels == data.labels).all()
    assert again.columns == data.columns and again.card == data.card
    assert all((again.protected[k] == v).all() for k, v in data.protected.items())
    assert all((again.splits[k] == v).all() for k, v in data.splits.items())
    data.save(tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


matrices = arrays(float, (7, 4), elements=st.floats(-1e3, 1e3))


@settings(max_examples=60, deadline=None)
@given(matrices)
def test_scaled_features_stay_within_their_bounds(x):
    assert np.abs(scaling.column_max(x)).max() <= 1
    unit = scaling.minmax(x)
    assert unit.min() >= 0 and unit.max() <= 1
    assert np.linalg.norm(scaling.minmax_sqrt_dim(x), axis=1).max() <= 1 + 1e-12
    assert np.linalg.norm(scaling.clip_rows(x), axis=1).max() <= 1 + 1e-12


def test_clipping_shortens_only_long_rows_and_unit_scaling_normalises_rows():
    x = np.array([[0.3, 0.4], [3.0, 4.0], [0.0, 0.0]])
    assert scaling.clip_rows(x) == pytest.approx(np.array([[0.3, 0.4], [0.6, 0.8], [0, 0]]))
    assert scaling.unit_rows(x) == pytest.approx(np.array([[0.6, 0.8], [0.6, 0.8], [0, 0]]))


def test_the_real_adult_data_have_the_expected_sizes(mirror_path, tmp_path):
    raw = acquire("adult", Acquisition(mirror=mirror_path, cache=str(tmp_path)))
    data = prepare("adult-onehot104", *raw)
    assert data.features.shape == (45_222, 104)
    assert {name: len(rows) for name, rows in data.splits.items()} == {
        "train": 30_162,
        "test": 15_060,
    }
    # The complete rows use every column of the one-hot encoding.
    assert (data.features.max(axis=0) > 0).all()


@pytest.mark.parametrize("how", ["halved", "empty", "text", "an array", "gone", "pickled"])
def test_a_damaged_prepared_file_is_named(raws, tmp_path, how):
    path = tmp_path / "adult.npz"
    prepared(raws, "adult-fair12").save(path)
    contents = path.read_bytes()
    path.write_bytes({"halved": contents[: len(contents) // 2], "text": b"no zip"}.get(how, b""))
    if how == "gone":
        path.unlink()
    elif how == "an array":
        with open(path, "wb") as stream:
            np.save(stream, np.ones(3))
    elif how == "pickled":
        np.savez(path, features=np.array([{}], dtype=object))
    with pytest.raises(InvalidInput, match=r"adult\.npz: .*(delete it|run the command)"):
        Prepared.load(path)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_non_finite_features_are_refused(raws, tmp_path, value):
    data = prepared(raws, "adult-fair12")
    features = data.features.copy()
    features[5, 1] = value
    with pytest.raises(InvalidInput, match=r"prepared\.adult-fair12\.features: .*finite numbers"):
        replace(data, features=features)


def test_parity_has_means_of_blocks_and_even_digits_as_positive(raws):
    data, pixels = prepared(raws, "mnist-parity50"), prepared(raws, "mnist-pixels")
    assert ((data.labels == 1) == (pixels.labels % 2 == 0)).all()
    images = pixels.features.reshape(-1, 28, 28)
    expected = [
        images[:, i : i + 4, j : j + 4].mean((1, 2))
        for i in range(0, 28, 4)
        for j in range(0, 28, 4)
    ]
    rows = np.column_stack([*expected, np.ones(len(images))])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    np.testing.assert_allclose(data.features, rows, rtol=1e-6)


@pytest.mark.parametrize(
    ("change", "column"),
    [
        (pl.lit(21.7).alias("age"), "age"),
        (pl.lit(None, pl.String).alias("income"), "income"),
    ],
)
def test_fractions_and_missing_labels_are_refused(raws, change, column):
    raw, _ = raws["adult"]
    with pytest.raises(InvalidInput, match=f"^{column}: "):
        adult.SCHEMA.check(raw.with_columns(change))
