"""Live figures and questions without a browser: what is drawn, packed and refused."""

import base64
import json
import re
import zlib

import ipywidgets
import numpy as np
import pytest

from servesim import svg, theme
from servesim.live import Figure, LiveFigure, StillFigure, explore
from servesim.quiz import ask


def bars(fig, count, style="solid"):
    ax = theme.axes(fig, xlabel="bar", ylabel="height, m", xlim=(0, 6), ylim=(0, 6))
    ax.bar(range(1, count + 1), range(1, count + 1), color=theme.ORANGE)
    ax.plot([0, count], [0, count], linestyle=style)
    return f"{count} bars, {style}."


def opened(text: str) -> dict:
    return json.loads(zlib.decompress(base64.b64decode(text)))


@pytest.fixture
def prerendered(monkeypatch):
    monkeypatch.setenv("SERVESIM_PRERENDER", "1")


def test_with_a_kernel_it_is_an_ipywidget():
    shown = explore(bars, label="Bars", count=[1, 2, 3], style=["solid", "dashed"])
    assert isinstance(shown, LiveFigure) and isinstance(shown, ipywidgets.VBox)
    assert isinstance(shown.controls["count"], ipywidgets.SelectionSlider)
    assert isinstance(shown.controls["style"], ipywidgets.ToggleButtons)
    before = shown.children[-1].value
    shown.controls["count"].value = 3
    assert shown.note == "3 bars, solid." and shown.children[-1].value != before


def test_a_given_widget_is_the_control():
    slider = ipywidgets.IntSlider(min=1, max=5, step=2, value=3, description="how many")
    shown = explore(bars, label="Bars", count=slider)
    assert shown.controls["count"] is slider
    assert shown.figure.controls[0].values == [1, 3, 5]
    assert shown.figure.controls[0].label == "how many"
    slider.value = 5
    assert shown.note == "5 bars, solid."


@pytest.mark.parametrize(
    "widget, values",
    [
        (ipywidgets.FloatSlider(min=0, max=0.3, step=0.1, value=0.1), [0, 0.1, 0.2, 0.3]),
        (ipywidgets.Checkbox(value=True), [False, True]),
        (ipywidgets.Dropdown(options=[("a", 1), ("b", 2)], value=2), [1, 2]),
    ],
)
def test_values_of_a_widget(widget, values):
    def draw(fig, x):
        theme.axes(fig)
        return f"{x}"

    control = explore(draw, label="x", x=widget).figure.controls[0]
    assert control.values == pytest.approx(values)
    assert control.values[control.start] == pytest.approx(widget.value)


def test_text_output_is_label_and_sentence():
    for shown in (explore(bars, label="Bars", count=[2]), explore(draw_still, label="Still")):
        bundle = shown._repr_mimebundle_()
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        assert data["text/plain"] == shown.figure.text()


def draw_still(fig):
    theme.axes(fig, xlabel="x").plot([0, 1])
    return "It stands."


def test_without_parameters_it_is_still(prerendered):
    shown = explore(draw_still, label="Still")
    assert isinstance(shown, StillFigure)
    html = shown._repr_mimebundle_()["text/html"]
    assert "live-pack" not in html and "It stands." in html


def test_the_page_has_every_frame(prerendered):
    figure = explore(bars, label="Bars", count=[1, 2, 3], style=["solid", "dashed"]).figure
    [data] = re.findall(r'class="live-pack">([^<]*)<', figure.html())
    content = opened(data)
    assert content["notes"] == [figure.frame(where).note for where in figure.grid()]
    for k, where in enumerate(figure.grid()):
        slots = [s if isinstance(s, int) else s[k] for s in content["slots"]]
        pieces = [content["pieces"][i] for i in slots if i >= 0]
        assert pieces == figure.frame(where).pieces
    assert len(set(content["pieces"])) == len(content["pieces"])


def test_frames_share_what_does_not_change(prerendered):
    figure = explore(bars, label="Bars", count=[1, 2, 3]).figure
    one, three = figure.frame((0,)), figure.frame((2,))
    assert len(set(one.pieces) & set(three.pieces)) >= len(one.pieces) - 2
    assert len(three.pieces) == len(one.pieces) + 2  # two more bars


def test_an_axis_that_changes_is_drawn_again():
    def draw(fig, top, unit):
        theme.axes(fig, ylabel=f"height, {unit}", ylim=(0, top))
        return f"up to {top} {unit}"

    figure = Figure(
        draw, explore(draw, label="x", top=[1, 10], unit=["m", "km"]).figure.controls, "x", (4, 3)
    )
    frames = [figure.frame(where) for where in figure.grid()]
    assert len({"".join(frame.pieces) for frame in frames}) == 4
    for frame, where in zip(frames, figure.grid(), strict=True):
        alone = svg.draw_frame(draw, figure.values(where), (4, 3), figure.key)
        assert alone.pieces == frame.pieces


def test_an_axis_with_labels_of_its_own_is_drawn_once():
    def draw(fig, count):
        ax = theme.axes(fig, xlim=(0, 4), ylim=(0, 4))
        ax.set_xticks([1, 2, 3], ["one", "two", "three"])
        ax.plot([count], [count], "o")
        return f"{count}"

    figure = explore(draw, label="x", count=[1, 2, 3]).figure
    for where in figure.grid():
        figure.frame(where)
    assert len(figure._axis_pieces) == 2


def test_labels_keep_their_digits():
    def draw(fig):
        theme.axes(fig, xlim=(0, 4), ylim=(0, 4.5)).text(1, 1, "3.14159 and 2.0")
        return "x"

    text = "".join(explore(draw, label="x").figure.frame().pieces)
    assert ">3.14159 and 2.0<" in text and ">4.0<" in text


