"""Test the pages in a browser: width, colours, folded parts and console errors."""

import pytest

from private_consensus.report import write_site

from . import chromium

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


def unfold(tab) -> None:
    """Open all folded parts of the page."""
    tab.value("for (const part of document.querySelectorAll('main details')) part.open = true; 1")


@pytest.mark.parametrize(("width", "height", "scheme"), WINDOWS)
def test_page_renders_in_each_window_and_colour_scheme(tab, site, width, height, scheme):
    tab.look(width, height, scheme)
    tab.open(site)
    unfold(tab)
    picture = "document.querySelector('.card img')"
    tab.value(f"{picture}.scrollIntoView({{behavior: 'instant'}})")
    tab.until(f"{picture}.complete && {picture}.naturalWidth > 0")
    assert tab.value("document.documentElement.scrollWidth") <= width
    assert tab.complaints() == []
    assert all(url.startswith(("file:", "data:")) for url in tab.requested())
    ground = tab.value("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, ground.strip("rgb()").split(","))) > 380) == (scheme == "light")
    card = "getComputedStyle(document.querySelector('.card'))"
    assert tab.value(f"{card}.backgroundColor") == "rgb(255, 255, 255)"
    assert ("invert" in tab.value(f"{card}.filter")) == (scheme == "dark")


def test_tables_wider_than_a_phone_screen_are_scrollable(tab, site):
    tab.look(375, 812, "light")
    tab.open(site)
    unfold(tab)
    boxes = tab.value("""[...document.querySelectorAll('.scroll')].filter(
        box => box.scrollWidth > box.clientWidth).length""")
    assert boxes > 0
    assert tab.value("[...document.querySelectorAll('.scroll')].every(box => box.tabIndex === 0)")


def test_a_link_to_a_claim_opens_the_claim(tab, site):
    tab.look(1280, 900, "light")
    tab.open(site.parent / "second.html")
    tab.value("location.hash = '#second_c02'; location.reload()")
    tab.until("document.getElementById('second_c02')?.open")


@pytest.mark.parametrize("width", [375, 1300])
@pytest.mark.parametrize("name", ["index.html", "privacy.html", "statements.html", "data.html"])
def test_every_page_has_a_navigation_and_is_no_wider_than_the_window(tab, site, name, width):
    tab.look(width, 900, "light")
    tab.open(site.parents[1] / name)
    assert tab.value("document.documentElement.scrollWidth") <= width
    assert tab.value("document.querySelectorAll('nav a').length") > 4
    assert tab.value("document.querySelectorAll('nav [aria-current=page]').length") == 1
    assert tab.complaints() == []
