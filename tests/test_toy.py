"""The toy transformer: counts by hand, attention against a loop, cache against no cache."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim.toy import (
    TOY,
    WORDS,
    Counts,
    attention,
    complete,
    empty_cache,
    forward,
    tokenize,
    toy,
)


def test_example_1_usage():
    completion = complete("a cat", max_tokens=5)
    assert (completion.prompt_tokens, completion.completion_tokens) == (2, 5)
    assert len(tokenize(completion.text)) == 5
    assert completion.logits.shape == (5, len(WORDS))


@pytest.mark.parametrize("n, without", [(10, 55), (20, 210)])
def test_examples_9_and_10_projections(n, without):
    # One word, then n steps: step i sees i tokens.
    naive, cached = (complete("a", n, use_cache=use_cache) for use_cache in (False, True))
    assert naive.counts.projections == without == n * (n + 1) // 2
    assert cached.counts.projections == n
    # Attention is not saved by a cache in the same way: O(n^3) falls to O(n^2), not to O(n).
    assert naive.counts.scores == n * (n + 1) * (n + 2) // 6
    assert cached.counts.scores == n * (n + 1) // 2


def test_a_prompt_is_projected_once():
    assert complete("the small cat sat", 1).counts == Counts(projections=4, scores=10)
    assert complete("the small cat sat", 3).counts == Counts(projections=6, scores=10 + 5 + 6)


texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)


@given(texts, st.integers(1, 12), st.sampled_from([0.0, 1.0]), st.integers(0, 3))
def test_the_cache_changes_the_work_only(prompt, max_tokens, temperature, seed):
    args = {"temperature": temperature, "seed": seed}
    cached, naive = (complete(prompt, max_tokens, use_cache=c, **args) for c in (True, False))
    assert cached.text == naive.text
    # 1e-9: sums of 32 numbers in another order, in double precision
    assert cached.logits == pytest.approx(naive.logits, rel=1e-9, abs=1e-9)
    assert cached.counts.projections <= naive.counts.projections


@given(texts)
def test_a_prompt_in_two_passes(prompt):
    """Prefilling in chunks gives what one pass gives."""
    ids = [WORDS.index(word) for word in prompt.split()]
    whole, *_ = forward(TOY, ids, empty_cache(TOY))
    cut, cache = len(ids) // 2, empty_cache(TOY)
    if cut:
        _, cache, _ = forward(TOY, ids[:cut], cache)
    assert cache.tokens == cut
    rest, cache, _ = forward(TOY, ids[cut:], cache)
    assert rest == pytest.approx(whole, rel=1e-9, abs=1e-9)
    assert cache.tokens == len(ids)


def test_each_token_depends_on_all_before():
    base = complete("the cat sat on the", 1).logits[0]
    for changed in ("a cat sat on the", "the dog sat on the", "cat the sat on the"):
        assert not np.allclose(complete(changed, 1).logits[0], base)


def test_order_matters():
    # One layer: without positions the last token would see a bag of words.
    small = toy(layers=1)
    one, other = (complete(text, 1, toy=small).logits for text in ("the cat sat", "cat the sat"))
    assert not np.allclose(one, other)


def test_greedy_and_sampled():
    assert complete("my dog", 8).text == complete("my dog", 8, seed=5).text
    one, again, other = (complete("my dog", 8, temperature=1, seed=s).text for s in (1, 1, 2))
    assert one == again != other
    assert complete("my dog", 8, temperature=1e-6).text == complete("my dog", 8).text


def test_a_stop_word_ends_it():
    free = complete("a cat", 200, temperature=2, seed=1)
    stopped = complete("a cat", 200, temperature=2, seed=1, stop=".")
    assert "." in free.text.split()
    assert stopped.text == free.text[: free.text.index(".") + 1]
    assert stopped.completion_tokens < 200


def test_unknown_words_are_tokens_too():
    completion = complete("https://example.org/a/long/address cat", 1)
    assert completion.prompt_tokens == 2
    assert completion.logits == pytest.approx(complete("blah cat", 1).logits)


def test_another_toy():
    small = toy(layers=1, hidden=8, heads=2, seed=3)
    assert len(small.layers) == 1
    assert complete("a", 3, toy=small).text == complete("a", 3, toy=toy(**SMALL)).text


SMALL = {"layers": 1, "hidden": 8, "heads": 2, "seed": 3}


# attention


def attention_by_loops(queries, keys, values, causal):
    m, n = len(queries), len(keys)
    out = np.zeros((m, values.shape[1]))
    for i in range(m):
        seen = n - m + i + 1 if causal else n
        weights = np.array(
            [np.exp(queries[i] @ keys[j] / len(keys[j]) ** 0.5) for j in range(seen)]
        )
        out[i] = sum(w * values[j] for j, w in enumerate(weights / weights.sum()))
    return out


@given(st.integers(1, 5), st.integers(0, 5), st.integers(1, 4), st.booleans(), st.integers(0, 9))
def test_attention(m, earlier, d, causal, seed):
    rng = np.random.default_rng(seed)
    queries, keys = rng.normal(size=(m, d)), rng.normal(size=(m + earlier, d))
    values = rng.normal(size=(m + earlier, 3))
    expected = attention_by_loops(queries, keys, values, causal)
    assert attention(queries, keys, values, causal) == pytest.approx(expected)


def test_attention_of_many_heads_at_once():
    rng = np.random.default_rng(0)
    q, k, v = rng.normal(size=(3, 4, 6, 5))
    each = [attention(q[h], k[h], v[h]) for h in range(4)]
    assert attention(q, k, v) == pytest.approx(np.array(each))


def test_attention_survives_large_scores():
    assert attention(np.array([[1e4]]), np.array([[1e4], [0.0]]), np.array([[1.0], [2.0]])) == 1


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: complete("", 1), "prompt must contain at least one word, got ''"),
        (lambda: complete("a", 0), "max_tokens must be"),
        (lambda: complete("a", 1, temperature=-1), "temperature must be"),
        (lambda: complete("a", 1, stop="xyzzy"), "stop must be None or one of the toy's words"),
        (lambda: toy(hidden=6, heads=4), "hidden must be even and a multiple of heads 4, got 6"),
        (lambda: toy(layers=0), "layers must be"),
        (lambda: forward(TOY, [], empty_cache(TOY)), "ids must"),
        (lambda: attention(np.ones((2, 3)), np.ones((2, 4)), np.ones((2, 1))), "have shapes"),
        (lambda: attention(np.ones((3, 1)), np.ones((2, 1)), np.ones((2, 1))), "m <= n if causal"),
        (lambda: attention(np.ones((1, 1)), np.ones((2, 1)), np.ones((3, 1))), "have shapes"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()
