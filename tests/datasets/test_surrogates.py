"""Test surrogates against the real data: marginals, label rate and difficulty of learning."""

import numpy as np
import pytest
from brazil_categories import collapse

from private_consensus.reproduction.data import adult, brazil, catalogue, prepare, us
from private_consensus.reproduction.data.acquisition import Acquisition, acquire

TABLES = {
    "adult": ("adult-onehot104", adult.SCHEMA, lambda table: table),
    "us": ("us-onehot58", us.SCHEMA, lambda table: table),
    "brazil": ("brazil-onehot53", brazil.SCHEMA, collapse),
}


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    acquisition = Acquisition(source="surrogate", cache=str(tmp_path_factory.mktemp("cache")))
    return {name: acquire(name, acquisition, seed=11) for name in [*TABLES, "mnist", "cifar10"]}


@pytest.fixture(scope="module")
def real(mirror_path, tmp_path_factory):
    acquisition = Acquisition(mirror=mirror_path, cache=str(tmp_path_factory.mktemp("cache")))
    return {name: acquire(name, acquisition) for name in [*TABLES, "mnist", "cifar10"]}


def logistic_accuracy(data) -> float:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    order = np.random.default_rng(0).permutation(len(data.labels))
    train, test = order[: len(order) * 3 // 4], order[len(order) * 3 // 4 :]
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=200, tol=1e-3))
    return model.fit(data.features[train], data.labels[train]).score(
        data.features[test], data.labels[test]
    )


@pytest.mark.parametrize("name", TABLES)
def test_the_label_rate_matches_the_stored_aggregates(generated, name):
    _, schema, collapse = TABLES[name]
    rate = catalogue.aggregates(name)["positive"]
    table = collapse(generated[name][0])
    # Labels are Bernoulli draws with this rate; allow four standard errors.
    assert schema.positives(table).mean() == pytest.approx(
        rate, abs=4 * np.sqrt(rate * (1 - rate) / table.height)
    )


def test_stored_aggregates_of_brazil_omit_categories_with_shares_below_0_001():
    aggregates = catalogue.aggregates("brazil")
    for column in aggregates["columns"].values():
        if "quantiles" not in column:
            # A share of 0.000 would mean fewer than 19 records; such categories are omitted.
            assert all(share >= 0.001 for share, _ in column.values())


@pytest.mark.parametrize("name", TABLES)
def test_surrogate_marginals_are_close_to_the_real_marginals(generated, real, name):
    _, schema, collapse = TABLES[name]
    fake, true = collapse(generated[name][0]), collapse(real[name][0])
    assert fake.height == true.height
    for column in set(true.columns) - {schema.label}:
        if true[column].dtype.is_numeric():
            points = np.unique(np.quantile(true[column].to_numpy(), np.linspace(0, 1, 11)))
            below = [[(t[column] <= p).mean() for p in points] for t in (fake, true)]
            assert np.abs(np.subtract(*below)).max() < 0.06, column
        else:
            shares = [
                dict(t[column].drop_nulls().value_counts(normalize=True).iter_rows())
                for t in (fake, true)
            ]
            categories = {*shares[0], *shares[1]}
            distance = sum(abs(shares[0].get(k, 0) - shares[1].get(k, 0)) for k in categories) / 2
            assert distance < 0.02, column


@pytest.mark.parametrize("name", TABLES)
def test_surrogate_labels_are_as_hard_to_learn_as_real_labels(generated, real, name):
    preparation = TABLES[name][0]
    fake, true = (prepare(preparation, *source[name]) for source in (generated, real))
    assert fake.features.shape[1] == true.features.shape[1]
    assert (fake.labels == 1).mean() == pytest.approx((true.labels == 1).mean(), abs=0.015)
    accuracy = logistic_accuracy(fake), logistic_accuracy(true)
    assert accuracy[0] == pytest.approx(accuracy[1], abs=0.015)
    majority = max((true.labels == 1).mean(), (true.labels == -1).mean())
    assert min(accuracy) > majority + 0.05
