"""The figures of the built pages: they move, and they show what the library says."""

import itertools
import random

import pytest

from chapters import each_chapter, figures
from reader import note, picture, put
from servesim.quiz import ask


def corners(figure):
    """The ends of every control, in all combinations."""
    ends = [sorted({0, len(control.values) - 1}) for control in figure.controls]
    return list(itertools.product(*ends))


@each_chapter
def test_sentences_are_the_librarys(chapter, reader):
    """The opening frame, every corner and a few places between, of every figure."""
    page = reader.open(f"chapters/{chapter.stem}.html")
    drawn = figures(chapter)
    assert page.locator(".live").count() == len(drawn) > 0
    for figure in drawn:
        assert note(page, figure) == figure.frame().note
        heights = [height(page, figure)]
        inside = random.Random(1).sample(figure.grid(), min(5, len(figure.grid())))
        for where in [*corners(figure), *inside] if figure.controls else []:
            assert put(page, figure, where) == figure.frame(where).note, where
            heights.append(height(page, figure))
        assert max(heights) - min(heights) <= 1, "the page below moves"
    assert not reader.errors


def height(page, figure):
    return page.locator(f"#{figure.key}").bounding_box()["height"]


@each_chapter
def test_every_slider_moves_its_figure_with_mouse_and_keys(chapter, reader):
    page = reader.open(f"chapters/{chapter.stem}.html")
    live = [figure for figure in figures(chapter) if figure.controls]
    assert live, "a chapter has a figure that the reader can move"
    for figure in live:
        rows = page.locator(f"#{figure.key} .live-row")
        for i, control in enumerate(figure.controls):
            put(page, figure, tuple(c.start for c in figure.controls))
            work_control(page, figure, control, rows.nth(i))
    assert not reader.errors and not reader.refused


def work_control(page, figure, control, row):
    """Take one control from end to end; both the picture and the sentence must change."""
    if control.kind == "range":
        slider = row.locator("input")
        slider.focus()
        page.keyboard.press("Home")
        first = picture(page, figure), note(page, figure)
        for _ in control.values[1:]:
            page.keyboard.press("ArrowRight")
        assert row.locator("output").text_content() == control.options[-1]
        last = picture(page, figure), note(page, figure)
        drag(page, slider, start=1, end=0)
        assert (picture(page, figure), note(page, figure)) == first
        drag(page, slider, start=0, end=1)
        assert (picture(page, figure), note(page, figure)) == last
    elif control.kind == "choice":
        row.locator("input").first.check()
        row.locator("input").first.focus()
        first = picture(page, figure), note(page, figure)
        for _ in control.values[1:]:
            page.keyboard.press("ArrowRight")
        last = picture(page, figure), note(page, figure)
    else:
        row.locator("select").select_option(index=0)
        first = picture(page, figure), note(page, figure)
        row.locator("select").select_option(index=len(control.values) - 1)
        last = picture(page, figure), note(page, figure)
    assert first[0] != last[0], f"{control.name} leaves the picture as it was"
    assert first[1] != last[1], f"{control.name} leaves the sentence as it was"


def drag(page, slider, start, end):
    """Drag the thumb with the mouse between two ends of the slider (0: left, 1: right)."""
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    at = {0: box["x"] + 8, 1: box["x"] + box["width"] - 8}
    y = box["y"] + box["height"] / 2
    page.mouse.move(at[start], y)
    page.mouse.down()
    page.mouse.move((at[0] + at[1]) / 2, y, steps=4)
    page.mouse.move(at[end] + (20 if end else -20), y, steps=4)
    page.mouse.up()


@each_chapter
def test_questions_are_marked(chapter, reader):
    """Every question refuses another answer, by the keyboard, then takes its computed one."""
    page = reader.open(f"chapters/{chapter.stem}.html")
    questions = page.locator(".ask")
    assert questions.count() >= 3
    for i in range(questions.count()):
        forms = questions.nth(i).locator("form.ask-variant")
        for j in range(forms.count()):
            form = forms.nth(j)
            assert not form.locator("details p").first.is_visible()
            answer(form, right=False).press("Enter")
            assert form.locator(".ask-mark").text_content() == "Not quite: see the working."
            assert form.locator("details p").first.is_visible()
            answer(form, right=True)
            form.locator(".ask-check").click()
            assert form.locator(".ask-mark").text_content() == "Right."
            if j + 1 < forms.count():
                form.locator(".ask-next").click()
    assert not reader.errors


def answer(form, right):
    """Choose or type; the control in which that was done."""
    value = form.get_attribute("data-answer")
    if form.get_attribute("data-tolerance") is None:
        count = form.locator("input").count()
        control = form.locator("input").nth(int(value) if right else (int(value) + 1) % count)
        control.check()
    else:
        number = float(value) * (1 if right else 1.5) + (0 if right else 1)
        control = form.locator("input")
        control.fill(f"{number:,.6g}")
    return control


def test_an_empty_answer_is_not_marked(reader):
    page = reader.open("chapters/14_bandwidth_bound.html")
    page.locator(".ask-check").first.click()
    assert page.locator(".ask-mark").first.text_content() == "Choose one first."
    assert not page.locator(".ask details p").first.is_visible()


@pytest.mark.parametrize(
    "answer, unit, typed, said",
    [
        (1500, "ms", "1,500", "Right."),
        (1500, "ms", "1 500 ms", "Right."),
        (1500, "ms", "1.5e3", "Right."),
        (1.5, "s", "1,5", "Right."),
        (0.528, "", "0,528", "Right."),
        (2303, "", "2,303", "Right."),
        (2.303, "", "2,303", "Right."),
        (9.5, "ms", "about 9.47", "Right."),
        (9.5, "ms", "~9.3", "Right."),
        (9.5, "ms", "9.0", "Not quite: see the working."),
        (-4, "", "−4", "Right."),
        (53.5, "ms", "53.5 s", "Type the number alone, in ms."),
        (53.5, "tok/s", "53.5 tok/s", "Right."),
        (53.5, "ms", "abc", "Type a number first."),
        (53.5, "ms", "", "Type a number first."),
    ],
)
def test_numbers_are_read_as_people_write_them(chromium, answer, unit, typed, said):
    question = ask("How much?", answer, unit=unit, why="because")
    page = chromium.new_page()
    page.set_content(question._repr_mimebundle_()["text/html"])
    page.locator("input").fill(typed)
    page.locator(".ask-check").click()
    assert page.locator(".ask-mark").text_content() == said
    page.close()
