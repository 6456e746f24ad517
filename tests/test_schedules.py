"""Schedules counted by hand: the worked examples, one policy after the other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim import metrics
from servesim.batching import Chunked, DecodeFirst, Mixed, PrefillFirst, Static
from servesim.cache import Paged
from servesim.clock import SECOND, Chunk, Work, by_hand
from servesim.contiguous import Anywhere, Contiguous
from servesim.engine import serve
from servesim.order import (
    FCFS,
    FairShare,
    Prediction,
    ShortestFirst,
    ShortestRemaining,
    StrictPriority,
)
from servesim.preemption import Preemption, Recompute, Replay, Swap, largest, newest, oldest
from servesim.sequence import Sequence
from servesim.workload import Request


def second(work):
    return SECOND


def outputs(*lengths, at=0.0):
    """Requests with one prompt token that arrive together."""
    return [Request(at, 1, n) for n in lengths]


def plenty(blocks=10_000):
    return Paged(blocks=blocks, block=1)


def simple(requests, slots, clock=second, cache=None, **policies):
    return serve(requests, clock=clock, cache=cache or plenty(), slots=slots, **policies)


# Batching


def test_a_static_batch_waits_for_its_longest():  # Ex 29, 30, 48
    r = simple(outputs(3, 10, 2), 3, batching=Static())
    assert len(r.time_s) == 10
    assert r.working.sum() == 15 and r.running.sum() - r.working.sum() == 15
    assert r.running.mean() == 3.0 and r.working.mean() == 1.5
    assert r.finish_s.tolist() == [3, 10, 2]


def test_static_and_continuous_in_two_slots():  # Ex 31, 32
    lengths = 3, 10, 2, 4
    static = simple(outputs(*lengths), 2, batching=Static())
    continuous = simple(outputs(*lengths), 2)
    assert continuous.running.tolist() == [2] * 9 + [1]
    assert len(static.time_s) == 14 and len(continuous.time_s) == 10
    assert static.working.sum() / (2 * 14) == pytest.approx(0.68, abs=0.005)
    assert continuous.working.sum() / (2 * 10) == 0.95


@given(st.integers(1, 6), st.integers(1, 4), st.integers(1, 30), st.integers(1, 20), st.booleans())
def test_static_is_continuous_for_equal_requests(batches, slots, prompt, output, padded):
    requests = [Request(1.5, prompt, output)] * (batches * slots)
    clock = by_hand(step_s=0.02, decode_s=0.001, prompt_token_s=0.0005)
    runs = [simple(requests, slots, clock, batching=b) for b in (Static(padded), Mixed())]
    for name in ("ttft_s", "finish_s", "time_s", "duration_s", "new_tokens"):
        assert np.array_equal(*(getattr(run, name) for run in runs))


def test_padding_costs_as_much_as_the_longest():
    held = []

    def clock(work):
        held.append(work)
        return SECOND

    simple([Request(0, 5, 1), Request(0, 8, 3)], 2, clock, batching=Static(padded=True))
    assert held == [Work([], [Chunk(8, 0)] * 2), Work([8, 8], []), Work([9, 9], [])]
    held.clear()
    simple([Request(0, 5, 1), Request(0, 8, 3)], 2, clock, batching=Static())
    assert held == [Work([], [Chunk(5, 0), Chunk(8, 0)]), Work([8], []), Work([9], [])]


def test_itl_and_throughput_of_the_toy():  # Ex 33
    clock = by_hand(any_s=0.015, decode_s=0.001)
    for batch, itl_s, per_s in ((1, 0.016, 62.5), (4, 0.019, 210.5), (64, 0.079, 810.1)):
        r = simple(outputs(*[101] * batch), batch, clock)
        assert metrics.itl_s(r) == pytest.approx(itl_s, abs=1e-9)
        assert r.decodes[5] / r.duration_s[5] == pytest.approx(per_s, abs=0.05)


# Prefill beside decode


def beside(batching, prompt):
    """One request decodes when another brings a long prompt: 0.5 ms a token, 20 ms a step."""
    clock = by_hand(step_s=0.020, prompt_token_s=0.0005)
    return simple([Request(0, 2, 4), Request(0.0005, prompt, 1)], 8, clock, batching=batching)


def test_prefill_first_stalls_decode_first_delays():  # Ex 38: 150 ms of prompt, 3 steps of 20 ms
    first, last = (beside(batching, 300) for batching in (PrefillFirst(), DecodeFirst()))
    stalls = [metrics.itl_s(r).max() - 0.020 for r in (first, last)]
    assert stalls == pytest.approx([0.150, 0])
    waits = [r.ttft_s[1] - 0.0005 for r in (first, last)]  # it came 0.5 ms before the step began
    assert waits == pytest.approx([0.150, 0.210])


def test_chunks_bound_the_stall():  # Ex 39: the prompt of 1 s never stalls anybody for 1 s
    clock = by_hand(step_s=0.020, prompt_token_s=0.0005)
    requests = [Request(0, 2, 60), Request(0.0005, 2000, 1)]

    def stall_and_ttft(batching):
        r = simple(requests, 8, clock, batching=batching)
        return metrics.itl_s(r).max() - 0.020, r.ttft_s[1] - 0.0005

    assert stall_and_ttft(PrefillFirst()) == pytest.approx((1.000, 1.000))
    # Ten chunks with a decode step between them take 1,180 ms; here a decode rides with the
    # first, or the last, too: 1,200. Forty chunks: 1,780 and 1,800.
    assert stall_and_ttft(Chunked(201)) == pytest.approx((0.100, 1.200))
    assert stall_and_ttft(Chunked(51)) == pytest.approx((0.025, 1.800))


def test_a_chunk_attends_to_what_came_before():
    held = []
    clock = by_hand(any_s=1)
    requests = [Request(0, 1, 5), Request(0.5, 5, 2)]
    simple(requests, 2, lambda work: held.append(work) or clock(work), batching=Chunked(3))
    assert held == [
        Work([], [Chunk(1, 0)]),
        Work([1], [Chunk(2, 0)]),
        Work([2], [Chunk(2, 2)]),
        Work([3], [Chunk(1, 4)]),
        Work([4, 5], []),
    ]
    assert Chunk(2, 2).pairs == 3 + 4


def test_a_budget_closes_the_step_for_prompts():
    requests = [Request(0, 5, 2), Request(0, 4, 2), Request(0, 9, 1)]
    r = simple(requests, 9, batching=Mixed(budget=8))
    assert r.prefilled.tolist() == [5, 4, 9]  # the last is longer than the budget: it goes alone
    assert r.ttft_s.tolist() == [1, 2, 3]


# Order


def test_the_gate_counts_memory():  # Ex 35: 3,000 B, 1,000 each
    cache = Contiguous(Anywhere(3000))
    r = simple([Request(0, 900, 100)] * 5, 9, cache=cache)
    assert r.running[0] == 3 and r.waiting[0] == 2


def test_shortest_first_saves_the_short():  # Ex 36
    jobs = outputs(100, 1, 1, 1)
    waits = [metrics.wait_s(simple(jobs, 1, order=o)) for o in (FCFS(), ShortestFirst())]
    assert waits[0].tolist() == [0, 100, 101, 102] and waits[1].tolist() == [3, 0, 1, 2]
    assert waits[0].max() / waits[1][3] == 51


def rounds(order, slots, count):
    """Requests of one round each, always enough of every group; how many each group got."""
    waiting = [Request(0, 1, 1, group) for _ in range(count) for group in range(3)]
    r = simple(waiting, slots, order=order)
    served = r.group[r.finish_s <= count]
    return np.bincount(served, minlength=3).tolist()


def test_strict_priority_starves_the_lowest():  # Ex 37: three groups, 2 slots, 5 rounds
    assert rounds(StrictPriority([10, 9, 1]), 2, 5) == [5, 5, 0]
    assert sorted(rounds(FairShare([1, 1, 1]), 2, 5)) == [3, 3, 4]


def test_weights_3_to_1():  # Ex 49: 4 rounds of 4
    requests = [Request(0, 1, 1, group) for _ in range(16) for group in (0, 1)]
    r = simple(requests, 1, order=FairShare([3, 1]))
    first = r.group[np.argsort(r.finish_s)][:16].tolist()
    assert first.count(0) == 12 and first.count(1) == 4
    assert first[:4] == [0, 1, 0, 0]


def test_fair_share_by_tokens_and_with_a_bound():
    def tokens(sequence):
        return sequence.prompt + sequence.output

    requests = [Request(0, 1, 9, 0)] * 4 + [Request(0, 1, 1, 1)] * 20
    r = simple(requests, 1, order=FairShare([1, 1], cost=tokens))
    assert r.group[np.argsort(r.finish_s)][:8].tolist() == [0, 1, 1, 1, 1, 1, 0, 1]
    # a heavy group never lets the light one in, but for the bound
    crowd = [Request(i, 1, 1, 0) for i in range(30)] + [Request(0.5, 1, 1, 1)]
    crowd += [Request(0, 1, 1, 1)] * 3
    waits = [
        metrics.wait_s(simple(crowd, 1, order=FairShare([100, 1], bound_s=bound)))
        for bound in (None, 5)
    ]
    assert waits[0].max() > 20 and waits[1].max() < 10


def test_shortest_remaining_pushes_out():
    requests = [Request(0, 1, 10), Request(2.5, 1, 2)]
    r = simple(requests, 1, order=ShortestRemaining(), preemption=Preemption())
    assert r.finish_s.tolist() == [12, 5] and r.preemptions.tolist() == [1, 0]
    r = simple(requests, 1, order=ShortestFirst())
    assert r.finish_s.tolist() == [10, 12]


def test_a_prediction_has_the_stated_error():
    sizes = Prediction(sigma=0.5, seed=3)
    made = [Sequence(i, 0, 1, 100) for i in range(5000)]
    errors = np.log([sizes(s) / s.output for s in made])
    assert errors.std() == pytest.approx(0.5, rel=0.05) and abs(errors.mean()) < 0.03
    backwards = Prediction(sigma=0.5, seed=3)
    assert [backwards(s) for s in made[::-1]][::-1] == [sizes(s) for s in made]


# Preemption

# Three sequences have 40, 10 and 5 tokens in the cache, and the cache holds 55.
STAGGERED = [Request(0, 1, 50), Request(29.5, 1, 30), Request(34.5, 1, 30)]


def pressed(**how):
    return simple(STAGGERED, 3, cache=plenty(55), preemption=Preemption(**how))


@pytest.mark.parametrize("victim, index, lost", [(largest, 0, 40), (newest, 2, 5), (oldest, 0, 40)])
def test_the_victim(victim, index, lost):  # Ex 45: the largest goes, 40 tokens are lost
    r = pressed(victim=victim)
    assert r.cache_tokens_used[39] == 55 and r.preempted[40] == 1
    assert np.flatnonzero(r.preempted)[0] == 40
    assert r.running[40] == 2 and r.cache_tokens_used[40] == 55 - lost + 2
    back = r.token_s[(r.token_request == index) & (r.token_s > 40)][0]
    assert back > 41 and r.preemptions[index] >= 1


def test_one_prefill_or_a_replay():
    """40 tokens at 0.5 ms, or at 20 ms: 20 ms against 800."""
    clock = by_hand(step_s=0.020, prompt_token_s=0.0005)
    requests = [Request(0, 1, 60, 0), Request(0.7705, 1, 1, 1)]  # it comes in step 40
    order = StrictPriority([0, 1], preemptive=True)

    def gap(restore):
        r = simple(requests, 1, clock, order=order, preemption=Preemption(restore=restore))
        assert r.preemptions.tolist() == [1, 0]
        return metrics.itl_s(r).max() - 0.0005  # the time of the other one

    # prompt + 40 tokens are known when it goes: one pass over 41, or the prompt and 40 steps
    assert gap(Recompute()) == pytest.approx(41 * 0.0005)
    assert gap(Replay()) == pytest.approx(0.0005 + 40 * 0.020)
    # or a copy of 40 tokens out and in, and then an ordinary step
    assert gap(Swap(1000, 1e6)) == pytest.approx(2 * 0.040 + 0.020)


def wasted(guard):
    """A long request whose place is taken every 11 s: steps that made no new token."""
    requests = [Request(0, 1, 20, 0)] + [Request(9.5 + 11 * i, 1, 1, 1) for i in range(5)]
    order = StrictPriority([0, 1], preemptive=True)
    how = Preemption(restore=Replay(), guard=guard)
    r = simple(requests, 1, order=order, preemption=how)
    return r.working.sum() - len(r.token_s)


def test_a_guard_saves_the_work():  # Ex 46: 5 rounds lose 10 tokens each; a guard of 20: none
    assert wasted(guard=0) == 50 and wasted(guard=20) == 0


# Two requests that need 45 tokens each share 50. Whoever has more is thrown out, starts over at
# the end of the queue, and outgrows the other again: neither reaches its end.
CROWD = [Request(0, 1, 45), Request(20.5, 1, 45)]


def test_largest_victim_requeued_last_livelocks():  # co-14
    how = Preemption(victim=largest, restore=Replay(), to_head=False)
    with pytest.raises(RuntimeError, match="livelock: .* preemptions since the last new token"):
        simple(CROWD, 2, cache=plenty(50), preemption=how)


@pytest.mark.parametrize(
    "how",
    [
        dict(victim=newest, restore=Replay(), to_head=True),
        dict(victim=largest, restore=Recompute(), to_head=False),
        dict(victim=largest, restore=Swap(1000, 1e9), to_head=False),
    ],
)
def test_and_others_do_not(how):
    r = simple(CROWD, 2, cache=plenty(50), preemption=Preemption(**how))
    assert np.bincount(r.token_request).tolist() == [45, 45] and r.preemptions.sum() > 0


def test_a_run_that_cannot_progress_says_why():
    class Closed(Mixed):
        def room(self, decoding, held):
            return 0

    with pytest.raises(RuntimeError, match="nobody can run, and nobody will arrive: 1 wait, 0 hol"):
        simple(outputs(3), 1, batching=Closed())
