"""The book builds from nothing, with every warning an error. Runs first: the others wait for it."""

import re

from chapters import CHAPTERS, ROOT

PAGES = [path.stem for path in CHAPTERS] + [p.stem for p in ROOT.glob("book/chapters/*.md")]


def test_every_chapter_is_built(site):
    built = {page.stem for page in (site / "chapters").glob("*.html")}
    assert built == set(PAGES)
    assert (site / "intro.html").exists() and (site / "index.html").exists()


def test_no_page_shows_an_error(site):
    for page in site.glob("chapters/*.html"):
        assert "Traceback" not in page.read_text(encoding="utf8"), page.name


def test_links_inside_the_book_lead_somewhere(site):
    anchors, links = {}, []
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf8")
        anchors[page] = set(re.findall(r'\bid="([^"]+)"', text))
        links += [(page, link) for link in re.findall(r'<a\b[^>]*\bhref="([^"]+)"', text)]
    assert len(links) > 50
    dead = []
    for page, link in links:
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path.partition("?")[0]).resolve() if path else page
        if not target.exists() or (anchor and target in anchors and anchor not in anchors[target]):
            dead.append(f"{page.name}: {link}")
    assert not dead


def test_every_example_of_part_1_has_its_place(site):
    """The 23 examples of co-01 to co-07, each with an anchor of its own."""
    wanted = {1, 2, 3, 17, 22, 23, 4, 6, 8, 5, 21, 25, 7, 9, 10, 11, 12, 20, 27, 13, 24, 26, 28}
    found = []
    for page in site.glob("chapters/*.html"):
        found += map(int, re.findall(r'id="ex-(\d+)"', page.read_text(encoding="utf8")))
    assert len(wanted) == 23
    assert wanted <= set(found)
    assert len(found) == len(set(found)), "an example stands in two places"
