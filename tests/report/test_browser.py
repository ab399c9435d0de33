"""Test the pages in a browser: interactive charts, page width and console errors."""

from __future__ import annotations

import pytest

from private_consensus.report import write_site

from . import chromium
from .conftest import VERDICTS

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(chromium.find() is None, reason="no browser is installed"),
]

WINDOWS = [(1280, 900, "light"), (1280, 900, "dark"), (375, 812, "light"), (375, 812, "dark")]


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    with chromium.browser(tmp_path_factory.mktemp("browser") / "profile") as opened:
        yield opened


@pytest.fixture
def site(results, run_folder, tmp_path):
    write_site(results, run_folder, tmp_path / "report")
    return tmp_path / "report" / "papers" / "first.html"


def front(site):
    return site.parents[1] / "index.html"


def unfold(tab) -> None:
    """Open all folded parts of the page."""
    tab.value("for (const part of document.querySelectorAll('main details')) part.open = true; 1")


def see_all_charts(tab) -> int:
    """Unfold and scroll every chart into view, and wait until it has been drawn."""
    unfold(tab)
    count = tab.value("document.querySelectorAll('.chart').length")
    for i in range(count):
        chart = f"document.querySelectorAll('.chart')[{i}]"
        tab.value(f"{chart}.scrollIntoView({{behavior: 'instant'}})")
        tab.until(f"'state' in {chart}.dataset")
    return count


@pytest.mark.parametrize(("width", "height", "scheme"), WINDOWS)
def test_page_renders_in_each_window_and_colour_scheme(tab, site, tmp_path, width, height, scheme):
    tab.look(width, height, scheme)
    tab.open(site)
    assert see_all_charts(tab) == 2
    tab.picture(tmp_path / f"report_{width}_{scheme}.png")
    assert (
        tab.value("[...document.querySelectorAll('.chart')].map(c => c.dataset.state)")
        == ["stacked" if width < 600 else "live"] * 2
    )
    marks = tab.value("""[...document.querySelectorAll('.chart')].map(
        chart => chart.querySelectorAll('.live svg .mark-line path').length)""")
    assert marks == [4] * 2
    assert tab.value("document.documentElement.scrollWidth") <= width
    assert tab.complaints() == []
    assert tab.value("[...document.querySelectorAll('.chart > a')].every(a => a.hidden)")
    assert all(url.startswith(("file:", "data:")) for url in tab.requested())
    ground = tab.value("getComputedStyle(document.body).backgroundColor")
    light = sum(map(int, ground.strip("rgb()").split(","))) > 380
    assert light == (scheme == "light")
    assert tab.value("getComputedStyle(document.querySelector('.card')).backgroundColor") == (
        "rgb(255, 255, 255)"
    )


TEXTS = """[...document.querySelectorAll('.chart')].map(chart => {
    const svg = chart.querySelector('.live svg');
    const shrunk = svg.getBoundingClientRect().width / Number(svg.getAttribute('width'));
    return [...svg.querySelectorAll('text')].filter(text => text.textContent.trim()).map(
        text => shrunk * parseFloat(getComputedStyle(text).fontSize));
})"""
FILLED = """[...document.querySelectorAll('.chart')].map(
    chart => chart.querySelector('.live svg').getBoundingClientRect().width / chart.clientWidth)"""


@pytest.mark.parametrize("width", [390, 1280])
def test_a_chart_fills_its_column_with_text_of_twelve_pixels(tab, site, width):
    tab.look(width, 900, "light")
    tab.open(site)
    see_all_charts(tab)
    for sizes in tab.value(TEXTS):
        assert len(sizes) > 5 and all(size == pytest.approx(12.0, abs=0.1) for size in sizes)
    assert all(0.85 < share <= 1.001 for share in tab.value(FILLED))


def test_charts_load_only_after_scrolling_into_view(tab, site):
    tab.look(1280, 400, "light")
    tab.open(site)
    unfold(tab)
    last = "[...document.querySelectorAll('.chart')].at(-1)"
    assert tab.value(f"{last}.dataset.state ?? null") is None
    assert not [url for url in tab.requested() if url.endswith("first_fig2.js")]
    tab.value(f"{last}.scrollIntoView({{behavior: 'instant'}})")
    tab.until(f"{last}.dataset.state === 'live'")
    assert [url for url in tab.requested() if url.endswith("first_fig2.js")]


def test_claims_can_be_filtered(tab, site):
    tab.look(1280, 900, "light")
    tab.open(site.parents[1] / "scorecard.html")
    visible_rows = (
        "[...document.querySelectorAll('.scorecard tbody tr')].filter(r => !r.hidden).length"
    )
    choose = """(name, value) => {
        const field = document.getElementById('filters').elements[name];
        field.value = value;
        field.dispatchEvent(new Event('input', {bubbles: true}));
    }"""
    assert tab.value(visible_rows) == 2 * len(VERDICTS)
    tab.value(f"({choose})('paper', 'second')")
    assert tab.value(visible_rows) == len(VERDICTS)
    tab.value(f"({choose})('verdict', 'held')")
    assert tab.value(visible_rows) == 1
    count_text = tab.value("document.querySelector('#filters output').textContent")
    assert count_text == f"1 of {2 * len(VERDICTS)} claims"
    tab.value(f"({choose})('words', 'no such words')")
    assert tab.value("!document.getElementById('claims-table-nothing').hidden")
    tab.value("document.querySelector('[data-reset]').click()")
    assert tab.value(visible_rows) == 2 * len(VERDICTS)
    tab.open(front(site))
    tab.value("document.querySelector('.counts .not a').click()")
    tab.until("location.href.endsWith('scorecard.html#verdict-not')")
    tab.until(f"{visible_rows} === 2")