def test_no_colour_escapes_the_theme():
    frame = explore(bars, label="Bars", count=[3]).figure.frame()
    assert not re.findall(r"#[0-9a-fA-F]{6}", "".join(frame.pieces))
    assert "var(--live-c1)" in "".join(frame.pieces)


def test_ids_differ_between_figures():
    one = explore(bars, label="One", count=[3]).figure.frame()
    other = explore(bars, label="Other", count=[3]).figure.frame()
    assert one.defs and not set(one.defs) & set(other.defs)


@pytest.mark.parametrize(
    "settings, message",
    [
        (dict(count=[]), "count must have at least one value"),
        (dict(count=[1, 2], start=dict(count=5)), r"count must be one of \['1', '2'\], not 5"),
        (dict(count=[1], start=dict(cuont=1)), r"start has \['cuont'\]"),
        (dict(count=[1], names=dict(x="y")), r"names has \['x'\]"),
        (dict(count=range(600)), "600 frames; at most 512"),
        (dict(count=ipywidgets.Text()), "cannot tell which values Text can take"),
        (dict(count=3), "count must be a list of values or an ipywidgets control, not 3"),
        (dict(count={"one": 1}), "count must be a list of values"),
        (dict(count=[1], label=None), "label must be of the class str"),
        (dict(count=[1], size=5), r"size must be \(width, height\) in inches, not 5"),
        (dict(count=[1], size=(5, 0)), "height must be a number above 0"),
    ],
)
def test_refuses_with_a_clear_error(settings, message):
    with pytest.raises(ValueError, match=message):
        explore(bars, **dict(label="Bars") | settings)


def test_any_iterable_gives_the_values():
    for given in (n for n in (1, 2)), {1: 0, 2: 0}.keys(), range(1, 3):
        assert explore(bars, label="Bars", count=given).figure.controls[0].values == [1, 2]


def test_draw_must_return_the_sentence():
    with pytest.raises(ValueError, match="draw must return the sentence"):
        explore(lambda fig: None, label="x")._repr_mimebundle_()


def test_control_kinds():
    class Chip:
        name = "A <chip>"

    def draw(fig, **values):
        theme.axes(fig)
        return "x"

    grid = dict(n=[1, 1000], on=[False, True], chip=[Chip()], word=list("abcde"))
    controls = explore(draw, label="x", **grid).figure.controls
    assert [c.kind for c in controls] == ["range", "choice", "choice", "select"]
    assert [c.options for c in controls[:3]] == [["1", "1,000"], ["off", "on"], ["A <chip>"]]
    assert "A &lt;chip&gt;" in controls[2].html("x")


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize(
    "rule, paper", [(r"^\.live, \.ask \{", "#ffffff"), (r"^html\[", "#121212")]
)
def test_series_can_be_read_as_text_on_the_page(rule, paper):
    """WCAG 2: 4.5 to 1 against the page in both themes."""
    from servesim.live import STYLE

    block = STYLE[re.search(rule, STYLE, re.M).end() :].split("}")[0]
    colours = re.findall(r"--live-(?:c\d|good|bad): (#[0-9a-f]{6})", block)
    assert len(colours) == 7
    for colour in colours:
        pair = sorted([luminance(colour), luminance(paper)])
        assert (pair[1] + 0.05) / (pair[0] + 0.05) >= 4.5, colour


def test_question_answers_are_computed_for_each_variant():
    question = ask(
        "{n} times {m}?",
        lambda n, m: n * m,
        why=lambda n, m: f"{n} × {m}",
        given=[dict(n=2, m=3), dict(n=4, m=5)],
    )
    assert question.answers == [6, 20]
    assert question.text() == "2 times 3?"
    html = question.html()
    assert 'data-answer="6"' in html and 'data-answer="20"' in html and "4 × 5" in html


def test_question_hides_its_answer_from_stored_text():
    assert "42" not in ask("What?", 42, why="because")._repr_mimebundle_()["text/plain"]


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(answer="c", choices=["a", "b"]), r"answer must be one of \['a', 'b'\], not 'c'"),
        (dict(answer="a", choices=["a", "a"]), "choices must differ"),
        (dict(answer="a"), "answer must be a finite number"),
        (dict(answer=float("nan")), "answer must be a finite number"),
        (dict(answer=1, given=[]), "given must hold at least one variant"),
        (dict(answer=1, tolerance=1.5), "tolerance must be at least 0 and below 1"),
        (dict(answer=1, tolerance="5 %"), "tolerance must be at least 0 and below 1"),
        (dict(answer=1, question="{x}?"), r"question may hold \{name\} for \[\], and \{\{"),
        (dict(answer=1, question="{1, 2}?", given=[dict(n=1)]), r"\{name\} for \['n'\]"),
        (dict(answer=1, given=dict(n=1)), "given must be of the class dict"),
        (dict(answer=1, choices=[1, 2]), "choices must be of the class str"),
        (dict(answer=1, why=None), "why must be of the class str"),
    ],
)
def test_question_refuses_with_a_clear_error(arguments, message):
    with pytest.raises(ValueError, match=message):
        ask(**dict(question="What?", why="because") | arguments)


def test_numpys_numbers_are_answers():
    for number in np.int64(3), np.float32(3.0):
        [answer] = ask("What?", number, why="because").answers
        assert answer == 3 and type(answer) in (int, float)


def test_numbers_are_written_to_four_digits():
    question = ask("What?", 0.0, why="because")
    assert [question.written(x) for x in (3.36159, 1234.5678, 131072, 0.0, 2.5e-9)] == [
        "3.362",
        "1,235",
        "131,072",
        "0",
        "2.5e-09",
    ]
