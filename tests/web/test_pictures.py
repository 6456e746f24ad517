"""The swapped pieces of the page against matplotlib's own picture, pixel by pixel.

Both are shown by the same browser in the same font; the page's picture was cut, rounded to 1/100
point, packed, unpacked and put together again by the script of the page.
"""

import io
import random

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure as Drawing
from PIL import Image

from chapters import each_chapter, figures
from reader import put
from servesim.theme import CSS_VARIABLES, RC

PAGE = """<style>
  body {{ margin: 0; background: #fff; {variables} }}
  svg {{ display: block; width: 900px; height: auto; stroke-linejoin: round; stroke-linecap: butt }}
  svg * {{ font-family: sans-serif !important }}
</style>{svg}"""
VARIABLES = " ".join(f"{name}: {colour};" for colour, name in CSS_VARIABLES.items())
SEEN = 80  # of 255: rounding by 1/200 point moves dashes and edges, which changes their grey
SHARE = 1e-4  # of all pixels that may differ by more than that


def matplotlibs_own(figure, where) -> str:
    with mpl.rc_context({**RC, "svg.hashsalt": "own"}):
        drawing = Drawing(figsize=figure.size)
        figure.draw(drawing, **figure.values(where))
        out = io.StringIO()
        drawing.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()[out.getvalue().index("<svg") :]


def pixels(page, svg: str) -> np.ndarray:
    page.set_content(PAGE.format(variables=VARIABLES, svg=svg))
    shot = page.locator("svg").screenshot()
    return np.asarray(Image.open(io.BytesIO(shot)).convert("RGB"), dtype=np.int16)


def differing(one: np.ndarray, other: np.ndarray) -> float:
    """Share of the pixels of `one` that differ visibly from all 9 of `other` around their place.

    A browser moves each letter to the next whole pixel, so rounding can shift a label by one.
    """
    assert one.shape == other.shape
    shifts = [np.roll(other, (y, x), (0, 1)) for y in (-1, 0, 1) for x in (-1, 0, 1)]
    least = np.min([abs(one - shifted).max(axis=2) for shifted in shifts], axis=0)
    return float((least > SEEN).mean())


@each_chapter
def test_frames_look_like_matplotlibs_own(chapter, reader):
    page = reader.open(f"chapters/{chapter.stem}.html")
    blank = reader.context.new_page()
    for figure in figures(chapter):
        for where in random.Random(2).sample(figure.grid(), min(4, len(figure.grid()))):
            if figure.controls:
                put(page, figure, where)
            ours = pixels(blank, page.locator(f"#{figure.key} svg").evaluate("e => e.outerHTML"))
            own = pixels(blank, matplotlibs_own(figure, where))
            assert own.std() > 5, "an empty picture would agree with anything"
            assert differing(ours, own) <= SHARE, (figure.label, figure.values(where))


def test_the_comparison_sees_a_moved_line(chromium):
    """One line moved by one point of 300 is found."""
    page = chromium.new_page()
    line = '<svg viewBox="0 0 300 200"><path d="M10 {y}L290 {y}" stroke="#000"/></svg>'
    assert differing(pixels(page, line.format(y=50)), pixels(page, line.format(y=51))) > SHARE
    page.close()
