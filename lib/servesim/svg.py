"""From matplotlib figures to pieces of SVG that a page can swap.

A frame is one setting of a figure's controls. It is drawn by matplotlib's own SVG backend and cut
at each child of an axes (a line, a bar, an axis). Frames share most pieces, so a pack keeps every
distinct piece once and, for each frame, which pieces stand in it.
"""

import base64
import io
import json
import re
import xml.etree.ElementTree as ElementTree
import zlib
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

import matplotlib as mpl
from matplotlib.axis import Axis
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from servesim.theme import CSS_VARIABLES, RC

SVG = "http://www.w3.org/2000/svg"
XLINK = "http://www.w3.org/1999/xlink"
DIGITS = 2  # of a point, 1/72 inch: finer than a screen shows

_tag = re.compile(r"<[^>]*>")
_number = re.compile(r"-?\d+\.\d+")
_colour = re.compile("|".join(CSS_VARIABLES), re.IGNORECASE)
_path = re.compile(r'(?<= d=")[^"]*')
_axis_tag = re.compile(r'<g id="axis-(\d+)"')
_cuts = [
    (re.compile(rf' xmlns(:\w+)?="({SVG}|{XLINK})"'), ""),
    (re.compile(r' id="[A-Za-z0-9_.]+_\d+"'), ""),  # names of artists, which nothing refers to
    (re.compile(r"font-family: [^;\"]*;? ?"), ""),  # the page's own font
    (re.compile(r">\s+<"), "><"),
    (re.compile(r'xlink:href="'), 'href="'),
    (re.compile(r' transform="rotate\(-0 [^"]*\)"'), ""),
]


class Frame(NamedTuple):
    """One drawing: its pieces in painting order, what they refer to, and the sentence under it."""

    view: str  # the SVG viewBox
    defs: dict[str, str]  # markers and clip paths by id; ids are hashes of their content
    pieces: list[str]
    note: str

    def svg(self, label: str) -> str:
        """The frame as one <svg> element, named `label` for those who hear the page."""
        body = "".join(f"<g>{piece}</g>" for piece in self.pieces)
        name = escape(label)
        return (
            f'<svg viewBox="{self.view}" role="img" aria-label="{name}">'
            f"<defs>{''.join(self.defs.values())}</defs>{body}</svg>"
        )


def escape(text: str) -> str:
    """`text` as it must stand in HTML, attributes included."""
    for sign, entity in ("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"):
        text = text.replace(sign, entity)
    return text


def draw_frame(
    draw: Callable[..., str],
    values: dict,
    size: tuple[float, float],
    salt: str,
    axis_pieces: dict | None = None,
) -> Frame:
    """Call `draw(fig, **values)` on an empty figure of `size` inches and cut what it drew.

    salt         makes ids unique in a page that holds several figures
    axis_pieces  memory shared by the frames of one figure: ticks and their labels are most of the
                 drawing time and rarely change, so each distinct axis is drawn once
    """
    with mpl.rc_context({**RC, "svg.hashsalt": salt}):
        fig = Figure(figsize=size)
        FigureCanvasSVG(fig)
        note = draw(fig, **values)
        if not isinstance(note, str) or not note:
            raise ValueError(f"draw must return the sentence under the figure, not {note!r}")
        keys = {} if axis_pieces is None else _skip_known_axes(fig, axis_pieces)
        out = io.StringIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        fig.canvas.print_svg(out, metadata=nothing)
    view, defs, pieces = _cut(out.getvalue())
    for i, piece in enumerate(pieces):
        if tag := _axis_tag.match(piece):
            key = keys[int(tag[1])]
            pieces[i] = axis_pieces.setdefault(key, _axis_tag.sub("<g", piece))
    return Frame(view, defs, pieces, note)


def _skip_known_axes(fig: Figure, known: dict) -> dict[int, tuple]:
    """Tag each axis of `fig`; those whose twin was drawn before leave only their tag."""
    keys = {}
    for place, ax in enumerate(fig.axes):
        for axis in ax.xaxis, ax.yaxis:
            number = len(keys)
            keys[number] = key = (place, axis.axis_name, *_axis_state(axis))
            axis.set_gid(f"axis-{number}")
            if key in known:
                axis.draw = _tag_only(axis)
    return keys


