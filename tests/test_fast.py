"""The fast path against the readable loop: equal to the femtosecond, on random runs."""

import time

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import replicas
from servesim import clock, costs, engine, fast, leaper
from servesim.batching import Chunked, Mixed
from servesim.cache import Paged
from servesim.hardware import H100
from servesim.models import LLAMA_3_1_8B
from servesim.workload import Request, draw

settings_many = settings(max_examples=1500, phases=[Phase.explicit, Phase.generate])


@pytest.fixture(autouse=True, scope="module")
def words_on_the_way():
    """Every run is interrupted often to say how far it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leaper, "PART", 3)
        yield


def same(requests, clock, blocks, block, slots, budget, share=False):
    """Both ways to serve; the arrays that both have are equal, bit by bit."""
    limits = dict(blocks=blocks, block=block, slots=slots, budget=budget, share=share)
    quick = fast.serve(requests, clock=clock, **limits)
    batching = Mixed() if budget is None else Chunked(budget)
    cache = Paged(blocks=blocks, block=block, share=share)
    r = engine.serve(requests, clock=clock, cache=cache, slots=slots, batching=batching)
    for name in ("arrival_s", "ttft_s", "finish_s", "preemptions", "refused"):
        assert np.array_equal(getattr(quick, name), getattr(r, name), equal_nan=True), name
    assert quick.steps == len(r.time_s)
    return r


@settings_many
@given(
    replicas.requests,
    replicas.clocks,
    st.integers(4, 40),
    st.integers(1, 6),
    st.integers(1, 8),
)
def test_equal(requests, clock, blocks, block, slots):
    same(requests, clock, blocks, block, slots, None)


@settings_many
@given(
    replicas.requests,
    replicas.clocks,
    st.integers(4, 40),
    st.integers(1, 6),
    st.integers(1, 8),
    st.integers(1, 30),
)
def test_equal_with_chunks(requests, clock, blocks, block, slots, budget):
    same(requests, clock, blocks, block, slots, budget)


@settings_many
@given(replicas.requests, replicas.clocks, st.integers(6, 30), st.integers(1, 8))
def test_equal_with_shared_prefixes(requests, clock, blocks, slots):
    same(requests, clock, blocks, replicas.BLOCK, slots, None, share=True)


@given(st.integers(1, 10**6), st.integers(1, 10**4), st.integers(0, 10**4))
def test_steps_within(gap, one, grow):
    def took(k):
        return k * one + grow * (k * (k - 1) // 2)

    k = leaper.steps_within(gap, one, grow)
    assert took(k) >= gap and (k == 1 or took(k - 1) < gap)


def test_equal_on_a_real_load():
    """More requests than a tiny example has, on a pool that is too small for them."""
    traffic = draw(count=150, rate_per_s=12, seed=1)
    h100 = clock.of(LLAMA_3_1_8B, H100, reach=costs.CALIBRATED)
    r = same(traffic, h100, 1500, 16, 64, None)
    assert r.preemptions.sum() > 0
    same(traffic, h100, 1500, 16, 64, 512)


def test_fast_enough_for_a_slider():
    traffic = draw(count=300, rate_per_s=15, seed=1)
    h100 = clock.of(LLAMA_3_1_8B, H100, reach=costs.CALIBRATED)
    best_s = float("inf")
    for _ in range(5):
        start = time.process_time()
        fast.serve(traffic, clock=h100, blocks=25_000, slots=256)
        best_s = min(best_s, time.process_time() - start)
    print(f"300 requests in {best_s * 1e3:.1f} ms")
    assert best_s < 0.02  # typical: 0.002 s; slack for a busy machine


def test_late_arrivals_in_whole_seconds():
    """10,000 s are more fs than 64 bits hold."""
    late = [Request(0, 1, 1), Request(10_000, 1, 1), Request(10**6 + 1, 1, 1)]
    tick = clock.by_hand(any_s=1)
    served = fast.serve(late, clock=tick, blocks=9, slots=1)
    r = engine.serve(late, clock=tick, cache=Paged(blocks=9), slots=1)
    assert served.arrival_s.tolist() == r.arrival_s.tolist() == [0, 10_000, 10**6 + 1]
    assert served.finish_s.tolist() == r.finish_s.tolist()


def test_sharing_needs_whole_prompts():
    with pytest.raises(ValueError, match="budget must be None"):
        fast.serve([], clock=clock.by_hand(any_s=1), blocks=1, slots=1, budget=5, share=True)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"blocks": "2000"}, "blocks must be a whole number .* got '2000'"),
        ({"blocks": 2000.5}, "blocks must be a whole number .* got 2000.5"),
        ({"budget": 0.5}, "budget must be a whole number .* got 0.5"),
        (
            {"clock": costs.clock(LLAMA_3_1_8B, H100)},
            "clock must be .* clock.of.* or clock.by_hand",
        ),
        ({"clock": clock.Linear(lambda *held: 0.02)}, "clock.fixed .* must be a whole .* got 0.02"),
        ({"requests": [Request(0, "10", 5)]}, "prompt_tokens must be .* got '10'"),
        ({"requests": [Request(0, 10, 5), Request(1, 2.5, 5)]}, "prompt_tokens must be .* got 2.5"),
        ({"requests": [Request("0", 10, 5)]}, "arrival_s must be a number .* got '0'"),
        ({"requests": [Request(0, 10, 0)]}, "output_tokens must be .* at least 1, got 0"),
        ({"requests": "x"}, "requests must be a Trace, such as .* got 'x'"),
        ({"requests": None}, "requests must be a Trace, .* got None"),
        ({"requests": [(0, 10, 5)]}, r"requests must be .* a list of Request.* got \(0, 10, 5\)"),
        ({"requests": [Request(0, 1, 1), Request(None, 1, 1)]}, "arrival_s must .* got None"),
    ],
)
def test_bad_arguments(change, message):
    args = {"requests": [], "clock": clock.by_hand(any_s=1), "blocks": 9, "slots": 1}
    with pytest.raises(ValueError, match=message):
        fast.serve(**(args | change))
