"""Test that the stated requirements of a data set are those of its download sources."""

import re

import pytest

from private_consensus.report.views import data
from private_consensus.reproduction.datasets import DATA_SETS
from private_consensus.reproduction.datasets.catalogue import entry

UNPUBLISHED = ("us", "brazil", "cifar10")
"""Data sets whose reference results use an edition that no publisher offers."""


@pytest.mark.parametrize("name", DATA_SETS)
def test_the_requirements_name_a_key_if_every_publisher_needs_a_key(name):
    catalogue_entry = entry(name)
    keys = {publisher.key for publisher in catalogue_entry.publishers}
    assert catalogue_entry.needs.startswith("Nothing") == (None in keys)
    for key in keys - {None}:
        assert key in catalogue_entry.needs


@pytest.mark.parametrize("name", DATA_SETS)
def test_a_checksum_is_stated_if_it_is_verified(name):
    catalogue_entry = entry(name)
    pinned = {bool(p.checksum or p.options.get("archive")) for p in catalogue_entry.publishers}
    assert len(pinned) == 1
    assert ("by checksum" in catalogue_entry.needs) == pinned.pop()
    without = re.search(r"[Nn]o checksum is published", catalogue_entry.needs)
    assert bool(without) == ("by checksum" not in catalogue_entry.needs)


@pytest.mark.parametrize("name", DATA_SETS)
def test_an_edition_that_no_publisher_offers_is_stated(name):
    catalogue_entry = entry(name)
    same = all(p.checksum == catalogue_entry.mirror.checksum for p in catalogue_entry.publishers)
    assert same == (name not in UNPUBLISHED) == ("only" not in catalogue_entry.needs)


def test_a_card_states_the_requirements_of_its_data_set():
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