def _tag_only(axis: Axis) -> Callable:
    def draw(renderer, *args, **kwargs):
        renderer.open_group("axis", gid=axis.get_gid())
        renderer.writer.element("path", d="M 0 0")
        renderer.close_group("axis")

    return draw


def _axis_state(axis: Axis) -> tuple:
    """All that decides what `axis` looks like. Texts styled one by one are not seen: see tests."""
    tickers = (
        axis.get_major_locator(),
        axis.get_major_formatter(),
        axis.get_minor_locator(),
        axis.get_minor_formatter(),
    )
    label = axis.label
    return (
        axis.axes.get_position().bounds,
        tuple(axis.get_view_interval()),
        axis.get_scale(),
        axis.get_visible(),
        axis.get_inverted(),
        (label.get_text(), label.get_color(), label.get_size(), axis.get_label_position()),
        axis.get_ticks_position(),
        repr(axis._major_tick_kw),
        repr(axis._minor_tick_kw),
        *(_state(ticker) for ticker in tickers),
    )


def _state(ticker) -> tuple:
    own = {k: v for k, v in vars(ticker).items() if k not in ("axis", "_formatter")}
    return type(ticker), *((k, _comparable(v)) for k, v in sorted(own.items()))


def _comparable(value):
    """Functions count by identity, all else by how it is written."""
    if isinstance(value, partial):  # how matplotlib keeps labels that an author gave
        return value.func, repr(value.args)
    return value if callable(value) else repr(value)


def _cut(text: str) -> tuple[str, dict[str, str], list[str]]:
    root = ElementTree.fromstring(text)
    defs = {}
    for parent in list(root.iter()):
        for group in parent.findall(f"{{{SVG}}}defs"):
            defs |= {e.get("id"): _tidy(e) for e in group if e.get("id")}
            parent.remove(group)
    [figure] = root.findall(f"{{{SVG}}}g")
    pieces = []
    for child in figure:
        inside = (child.get("id") or "").startswith("axes_")
        pieces += [_tidy(e) for e in (child if inside else [child]) if len(e)]
    return root.get("viewBox"), defs, pieces


def _tidy(element: ElementTree.Element) -> str:
    text = ElementTree.tostring(element, encoding="unicode")
    text = _tag.sub(lambda m: _number.sub(_round, m[0]), text)  # coordinates, not labels
    text = _path.sub(lambda m: re.sub(r" *([MLCQz]) *", r"\1", m[0]), text)
    for pattern, to in _cuts:
        text = pattern.sub(to, text)
    return _colour.sub(lambda m: f"var({CSS_VARIABLES[m[0].lower()]})", text).strip()


def _round(match: re.Match) -> str:
    short = f"{float(match[0]):.{DIGITS}f}".rstrip("0").rstrip(".")
    return "0" if short == "-0" else short


def pack(frames: Iterable[Frame]) -> str:
    """All frames as base64 of zlib of JSON, in the order given: {defs, pieces, slots, notes}.

    `slots[j]` is the piece in place j: one number where it never changes, else one per frame
    (-1: none).
    """
    numbers, rows, notes, defs = {}, [], [], {}
    for frame in frames:
        rows.append([numbers.setdefault(piece, len(numbers)) for piece in frame.pieces])
        notes.append(frame.note)
        defs |= frame.defs
    width = max(map(len, rows))
    columns = zip(*(row + [-1] * (width - len(row)) for row in rows), strict=True)
    slots = [column[0] if len(set(column)) == 1 else column for column in columns]
    content = dict(defs="".join(defs.values()), pieces=list(numbers), slots=slots, notes=notes)
    raw = json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()
    return base64.b64encode(zlib.compress(raw, 9)).decode()


ElementTree.register_namespace("", SVG)
ElementTree.register_namespace("xlink", XLINK)
