"""The notebooks as the tests read them."""

import functools
import json
from pathlib import Path
from unittest.mock import patch

import pytest

import servesim.live

ROOT = Path(__file__).resolve().parent.parent
CHAPTERS = sorted((ROOT / "book" / "chapters").glob("*.ipynb"))
each_chapter = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
PAGES = ["index", "intro", "genindex", "search"]
PAGES += [f"chapters/{path.stem}" for path in sorted((ROOT / "book" / "chapters").glob("*.*"))]
each_page = pytest.mark.parametrize("name", [f"{page}.html" for page in PAGES])


def cells(path: Path, kind: str) -> list[dict]:
    """The code or markdown cells of a notebook."""
    notebook = json.loads(path.read_text(encoding="utf8"))
    return [cell for cell in notebook["cells"] if cell["cell_type"] == kind]


def source(cell: dict) -> str:
    return "".join(cell["source"])


def tags(cell: dict) -> list[str]:
    return cell["metadata"].get("tags", [])


def run_code(path: Path) -> dict:
    """Run the code of a chapter in this process and return its names."""
    names = {"__name__": path.stem}
    for cell in cells(path, "code"):
        if "nbval-ignore-output" not in tags(cell):  # the cell that installs the library in Colab
            exec(compile(source(cell), path.name, "exec"), names)
    return names


@functools.cache
def figures(path: Path) -> list[servesim.live.Figure]:
    """The figures of a chapter in order of appearance, from running its code here, once."""
    drawn, explore = [], servesim.live.explore

    def remember(*arguments, **settings):
        shown = explore(*arguments, **settings)
        drawn.append(shown.figure)
        return shown

    with patch.object(servesim.live, "explore", remember):
        run_code(path)
    return drawn
