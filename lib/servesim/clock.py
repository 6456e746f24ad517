"""What one step of the engine holds, and how long it takes in whole femtoseconds.

Time inside the engine is an integer, so that two ways to compute a run can be compared for
equality. Seconds exist at the edges only.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from servesim import costs
from servesim.checks import at_least, whole
from servesim.costs import IDEAL, Reach, causal_pairs
from servesim.hardware import Accelerator
from servesim.models import Model
from servesim.precision import BF16, Precision

SECOND = 10**15  # fs
MS = 10**12  # fs


class Chunk(NamedTuple):
    """Prompt tokens that one sequence computes in a step."""

    tokens: int
    cached: int  # tokens that the sequence had in the cache before

    @property
    def pairs(self) -> int:
        """Query-key pairs: every token attends to the cached ones, itself and those between."""
        return self.tokens * self.cached + causal_pairs(self.tokens)


class Work(NamedTuple):
    """What one step computes.

    contexts  for each sequence that gains one token: the tokens it has in the cache
    chunks    prompts, or parts of prompts, that are prefilled
    """

    contexts: list[int]
    chunks: list[Chunk]

    @property
    def decodes(self) -> int:
        return len(self.contexts)

    @property
    def prompt_tokens(self) -> int:
        return sum(chunk.tokens for chunk in self.chunks)

    @property
    def new_tokens(self) -> int:
        return self.decodes + self.prompt_tokens

    @property
    def cached(self) -> int:
        """Cached tokens that attention reads."""
        return sum(self.contexts) + sum(chunk.cached for chunk in self.chunks)

    @property
    def pairs(self) -> int:
        """Query-key pairs of the prefills."""
        return sum(chunk.pairs for chunk in self.chunks)


Clock = Callable[[Work], int]  # fs of a step


@dataclass(frozen=True, slots=True)
class Linear:
    """A clock that is linear in the context: fixed(decodes, prompt tokens) + read c + score p.

    fixed  fs that do not depend on what is cached
    read   fs for each of the c cached tokens that attention reads
    score  fs for each of the p query-key pairs of the prefills

    Sums of such steps have a closed form: `fast.py` lives on that.
    Raises ValueError for a read or score that is not a whole number of at least 0.
    """

    fixed: Callable[[int, int], int]
    read: int = 0
    score: int = 0

    def __post_init__(self):
        whole(0, read=self.read, score=self.score)

    def __call__(self, work: Work) -> int:
        fixed = self.fixed(work.decodes, work.prompt_tokens)
        return fixed + self.read * work.cached + self.score * work.pairs


def ticks(seconds: float) -> int:
    """Whole femtoseconds, the nearest.

    >>> ticks(0.02)
    20000000000000
    """
    return round(seconds * SECOND)


def by_hand(
    *, step_s: float = 0.0, decode_s: float = 0.0, prompt_token_s: float = 0.0, any_s: float = 0.0
) -> Linear:
    """The clock of the worked examples.

    step_s          s of a step in which anybody decodes, however many they are
    decode_s        s for each sequence that decodes, on top
    prompt_token_s  s for each prompt token
    any_s           s of every step, whatever it holds

    Raises ValueError for negative or infinite times.

    >>> clock = by_hand(step_s=0.020, prompt_token_s=0.0005)
    >>> clock(Work([7, 9], [])) == 20 * MS, clock(Work([7], [Chunk(200, 0)])) == 120 * MS
    (True, True)
    """
    at_least(0, step_s=step_s, decode_s=decode_s, prompt_token_s=prompt_token_s, any_s=any_s)
    step, decode, token, always = map(ticks, (step_s, decode_s, prompt_token_s, any_s))

    def fixed(decodes: int, prompt_tokens: int) -> int:
        return always + step * (decodes > 0) + decode * decodes + token * prompt_tokens

    return Linear(fixed)


def of(
    model: Model,
    chip: Accelerator,
    *,
    tp: int = 1,
    weights: Precision = BF16,
    cache: Precision = BF16,
    reach: Reach = IDEAL,
) -> Linear:
    """The clock of a model on a group of `tp` chips: `costs.step`, each term in whole fs.

    Source: `costs.step`.
    Left out: as there; a chunk reads its cached prefix once.
    Raises ValueError for arguments of the wrong kind, and for a model whose layers do not all keep
    every token (windows).

    >>> from servesim.hardware import H100
    >>> from servesim.models import LLAMA_3_1_8B
    >>> t = of(LLAMA_3_1_8B, H100)(Work([1000, 3000], []))
    >>> print(f"{t / MS:.2f} ms")
    4.95 ms
    """
    costs.check_kinds(model, chip, reach, weights=weights, cache=cache)
    token = model.kv_bytes(1, cache, tp)
    if model.kv_bytes(10**6, cache, tp) != 10**6 * token:
        raise ValueError(f"model must keep every token in every layer, {model.name} does not")
    plan = partial(costs.step, model, chip, tp=tp, weights=weights, reach=reach)
    one = plan(new_tokens=1, kv_bytes=token, pairs=1)

    known: dict[int, int] = {}  # new tokens: fs without attention

    def fixed(decodes: int, prompt_tokens: int) -> int:
        new_tokens = decodes + prompt_tokens
        if new_tokens not in known:
            known[new_tokens] = ticks(plan(new_tokens=new_tokens).total_s)
        return known[new_tokens]

    return Linear(fixed, read=ticks(one.kv_s), score=ticks(one.attention_s))
