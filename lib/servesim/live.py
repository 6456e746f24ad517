"""`explore`: a figure with sliders, alive with a kernel and in a static page.

With a kernel it is a box of ordinary ipywidgets that redraw one figure. While the book is built
(`SERVESIM_PRERENDER=1`) every setting is drawn beforehand, and the page swaps the drawings.
"""

import hashlib
import itertools
import math
import os
from collections.abc import Callable, Iterable
from importlib.resources import files

try:
    import ipywidgets
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f'{error}; figures need: pip install "servesim[draw]"') from None

from servesim.checks import above, kind
from servesim.svg import Frame, draw_frame, escape, pack

MAX_FRAMES = 512  # all of them travel in the page
STYLE = files("servesim").joinpath("page/live.css").read_text()


class Control:
    """One parameter of a figure: its values and how each is written."""

    def __init__(self, name: str, given, label: str | None, start):
        widget = given if isinstance(given, ipywidgets.Widget) else None
        self.widget = widget
        self.name = name
        self.values = _widget_values(widget) if widget else _listed(name, given)
        if not self.values:
            raise ValueError(f"{name} must have at least one value, not {given!r}")
        self.label = label or (widget and widget.description) or name.replace("_", " ")
        self.options = [_written(value) for value in self.values]
        start = self.values[0] if start is None else start
        self.start = self.index(start if widget is None else widget.value)

    def index(self, value) -> int:
        if value not in self.values:
            raise ValueError(f"{self.name} must be one of {self.options}, not {value!r}")
        return self.values.index(value)

    @property
    def kind(self) -> str:
        """'range' for numbers, 'choice' for up to four of anything else, 'select' for more."""
        if all(isinstance(v, int | float) and not isinstance(v, bool) for v in self.values):
            return "range"
        return "choice" if len(self.values) <= 4 else "select"

    def make_widget(self) -> ipywidgets.Widget:
        """The ipywidget that sets this parameter; the one that the caller gave, if any."""
        if self.widget is not None:
            return self.widget
        classes = dict(
            range=ipywidgets.SelectionSlider,
            choice=ipywidgets.ToggleButtons,
            select=ipywidgets.Dropdown,
        )
        return classes[self.kind](
            options=list(zip(self.options, self.values, strict=True)),
            value=self.values[self.start],
            description=self.label,
            style={"description_width": "12em"}
            | ({"button_width": "auto"} if self.kind == "choice" else {}),
            layout={"width": "95%", "max_width": "40em"},
        )

    def html(self, name: str) -> str:
        """The native control, disabled until a script takes it over. `name` groups its radios."""
        label, start = escape(self.label), self.start
        if self.kind == "range":
            return (
                f'<label class="live-row"><span>{label}</span>'
                f'<input type="range" min="0" max="{len(self.options) - 1}" value="{start}" '
                f'aria-valuetext="{escape(self.options[start])}" '
                f'data-options="{escape("|".join(self.options))}" disabled>'
                f"<output>{escape(self.options[start])}</output></label>"
            )
        texts = [escape(option) for option in self.options]
        if self.kind == "select":
            inner = "".join(
                f"<option{' selected' if i == start else ''}>{text}</option>"
                for i, text in enumerate(texts)
            )
            return (
                f'<label class="live-row"><span>{label}</span>'
                f"<select disabled>{inner}</select></label>"
            )
        inner = "".join(
            f'<label><input type="radio" name="{name}" value="{i}"'
            f"{' checked' if i == start else ''}> {text}</label>"
            for i, text in enumerate(texts)
        )
        return (
            f'<fieldset class="live-row" disabled><legend>{label}</legend>'
            f'<span class="live-choices">{inner}</span></fieldset>'
        )


def _listed(name: str, given) -> list:
    if isinstance(given, str | dict) or not isinstance(given, Iterable):
        raise ValueError(f"{name} must be a list of values or an ipywidgets control, not {given!r}")
    return list(given)


def _widget_values(widget: ipywidgets.Widget) -> list:
    if hasattr(widget, "options"):
        pairs = widget._options_full
        return [value for _, value in pairs]
    if isinstance(widget, ipywidgets.Checkbox | ipywidgets.ToggleButton):
        return [False, True]
    if hasattr(widget, "min") and hasattr(widget, "step") and widget.step:
        count = math.floor((widget.max - widget.min) / widget.step + 1e-9) + 1
        return [widget.min + i * widget.step for i in range(count)]
    raise ValueError(f"cannot tell which values {type(widget).__name__} can take: give a list")


def _written(value) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int) or (isinstance(value, float) and value == int(value) >= 1000):
        return f"{int(value):,}"
    if isinstance(value, float):
        return f"{value:g}"
    return str(getattr(value, "name", value))


