"""The book builds from nothing, with every warning an error. Runs first: the others wait for it."""

import html
import re

from chapters import PAGES, cells, each_chapter, tags


def test_every_page_is_built_and_no_other(site):
    built = {page.relative_to(site).as_posix() for page in site.rglob("*.html")}
    assert {page for page in built if not page.startswith("_static/")} == {
        f"{page}.html" for page in PAGES
    }


STREAM = re.compile(r'<div class="output stream.*?<pre>(.*?)</pre>', re.DOTALL)


@each_chapter
def test_prints_what_the_notebook_prints(chapter, site):
    """The committed outputs, line by line, also where a kernel sent a line in pieces."""
    page = (site / "chapters" / f"{chapter.stem}.html").read_text(encoding="utf8")
    shown = [html.unescape(re.sub("<[^>]+>", "", text)) for text in STREAM.findall(page)]
    printed = [
        "".join(output["text"])
        for cell in cells(chapter, "code")
        for output in cell["outputs"]
        if output["output_type"] == "stream" and "remove-cell" not in tags(cell)
    ]
    assert [text.rstrip() for text in shown] == [text.rstrip() for text in printed] != []


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


EXAMPLES = {
    1: {1, 2, 3, 17, 22, 23, 4, 6, 8, 5, 21, 25, 7, 9, 10, 11, 12, 20, 27, 13, 24, 26, 28},
    "2 and 3": {14, 15, 16, 18, 19, *range(29, 54), 66, 67, 70},
}


def test_every_example_has_its_place(site):
    """An anchor of its own for each."""
    found = []
    for page in site.glob("chapters/*.html"):
        found += map(int, re.findall(r'id="ex-(\d+)"', page.read_text(encoding="utf8")))
    assert [len(wanted) for wanted in EXAMPLES.values()] == [23, 33]
    for part, wanted in EXAMPLES.items():
        assert not wanted - set(found), f"missing in part {part}"
    assert len(found) == len(set(found)), "an example stands in two places"
