"""Test that the printed requirements of a data set are those of its download sources."""

import re

import pytest

from private_consensus.reproduction.datasets import DATA_SETS
from private_consensus.reproduction.datasets.catalogue import entry
from private_consensus.reproduction.report.views import data

ALONE = ("us", "brazil", "cifar10")
"""Of these the reference has an edition that no publisher gives."""


@pytest.mark.parametrize("name", DATA_SETS)
def test_a_key_is_asked_for_where_no_way_does_without(name):
    catalogue_entry = entry(name)
    keys = {publisher.key for publisher in catalogue_entry.publishers}
    assert catalogue_entry.needs.startswith("Nothing") == (None in keys)
    for key in keys - {None}:
        assert key in catalogue_entry.needs


@pytest.mark.parametrize("name", DATA_SETS)
def test_checked_by_checksum_is_said_of_what_is(name):
    catalogue_entry = entry(name)
    pinned = {bool(p.checksum or p.options.get("archive")) for p in catalogue_entry.publishers}
    assert len(pinned) == 1
    assert ("by checksum" in catalogue_entry.needs) == pinned.pop()
    without = re.search(r"(no|Neither has a) checksum that is published", catalogue_entry.needs)
    assert bool(without) == ("by checksum" not in catalogue_entry.needs)


@pytest.mark.parametrize("name", DATA_SETS)
def test_numbers_are_said_to_need_the_mirrors_edition_where_publishers_have_another(name):
    catalogue_entry = entry(name)
    same = all(p.checksum == catalogue_entry.mirror.checksum for p in catalogue_entry.publishers)
    assert same == (name not in ALONE) == ("alone" not in catalogue_entry.needs)


def test_a_card_says_what_its_data_set_needs():
    card = {
        "source": "mirror",
        "label_rate": 0.2,
        "rows": 3,
        "splits": {},
        "marginals": {},
        "pictures": {},
    }
    assert data.card({**card, "dataset": "brazil"})["needs"] == entry("brazil").needs
    assert data.card({**card, "dataset": "coins"})["needs"] == ""
