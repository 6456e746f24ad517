"""A tiny transformer with random weights: real tokens, real attention, a real cache, no meaning.

It shows what is computed and how often, so it is written to be read and counts its own work.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from servesim.checks import at_least

WORDS = """
<unknown> a the one this that my your our every some no
cat dog bird mouse child friend teacher river house garden kitchen window road night morning song
small big old young quiet happy hungry green warm slow
sat ran slept sang saw found followed left opened ate is was
on in under over near with by to from and or but then .
""".split()


class Counts(NamedTuple):
    """Work that a completion took. Layers and heads are alike, so one of them is counted."""

    projections: int  # tokens whose key and value were computed
    scores: int  # query-key pairs that attention scored


@dataclass(frozen=True, slots=True, eq=False)
class Completion:
    text: str
    prompt_tokens: int
    completion_tokens: int
    counts: Counts
    logits: np.ndarray = field(repr=False)  # (tokens, words): what each token was chosen from


def tokenize(text: str) -> list[str]:
    """Tokens of the toy: the words between white space.

    >>> tokenize("a cat")
    ['a', 'cat']
    """
    return text.split()


def attention(
    queries: np.ndarray, keys: np.ndarray, values: np.ndarray, causal: bool = True
) -> np.ndarray:
    """Scaled dot-product attention: softmax(queries keys^T / sqrt(d)) values.

    queries  (..., m, d)
    keys     (..., n, d)
    values   (..., n, v)
    causal   the m queries are the last m of the n positions, and each sees itself and what is
             before it; False: every query sees every key
    Returns  (..., m, v)

    Source: Vaswani et al. (2017), arXiv:1706.03762, section 3.2.1.
    Raises ValueError for shapes that do not fit together.

    >>> attention(np.ones((1, 2)), np.ones((4, 2)), np.arange(4.0)[:, None])   # a plain mean
    array([[1.5]])
    """
    (m, d), (n, key_d) = queries.shape[-2:], keys.shape[-2:]
    if d != key_d or values.shape[-2] != n or (causal and m > n):
        shapes = queries.shape, keys.shape, values.shape
        raise ValueError(
            f"queries, keys, values have shapes {shapes}: "
            "expected (m, d), (n, d), (n, v), and m <= n if causal"
        )
    scores = queries @ keys.swapaxes(-1, -2) / np.sqrt(d)
    if causal:
        scores = np.where(np.tri(m, n, n - m, dtype=bool), scores, -np.inf)
    chances = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return chances / chances.sum(axis=-1, keepdims=True) @ values


class Layer(NamedTuple):
    """Weights of one layer. d is the width of the model."""

    query: np.ndarray  # (d, d)
    key: np.ndarray  # (d, d)
    value: np.ndarray  # (d, d)
    out: np.ndarray  # (d, d)
    up: np.ndarray  # (d, 4 d)
    down: np.ndarray  # (4 d, d)


class Toy(NamedTuple):
    """Weights of a decoder. Heads split the width d among them."""

    heads: int
    embedding: np.ndarray  # (words, d)
    layers: tuple[Layer, ...]
    head: np.ndarray  # (d, words)


def toy(*, layers: int = 2, hidden: int = 32, heads: int = 4, seed: int = 0) -> Toy:
    """A toy with random weights; equal arguments give equal weights.

    Raises ValueError for arguments below 1 and heads that do not divide an even `hidden`.

    >>> toy(hidden=16).embedding.shape
    (64, 16)
    """
    at_least(1, layers=layers, hidden=hidden, heads=heads)
    if hidden % heads or hidden % 2:
        raise ValueError(f"hidden must be even and a multiple of heads {heads}, got {hidden}")
    rng = np.random.default_rng(seed)

    def matrix(rows: int, columns: int) -> np.ndarray:
        return rng.normal(size=(rows, columns)) / np.sqrt(rows)

    shapes = [(hidden, hidden)] * 4 + [(hidden, 4 * hidden), (4 * hidden, hidden)]
    return Toy(
        heads=heads,
        embedding=rng.normal(size=(len(WORDS), hidden)),
        layers=tuple(Layer(*(matrix(*shape) for shape in shapes)) for _ in range(layers)),
        head=matrix(hidden, len(WORDS)),
    )


class Cache(NamedTuple):
    """Keys and values of earlier tokens: for each layer an array (heads, tokens, d / heads)."""

    keys: list[np.ndarray]
    values: list[np.ndarray]

    @property
    def tokens(self) -> int:
        return self.keys[0].shape[1]


def empty_cache(toy: Toy) -> Cache:
    width = toy.embedding.shape[1] // toy.heads
    nothing = [np.empty((toy.heads, 0, width))] * len(toy.layers)
    return Cache(nothing, nothing)


def forward(toy: Toy, ids: list[int], cache: Cache) -> tuple[np.ndarray, Cache, Counts]:
    """One pass over the tokens `ids`, which follow those in `cache`.

    Returns the logits (words,) after the last token, the cache with `ids` added, and the work.
    Raises ValueError when there are no ids.
    """
    if not ids:
        raise ValueError(f"ids must hold at least one token, got {ids}")
    start = cache.tokens
    x = toy.embedding[ids] + _positions(start, len(ids), toy.embedding.shape[1])
    grown = Cache([], [])
    for layer, old_keys, old_values in zip(toy.layers, *cache, strict=True):
        h = _norm(x)
        queries, keys, values = (
            _split(h @ w, toy.heads) for w in (layer.query, layer.key, layer.value)
        )
        grown.keys.append(np.concatenate([old_keys, keys], axis=1))
        grown.values.append(np.concatenate([old_values, values], axis=1))
        x = x + _join(attention(queries, grown.keys[-1], grown.values[-1])) @ layer.out
        x = x + np.maximum(_norm(x) @ layer.up, 0) @ layer.down
    scores = sum(range(start + 1, start + len(ids) + 1))  # token i sees itself and those before
    return _norm(x[-1]) @ toy.head, grown, Counts(projections=len(ids), scores=scores)


def _positions(start: int, count: int, hidden: int) -> np.ndarray:
    """Sines and cosines of the position, (count, hidden): Vaswani et al. (2017), section 3.5."""
    angles = np.arange(start, start + count)[:, None] / 10_000 ** np.linspace(0, 1, hidden // 2)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


def _norm(x: np.ndarray) -> np.ndarray:
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True))


def _split(x: np.ndarray, heads: int) -> np.ndarray:
    """(tokens, d) -> (heads, tokens, d / heads)."""
    return x.reshape(len(x), heads, -1).swapaxes(0, 1)


def _join(x: np.ndarray) -> np.ndarray:
    """(heads, tokens, d / heads) -> (tokens, d)."""
    return x.swapaxes(0, 1).reshape(x.shape[1], -1)


TOY = toy()


def complete(
    prompt: str,
    max_tokens: int,
    *,
    temperature: float = 0.0,
    seed: int = 0,
    stop: str | None = None,
    use_cache: bool = True,
    toy: Toy = TOY,
) -> Completion:
    """Continue `prompt` by `max_tokens` tokens, or up to and including the word `stop`.

    With a cache every token is projected once; without one each step starts again from token 1.

    temperature  0: the likeliest word; above 0: a random one, the flatter the higher
    seed         of that choice
    use_cache    changes the work (`counts`), never the words

    Left out: words that the toy does not know are all alike (<unknown>).
    Raises ValueError for an empty prompt, max_tokens below 1, a negative temperature and a stop
    that is no word of the toy.

    >>> c = complete("a cat", max_tokens=5)
    >>> c.prompt_tokens, c.completion_tokens, c.counts
    (2, 5, Counts(projections=6, scores=21))
    >>> complete("a cat", max_tokens=5, use_cache=False).counts
    Counts(projections=20, scores=55)
    """
    at_least(1, max_tokens=max_tokens)
    at_least(0, temperature=temperature)
    if stop not in (None, *WORDS):
        raise ValueError(f"stop must be None or one of the toy's words, got {stop!r}")
    ids = [WORDS.index(w) if w in WORDS else 0 for w in tokenize(prompt)]
    if not ids:
        raise ValueError(f"prompt must contain at least one word, got {prompt!r}")
    rng, cache, steps = np.random.default_rng(seed), empty_cache(toy), []
    prompt_tokens = len(ids)
    for _ in range(max_tokens):
        known = cache if use_cache else empty_cache(toy)
        logits, cache, counts = forward(toy, ids[known.tokens :], known)
        steps.append((logits, counts))
        ids.append(_choose(logits, temperature, rng))
        if WORDS[ids[-1]] == stop:
            break
    return Completion(
        text=" ".join(WORDS[i] for i in ids[prompt_tokens:]),
        prompt_tokens=prompt_tokens,
        completion_tokens=len(steps),
        logits=np.array([logits for logits, _ in steps]),
        counts=Counts(*map(sum, zip(*(counts for _, counts in steps), strict=True))),
    )


def _choose(logits: np.ndarray, temperature: float, rng: np.random.Generator) -> int:
    if temperature == 0:
        return int(logits.argmax())
    chances = np.exp((logits - logits.max()) / temperature)
    return int(rng.choice(len(chances), p=chances / chances.sum()))