def test_without_scripts_every_figure_is_a_static_image(tab, site):
    tab.look(1280, 900, "light")
    tab("Emulation.setScriptExecutionDisabled", value=True)
    try:
        tab.open(site.parents[1] / "scorecard.html")
        assert tab.value("document.getElementById('filters').hidden")
        tab.open(site)
        for i in range(2):
            tab.value(f"document.querySelectorAll('details.figure')[{i}].open = true")
            picture = f"document.querySelectorAll('.chart img')[{i}]"
            tab.value(f"{picture}.scrollIntoView({{behavior: 'instant'}})")
            tab.until(f"{picture}.complete && {picture}.naturalWidth > 0")
    finally:
        tab("Emulation.setScriptExecutionDisabled", value=False)


def test_a_chart_that_fails_to_load_keeps_its_image_link(tab, site):
    (site.parents[1] / "figures" / "first_fig1.js").unlink()
    tab.look(1280, 900, "light")
    tab.open(site)
    see_all_charts(tab)
    first = "document.querySelector('.chart[data-figure=first_fig1]')"
    assert tab.value(f"{first}.dataset.state") == "failed"
    assert tab.value(f"{first}.querySelector('a').hidden") is False
    assert tab.complaints()


def test_tables_wider_than_a_phone_screen_are_scrollable(tab, site):
    tab.look(375, 812, "light")
    tab.open(site)
    unfold(tab)
    boxes = tab.value("""[...document.querySelectorAll('.scroll')].filter(
        box => box.scrollWidth > box.clientWidth).length""")
    assert boxes > 0
    assert tab.value("[...document.querySelectorAll('.scroll')].every(box => box.tabIndex === 0)")


def test_a_click_in_the_legend_fades_the_other_curves(tab, site):
    tab.look(1280, 900, "light")
    tab.open(site)
    unfold(tab)
    chart = "document.querySelector('.chart')"
    tab.value(f"{chart}.scrollIntoView({{behavior: 'instant'}})")
    tab.until(f"{chart}.dataset.state === 'live' && {chart}.querySelector('.hint')")
    name = f"{chart}.querySelector('.role-legend-symbol path')"
    faded = f"""[...{chart}.querySelectorAll('.mark-line path')].filter(
        line => Number(line.getAttribute('opacity')) < 1).length"""
    assert tab.value(faded) == 0
    tab.click(name)
    tab.until(f"{faded} > 0")
    tab.click(name)
    tab.until(f"{faded} === 0")
    tab.click(name)
    tab.until(f"{faded} > 0")
    tab.click(f"{chart}.querySelector('.hint button')")
    tab.until(f"{faded} === 0")


def test_a_link_to_a_claim_opens_the_claim_and_its_figure(tab, site):
    tab.look(1280, 900, "light")
    tab.open(front(site).with_name("papers") / "second.html")
    tab.value("location.hash = '#second_c02'; location.reload()")
    tab.until("document.getElementById('second_c02')?.open")
    tab.until("document.getElementById('second_c02')?.parentElement.open")


@pytest.mark.parametrize("width", [375, 1300])
@pytest.mark.parametrize(
    "name", ["privacy.html", "statements.html", "data.html", "settings/first.html"]
)
def test_every_page_has_contents_and_is_no_wider_than_the_window(tab, site, name, width):
    tab.look(width, 900, "light")
    tab.open(site.parents[1] / name)
    main_width = tab.value("document.querySelector('main').getBoundingClientRect().width")
    assert main_width >= min(800, 0.9 * width)
    assert tab.value("document.documentElement.scrollWidth") <= width
    assert tab.value("document.querySelectorAll('.contents a').length") > 4
    assert tab.value("document.querySelectorAll('.contents [aria-current=page]').length") == (
        0 if name.startswith("settings") else 1
    )
    assert tab.complaints() == []


def test_settings_can_be_filtered_by_paper(tab, site):
    tab.look(1280, 900, "light")
    tab.open(site.parents[1] / "privacy.html")
    visible_rows = (
        "[...document.querySelectorAll('#settings-table tbody tr')].filter(r => !r.hidden).length"
    )
    n_rows = tab.value(visible_rows)
    tab.value("""(() => {
        const form = document.querySelector('[data-of=settings-table]');
        form.elements.paper.value = 'second';
        form.dispatchEvent(new Event('input'));
    })()""")
    assert 0 < tab.value(visible_rows) < n_rows


def test_chart_colours_are_inverted_in_the_dark_scheme(tab, site):
    for scheme, filtered in (("light", False), ("dark", True)):
        tab.look(1280, 900, scheme)
        tab.open(site)
        style = tab.value("getComputedStyle(document.querySelector('.card')).filter")
        assert ("invert" in style) == filtered
