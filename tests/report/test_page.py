"""Test the contents of the report page."""

import re
from dataclasses import replace

import polars as pl

from private_consensus.report.page import pages
from private_consensus.report.views import privacy

from .conftest import MADE_UP, card, claim, paper, privacy_row, results_of
from .html_tree import Tree


def test_a_table_is_shown_with_its_claims():
    paper_config = paper("first", "000")
    method = {"label": "descent <b>", "method": "descent", "variant": "repaired"}
    paper_config["tables"] = {
        "first_table1": {
            "title": "Table 1: errors", "caption": "In short.",
            "row_title": "epsilon", "extra_columns": {"share": "released.share"},
            "blocks": [{"label": "Adult", "experiment": "first_fig1", "methods": [method]}],
        }
    }  # fmt: skip
    row = {
        "block": "Adult", "row": 0.5, "method": "descent <b>", "published": 0.2,
        "published_std": 0.1,
        "value": 0.25, "std": 0.03, "se": 0.01, "difference": 1.25, "runs": 9, "share": 0.125,
        "source": MADE_UP,
    }  # fmt: skip
    rows = [claim("first", 0, "held", figure="first_table1")]
    text = pages(
        results_of(
            {"first": paper_config}, claims=rows, tables={"first_table1": pl.DataFrame([row])}
        )
    )["papers/first.html"]
    tree = Tree(text)
    assert "first_table1" in tree.all("id")
    for fragment in ("0.200 ± 0.100", "0.250 ± 0.030", "descent &lt;b&gt;", "Claim 1"):
        assert fragment in text
    assert "SURROGATE DATA" in text.partition('id="first_table1"')[2]


def test_markup_in_the_configuration_is_escaped(results):
    evil = '<script>alert("x")</script>'
    paper_config = paper("first", "000")
    paper_config["paper"]["title"] = evil
    paper_config["figures"]["first_fig1"]["title"] = evil
    paper_config["figures"]["first_fig1"]["caption"] = evil
    paper_config["figures"]["first_fig1"]["panels"][0]["x_title"] = f'"{evil}'
    facts = {name: {**fact, "source": evil} for name, fact in results.facts.items()}
    spoilt = results_of({"first": paper_config}, facts=facts, commit=evil, cards=[])
    for text in (pages(spoilt)["index.html"], pages(spoilt)["papers/first.html"]):
        tree = Tree(text)
        assert evil not in text
        assert evil in tree.text
        assert [at for tag, at in tree.elements if tag == "script" and "src" not in at] == []


def test_figures_claims_and_cards_of_surrogate_data_are_marked(results):
    facts = {**results.facts, "first_fig1": {**results.facts["first_fig1"], "source": MADE_UP}}
    claims = [{**results.claims[0], "source": MADE_UP}, *results.claims[1:]]
    spoilt = replace(results, facts=facts, claims=claims, cards=[card("surrogate")])
    texts = pages(spoilt)
    text = texts["papers/first.html"]
    article = re.search(
        r'<details class="figure" id="first_fig1".*?<details class="figure"', text, re.S
    )[0]
    assert "SURROGATE DATA" in article
    assert "SURROGATE DATA" in text.partition('id="first_c01"')[2].partition("</details>")[0]
    second_figure = text.partition('<details class="figure" id="first_fig2"')[2]
    assert "SURROGATE" not in second_figure
    text = pages(spoilt)["index.html"]
    assert "SURROGATE DATA" in text
    assert "SURROGATE DATA" in texts["data.html"]
    assert texts["scorecard.html"].count("surrogate data") == 1


def test_real_data_are_not_marked_as_surrogate_data(results):
    assert not [text for text in pages(results).values()
                if "SURROGATE" in text or "surrogate data" in text]  # fmt: skip


def test_pages_load_no_external_resources(results):
    texts = list(pages(results).values())
    fetched = [
        value
        for tag, attributes in (element for text in texts for element in Tree(text).elements)
        for name, value in attributes.items()
        if name in ("src", "href", "srcset", "data", "poster", "action") and tag != "a"
    ]
    assert fetched
    assert not [value for value in fetched if re.match(r"(?i)\s*(https?:|//|ftp:)", value or "")]
    assert not any("@import" in text for text in texts)


def test_a_variant_has_the_verdict_of_its_worst_setting():
    rows = [privacy_row("first", "v", 1.0, accounted) for accounted in (0.5, 2.0, 0.5)]
    results = results_of({"first": paper("first", "000")}, privacy=rows)
    (variant,) = privacy.by_variant(rows, results.experiments)
    assert (variant["verdict"], variant["count"], variant["settings"]) == ("violated", 1, 3)
    (mechanism,) = privacy.delivered(results)
    assert (mechanism["verdict"], mechanism["high"]) == ("violated", 2.0)
