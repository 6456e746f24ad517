"""`ask`: a question whose answer the library computes and the page marks."""

import math
import re
from collections.abc import Callable, Sequence
from importlib.resources import files
from numbers import Integral, Real

from servesim.checks import kind
from servesim.live import STYLE, prerendering
from servesim.svg import escape

SCRIPT = files("servesim").joinpath("page/ask.js").read_text()


class Question:
    """A question in one or several variants. `answers` holds the answer of each."""

    def __init__(self, variants: list[dict], unit: str, tolerance: float):
        self.variants, self.unit, self.tolerance = variants, unit, tolerance
        self.answers = [variant["answer"] for variant in variants]

    def html(self) -> str:
        """Native inputs, marked by page/ask.js; without a script the answer is folded below."""
        several = len(self.variants) > 1
        parts = "".join(self._variant(v, i, several) for i, v in enumerate(self.variants))
        return f'<div class="ask">{parts}</div>'

    def _variant(self, variant: dict, i: int, several: bool) -> str:
        answer, choices = variant["answer"], variant["choices"]
        if choices:
            data = f'data-answer="{choices.index(answer)}"'
            inner = "".join(
                f'<label><input type="radio" name="choice" value="{k}" data-lm-suppress-shortcuts>'
                f"<span>{_inline(choice)}</span></label>"
                for k, choice in enumerate(choices)
            )
            fields = f'<div class="ask-options">{inner}</div>'
        else:
            data = f'data-answer="{answer!r}" data-tolerance="{self.tolerance!r}" '
            data += f'data-unit="{escape(self.unit)}"'
            fields = (
                '<p><label>Your answer: <input type="text" inputmode="decimal" autocomplete="off" '
                f"data-lm-suppress-shortcuts></label> {escape(self.unit)} "
                f"({f'within {self.tolerance * 100:g} %' if self.tolerance else 'exactly'})</p>"
            )
        more = '<button type="button" class="ask-next">Another one</button>' if several else ""
        return (
            f'<form class="ask-variant" {data}{" hidden" if i else ""}>'
            f'<fieldset><legend class="ask-question">'
            f"{_inline(variant['question'])}</legend>{fields}</fieldset>"
            f'<button type="submit" class="ask-check" disabled>Check</button>{more}'
            '<p class="live-asleep">Checking needs JavaScript.</p>'
            '<p class="ask-mark" role="status"></p>'
            f"<details><summary>Answer and working</summary>"
            f"<p><strong>{_inline(self.written(answer))}.</strong> {_inline(variant['why'])}</p>"
            "</details></form>"
        )

    def written(self, answer) -> str:
        """The answer as the page writes it."""
        if isinstance(answer, str):
            return answer.rstrip(".")
        return f"{_number(answer)} {self.unit}".strip()

    def text(self) -> str:
        """The first variant's question. No answer: a stored output must not give it away."""
        first = self.variants[0]
        return "\n".join([first["question"], *(f"( ) {choice}" for choice in first["choices"])])

    def _repr_mimebundle_(self, **kwargs):
        page = self.html()
        if not prerendering():
            page = f"<style>{STYLE}</style>{page}<script>{SCRIPT}</script>"
        return {"text/plain": self.text(), "text/html": page}


def ask(
    question: str,
    answer: str | float | Callable,
    *,
    why: str | Callable,
    choices: Sequence[str] | Callable = (),
    unit: str = "",
    tolerance: float = 0.05,
    given: Sequence[dict] = ({},),
) -> Question:
    """A question to predict or to check oneself by. Its answer is computed, never typed.

    question   may hold `{name}` for what `given` holds; `code` between backticks
    answer     a number, or one of `choices`; or a function of one variant's values
    why        the working, shown once the reader has answered; or a function of the values
    choices    for a choice; none asks for a number
    unit       of a numeric answer
    tolerance  of a numeric answer, relative: 0.05 takes what is within 5 %
    given      the variants: values for `{name}` and for the functions above

    Raises ValueError where the answer is none of the choices, a number is not finite, there is no
    variant, or an argument is of the wrong kind.

    >>> ask("How long do {n} tokens take at 20 ms each?", lambda n: n * 20, unit="ms",
    ...     why=lambda n: f"{n} × 20 ms.", given=[dict(n=10), dict(n=500)]).answers
    [200, 10000]
    """
    if not given:
        raise ValueError("given must hold at least one variant; leave it out for a single one")
    if not (isinstance(tolerance, Real) and 0 <= tolerance < 1):
        raise ValueError(f"tolerance must be at least 0 and below 1, not {tolerance!r}")
    kind(str, '"How many?"', question=question, unit=unit)

    def of(thing, values: dict):
        return thing(**values) if callable(thing) else thing

    variants = []
    for values in given:
        kind(dict, "dict(n=10), one of a list", given=values)
        variant = dict(
            question=_filled(question, values),
            answer=of(answer, values),
            choices=list(of(choices, values)),
            why=of(why, values),
        )
        _check(variant)
        variants.append(variant)
    return Question(variants, unit, tolerance)


def _filled(question: str, values: dict) -> str:
    try:
        return question.format(**values)
    except (KeyError, IndexError, ValueError):
        raise ValueError(
            f"question may hold {{name}} for {sorted(values)}, and {{{{ for a brace: {question!r}"
        ) from None


def _check(variant: dict) -> None:
    answer, choices = variant["answer"], variant["choices"]
    kind(str, '"20 ms each"', why=variant["why"])
    for choice in choices:
        kind(str, '"about 5 %"', choices=choice)
    if choices:
        if answer not in choices:
            raise ValueError(f"answer must be one of {choices}, not {answer!r}")
        if len(set(choices)) != len(choices):
            raise ValueError(f"choices must differ from each other, not {choices}")
    elif not isinstance(answer, Real) or not math.isfinite(answer):
        raise ValueError(f"answer must be a finite number where there are no choices: {answer!r}")
    else:
        variant["answer"] = int(answer) if isinstance(answer, Integral) else float(answer)


def _number(value: float) -> str:
    if value == 0 or 1e-3 <= abs(value) < 1e15:
        digits = max(0, 3 - math.floor(math.log10(abs(value)))) if value else 0
        text = f"{value:,.{digits}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{value:.4g}"


def _inline(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