class Figure:
    """A draw function, its controls and the frames drawn so far."""

    def __init__(self, draw: Callable[..., str], controls: list[Control], label: str, size):
        self.draw, self.controls, self.label, self.size = draw, controls, label, size
        salt = f"{draw.__qualname__} {label}"
        self.key = f"live-{hashlib.sha256(salt.encode()).hexdigest()[:8]}"  # its id in the page
        self._axis_pieces: dict = {}
        self._frames: dict[tuple[int, ...], Frame] = {}

    def frame(self, where: tuple[int, ...] | None = None) -> Frame:
        """The drawing at the given index of each control; the opening one by default."""
        if where is None:
            where = tuple(control.start for control in self.controls)
        if where not in self._frames:
            self._frames[where] = draw_frame(
                self.draw, self.values(where), self.size, self.key, self._axis_pieces
            )
        return self._frames[where]

    def values(self, where: tuple[int, ...]) -> dict:
        """What `draw` is called with at the given index of each control."""
        return {c.name: c.values[i] for c, i in zip(self.controls, where, strict=True)}

    def grid(self) -> list[tuple[int, ...]]:
        """The index of every frame, the last control running fastest."""
        return list(itertools.product(*(range(len(c.values)) for c in self.controls)))

    def html(self) -> str:
        """The figure as it stands in a page: readable as it is, alive with page/live.js."""
        frame = self.frame()
        rows = "".join(c.html(f"{self.key}-{c.name}") for c in self.controls)
        data = ""
        if self.controls:
            rows += '<p class="live-asleep">The controls need JavaScript.</p>'
            frames = [self.frame(where) for where in self.grid()]
            data = f'<script type="application/zlib" class="live-pack">{pack(frames)}</script>'
        return (
            f'<div class="live" id="{self.key}">{rows}<div class="live-figure">'
            f'{frame.svg(self.label)}</div><p class="live-note" aria-live="polite">'
            f"{escape(frame.note)}</p>{data}</div>"
        )

    def text(self) -> str:
        """What a reader without pictures gets, and what the tests of the notebooks compare."""
        return f"{self.label}: {self.frame().note}"


class StillFigure:
    """What a notebook shows where the page needs no kernel: HTML and text."""

    def __init__(self, figure: Figure):
        self.figure = figure

    def _repr_mimebundle_(self, **kwargs):
        style = "" if prerendering() else f"<style>{STYLE}</style>"
        return {"text/plain": self.figure.text(), "text/html": style + self.figure.html()}


class LiveFigure(ipywidgets.VBox):
    """The figure with a kernel: `controls[name]` are its ipywidgets, in the order given."""

    def __init__(self, figure: Figure):
        self.figure = figure
        self.controls = {c.name: c.make_widget() for c in figure.controls}
        self._picture = ipywidgets.HTML()
        super().__init__([*self.controls.values(), self._picture])
        for widget in self.controls.values():
            widget.observe(lambda change: self._show(), "value")
        self._show()

    def _show(self):
        pairs = zip(self.figure.controls, self.controls.values(), strict=True)
        frame = self.figure.frame(tuple(control.index(w.value) for control, w in pairs))
        self.note = frame.note
        picture = f'<div class="live-figure">{frame.svg(self.figure.label)}</div>'
        note = f'<p class="live-note">{escape(frame.note)}</p>'
        self._picture.value = f'<style>{STYLE}</style><div class="live">{picture}{note}</div>'

    def _repr_mimebundle_(self, **kwargs):
        bundle = super()._repr_mimebundle_(**kwargs)
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        data["text/plain"] = self.figure.text()
        return bundle


def prerendering() -> bool:
    """Whether the book is being built, so that each frame must be drawn beforehand."""
    return os.environ.get("SERVESIM_PRERENDER") == "1"


def explore(
    draw: Callable[..., str],
    *,
    label: str,
    start: dict | None = None,
    names: dict[str, str] | None = None,
    size: tuple[float, float] = (5.6, 3.2),
    **grid,
) -> LiveFigure | StillFigure:
    """A figure that a reader can move; without any parameter, a still one.

    draw    called as `draw(fig, name=value, …)` with an empty matplotlib figure; it draws with
            plain matplotlib and returns the sentence that stands under the picture
    label   what the figure shows, for readers who cannot see it
    start   the opening value of each parameter; the first of its values by default
    names   how a control is labelled, with its unit; the parameter's name by default
    size    inches; drawn to be read at 360 to 640 pixels
    grid    for each parameter the values it can take, or an ipywidgets control

    Raises ValueError for a parameter without values, a start that is none of them, more than 512
    frames in all (all of them travel in the page), and other arguments of the wrong kind.

    >>> def line(fig, slope):
    ...     fig.add_axes((0.1, 0.1, 0.8, 0.8)).plot([0, 1], [0, slope])
    ...     return f"It rises by {slope}."
    >>> figure = explore(line, label="A line", slope=[1, 2, 3], start=dict(slope=2))
    >>> figure.note
    'It rises by 2.'
    >>> figure.controls["slope"].value = 3
    >>> figure.note
    'It rises by 3.'
    """
    kind(str, '"Time of a step"', label=label)
    if not (isinstance(size, tuple | list) and len(size) == 2):
        raise ValueError(f"size must be (width, height) in inches, not {size!r}")
    above(0, width=size[0], height=size[1])
    start, names = start or {}, names or {}
    for given, what in (start, "start"), (names, "names"):
        if unknown := sorted(set(given) - set(grid)):
            raise ValueError(f"{what} has {unknown}, but the parameters are {sorted(grid)}")
    controls = [
        Control(name, given, names.get(name), start.get(name)) for name, given in grid.items()
    ]
    count = math.prod(len(c.values) for c in controls)
    if count > MAX_FRAMES:
        raise ValueError(f"the parameters make {count} frames; at most {MAX_FRAMES} are allowed")
    figure = Figure(draw, controls, label, size)
    return LiveFigure(figure) if controls and not prerendering() else StillFigure(figure)
