"""What a machine can check of how a chapter is written. The reasons are in DESIGN.md."""

import re

import pytest

import notebooks
from chapters import CHAPTERS, ROOT, cells, each_chapter, source, tags

TOC = (ROOT / "book" / "_toc.yml").read_text(encoding="utf8")
FOLDED = {"hide-input", "hide-cell", "remove-cell"}


def prose(chapter) -> str:
    return "\n\n".join(source(cell) for cell in cells(chapter, "markdown"))


@each_chapter
def test_stands_once_in_the_table_of_contents(chapter):
    assert TOC.count(f"chapters/{chapter.stem}\n") == 1
    assert prose(chapter).startswith(f"# {chapter.stem[:2]} · "), "others cite it by its number"


@each_chapter
def test_is_in_the_committed_form(chapter):
    assert notebooks.bring_into_form(chapter, write=False), "run make notebooks"


@each_chapter
def test_has_the_parts_of_a_chapter_in_order(chapter):
    text = prose(chapter)
    parts = [
        "# ",
        "**Question.**",
        "**You will be able to**",
        "## Predict",
        "## The claims of this chapter",
        "## Check yourself",
        "**Exercise.**",
        "## Summary",
        "**What the model leaves out.**",
        "## Sources",
    ]
    places = [text.find(part) for part in parts]
    assert -1 not in places and places == sorted(places), dict(zip(parts, places, strict=True))
    assert re.search(r"\*\*co-\d\d\*\*", text), "names its concept"
    assert "{admonition} Takeaway" in text and "{admonition} Surprise" in text


@each_chapter
def test_every_line_of_the_summary_is_claimed(chapter):
    text = prose(chapter)
    summary = text[text.index("## Summary") : text.index("**What the model leaves out.**")]
    lines = {int(n) for n in re.findall(r"(?m)^(\d+)\. ", summary)}
    claims = next(
        s for s in map(source, cells(chapter, "code")) if re.search(r"assert.*# 1$", s, re.M)
    )
    asserted = {int(n) for n in re.findall(r"(?m)# (\d+)$", claims)}
    assert lines and lines == asserted


@each_chapter
def test_cells_are_short(chapter):
    for cell in cells(chapter, "code"):
        lines = source(cell).splitlines()
        limit = 45 if FOLDED & set(tags(cell)) else 25
        assert len(lines) <= limit, f"{len(lines)} lines: move code to lib/\n{source(cell)[:200]}"
        assert max(map(len, lines)) <= 100
    visible = [c for c in cells(chapter, "code") if not FOLDED & set(tags(c))]
    short = sum(len(source(c).splitlines()) <= 8 for c in visible)
    assert short >= 0.75 * len(visible), "most cells that a reader sees are short"


@each_chapter
def test_titles_of_blocks_hold_no_backtick(chapter):
    """It would show the block as code, without a warning."""
    opened = re.findall(r"(?m)^[`:]{3,}\{[a-z-]+\}(.*)$", prose(chapter))
    assert opened and not [title for title in opened if "`" in title]


@each_chapter
def test_uses_no_tricks(chapter):
    code = "\n".join(source(cell) for cell in cells(chapter, "code"))
    for word in ("plt.", "rcParams", "import *", "sys.path", "display(", "<div", "allow_errors"):
        assert word not in code, word
    assert code.count("explore(") >= 1 and code.count("ask(") >= 3


@each_chapter
def test_outputs_are_stored_so_that_nbval_compares_them(chapter):
    printing = [c for c in cells(chapter, "code") if "print(" in source(c) or "ask(" in source(c)]
    assert len(printing) > 8
    for cell in printing:
        defines_only = source(cell).lstrip().startswith("def ") and not cell["outputs"]
        assert cell["outputs"] or defines_only, source(cell)[:120]
    for cell in cells(chapter, "code"):
        assert not any(output["output_type"] == "error" for output in cell["outputs"])


def test_all_install_the_library_alike():
    """Colab's cell names one address in all chapters; `notebooks.py remote` changes it."""
    installs = {source(cells(chapter, "code")[0]) for chapter in CHAPTERS}
    assert len(installs) == 1
    [install] = installs
    assert notebooks.INSTALL.search(install)
    for chapter in CHAPTERS:
        assert tags(cells(chapter, "code")[0]) == ["remove-cell", "nbval-ignore-output"]


def test_form_is_what_the_check_says(tmp_path):
    """The check fails for a notebook with pictures, odd counts or odd metadata."""
    if not CHAPTERS:
        pytest.fail("there is no chapter")
    path = tmp_path / "x.ipynb"
    text = CHAPTERS[0].read_text(encoding="utf8")
    path.write_text(
        text.replace('"execution_count": 2', '"execution_count": 7', 1), encoding="utf8"
    )
    assert not notebooks.bring_into_form(path, write=False)
    assert not notebooks.bring_into_form(path, write=True)
    assert notebooks.bring_into_form(path, write=False)
