"""Every page as readers meet it: nothing asked of other hosts, no error, open to everybody."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe

from chapters import each_page
from reader import Reader

RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"],
    "resultTypes": ["violations"],
}
# Thousands of pieces of code share a few colours: the contrast of one of each kind is enough.
ONE_OF_EACH = """() => {
    const seen = new Set();
    for (const piece of document.querySelectorAll('.highlight span[class]'))
        if (seen.has(piece.className)) piece.remove(); else seen.add(piece.className);
}"""
MODEL_PAGE = "chapters/14_bandwidth_bound.html"


@each_page
def test_asks_no_other_host_and_says_what_it_shows(name, reader):
    page = reader.open(name)
    assert not reader.refused and not reader.errors
    for svg in page.locator(".live svg").all():
        assert len(svg.get_attribute("aria-label")) > 15
    for image in page.locator("article img").all():
        alt = image.get_attribute("alt")
        assert alt and "/" not in alt, alt


def test_a_refused_request_would_be_seen(reader):
    reader.open("intro.html").evaluate("fetch('https://example.org/x').catch(() => 0)")
    reader.page.wait_for_timeout(200)
    assert reader.refused == ["https://example.org/x"]


def test_pages_name_no_other_host_for_what_they_load(site):
    """Also what a browser would fetch later, or only in some cases."""
    loads = re.compile(
        r'<(?:script|img|iframe|source)\b[^>]*\bsrc="(?:https?:)?//[^"]+"'
        r'|<link\b[^>]*rel="(?:stylesheet|preload|icon)"[^>]*href="https?://[^"]+"'
    )
    for page in site.rglob("*.html"):
        assert not loads.findall(page.read_text(encoding="utf8")), page.name


def test_works_from_a_folder_without_a_server(chromium, site):
    visitor = Reader(chromium, f"file://{site}")
    page = visitor.open(MODEL_PAGE)
    before = page.locator(".live-note").last.text_content()
    page.locator(".live input[type=range]").first.focus()
    page.keyboard.press("ArrowRight")
    assert page.locator(".live-note").last.text_content() != before
    assert not visitor.refused and not visitor.errors
    visitor.context.close()


def test_reads_without_javascript(chromium, address):
    """The opening figure, its sentence, its disabled controls and the folded answers are HTML."""
    visitor = Reader(chromium, address, java_script_enabled=False)
    page = visitor.page
    page.goto(f"{address}/{MODEL_PAGE}")
    live = page.locator(".live:has(input)").first
    assert live.locator("svg path").count() > 20
    assert "tok/s" in live.locator(".live-note").text_content()
    assert live.locator("input[type=range]").first.is_disabled()
    assert page.locator(".ask details summary").first.is_visible()
    for why in "The controls need JavaScript.", "Checking needs JavaScript.":
        assert page.get_by_text(why).first.is_visible()
    visitor.context.close()


@pytest.mark.parametrize("width, scheme", [(1280, "light"), (390, "dark")])
@each_page
def test_accessibility_rules_hold(name, chromium, address, width, scheme):
    if name == "index.html":
        pytest.skip("it only leads to intro.html")
    settings = dict(viewport={"width": width, "height": 900}, color_scheme=scheme)
    visitor = Reader(chromium, address, **settings)
    page = visitor.open(name)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    wide, screen = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    page.evaluate(ONE_OF_EACH)
    broken = [
        (rule["id"], rule["nodes"][0]["target"], rule["nodes"][0]["html"][:160])
        for rule in Axe().run(page, options=RULES).response["violations"]
        if rule["impact"] in ("serious", "critical")
    ]
    visitor.context.close()
    assert not broken
    assert wide <= screen, "the page is wider than the screen"


def test_figures_follow_the_theme(chromium, address):
    inks = set()
    for scheme in "light", "dark":
        visitor = Reader(chromium, address, color_scheme=scheme)
        page = visitor.open(MODEL_PAGE)
        inks.add(page.evaluate("getComputedStyle(document.querySelector('.live svg text')).fill"))
        assert (
            page.evaluate("""getComputedStyle(document.querySelector('.text_html:has(.live)'))
            .backgroundColor""")
            == "rgba(0, 0, 0, 0)"
        )
        visitor.context.close()
    assert len(inks) == 2


def test_search_finds_a_chapter(reader):
    page = reader.open("search.html?q=cache")
    page.wait_for_selector("#search-results li a")
    links = page.locator("#search-results li a").all_text_contents()
    assert any("memory" in link for link in links)
    page.wait_for_selector("#search-results li .context")
    excerpts = page.locator("#search-results li .context").all_text_contents()
    assert not any(".pdf" in text or "Contents" in text for text in excerpts), excerpts
    assert not reader.errors


def test_prints_with_answers_and_without_controls(chromium, address):
    """On white, also from the dark theme, which comes back."""
    visitor = Reader(chromium, address, color_scheme="dark")
    page = visitor.open(MODEL_PAGE)
    page.emulate_media(media="print", color_scheme="dark")
    assert not page.locator(".live-row").first.is_visible()
    assert not page.locator(".ask-check").first.is_visible()
    assert page.locator(".live svg").first.is_visible()
    working = page.locator(".ask details p").first
    paper = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(paper)
    assert not working.is_visible()
    page.evaluate(f"addEventListener('beforeprint', () => window.printed = {paper})")
    assert len(page.pdf()) > 50_000
    assert page.evaluate("printed") == "rgb(255, 255, 255)" != dark
    assert page.evaluate(paper) == dark
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert working.is_visible()
    visitor.context.close()
