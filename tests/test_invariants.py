"""What must hold in every run, whatever the policies: random traffic through tiny caches."""

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import replicas
from servesim.batching import Static
from servesim.engine import serve
from servesim.preemption import Preemption, Recompute, Replay, newest
from servesim.replica import Replica

MANY = settings(max_examples=1000)
setups = st.fixed_dictionaries(
    {
        "cache": replicas.caches,
        "slots": st.integers(1, 6),
        "batching": replicas.batchings,
        "order": replicas.orders,
        "preemption": replicas.preemptions,
        "queue": st.none() | st.integers(1, 8),
    }
)


def served(requests, clock, setup):
    """(run, cache) of a setup; None for a livelock, which only some policies may have."""
    cache = replicas.make_cache(*setup["cache"])
    policies = setup | dict(cache=cache, order=setup["order"]())
    try:
        return serve(requests, clock=clock, **policies), cache
    except RuntimeError as error:
        assert "livelock" in str(error)
        assert may_livelock(setup)
        return None


def may_livelock(setup):
    """A victim that is not the newest may lose, again and again, what it has not yet delivered."""
    preemption = setup["preemption"]
    whole = setup["batching"].whole
    keeps = not isinstance(preemption.restore, Replay) and whole
    settled = preemption.victim is newest and preemption.to_head and not preemption.guard
    return not keeps and not settled


@MANY
@given(replicas.requests, replicas.clocks, setups)
def test_every_run(requests, clock, setup):
    found = served(requests, clock, setup)
    if found is None:
        return
    r, cache = found
    # every request that was taken ends once, and each of its tokens is delivered once
    assert len(r.arrival_s) == len(requests)
    counts = Counter(r.token_request.tolist())
    for i in range(len(requests)):
        assert counts[i] == (0 if r.refused[i] else r.output_tokens[i])
    if setup["queue"] is None:
        possible = [cache.possible(*x[1:3]) for x in sorted(requests, key=lambda x: x[0])]
        assert (r.done == np.array(possible, dtype=bool)).all()
    # tokens come in order, the first and the last when the run says
    for i in np.flatnonzero(r.done):
        times = r.token_s[r.token_request == i]
        assert (np.diff(times) > 0).all()
        assert times[-1] == r.finish_s[i]
        assert abs(times[0] - r.arrival_s[i] - r.ttft_s[i]) < 1e-9  # s are floats
        assert r.arrival_s[i] <= r.admitted_s[i] < times[0]
    # time rises, and no step overlaps the next
    assert (r.duration_s > 0).all()
    assert (r.time_s[1:] >= r.time_s[:-1] + r.duration_s[:-1] - 1e-9).all()
    # never over capacity
    assert (r.cache_tokens_used <= r.cache_tokens_reserved).all()
    assert r.cache_tokens_reserved.max(initial=0) <= cache.capacity
    assert r.running.max(initial=0) <= setup["slots"]
    assert (r.working <= r.running).all() and (r.working > 0).all()
    assert r.waiting.max(initial=0) <= (setup["queue"] or 25) + r.preemptions.sum()
    # all free at the end
    assert cache.reserved == cache.used == 0
    assert r.preempted.sum() == r.preemptions.sum()


@settings(max_examples=200)
@given(replicas.requests, replicas.clocks, setups)
def test_same_input_same_result(requests, clock, setup):
    one, again = (served(requests, clock, setup) for _ in range(2))
    assert (one is None) == (again is None)
    for name in one[0].__slots__ if one else ():
        assert np.array_equal(getattr(one[0], name), getattr(again[0], name), equal_nan=True)


@MANY
@given(replicas.requests, replicas.clocks, setups)
def test_no_work_is_left_undone(requests, clock, setup):
    """After each plan: the first in the queue could not have joined the step."""
    cache = replicas.make_cache(*setup["cache"])
    setup = setup | dict(cache=cache, order=setup["order"](), follow=None)
    setup["preemption"] = Preemption(restore=Recompute())
    replica = Replica(requests, **setup)
    while replica.busy:
        replica.arrivals()
        replica.plan()
        if not replica.shares:
            replica.idle()
            continue
        if replica.waiting and not replica.preempted and not waits_for_the_mix(replica):
            first = replica.order.first(replica.waiting, replica.now)
            room = len(replica.running) < replica.slots
            assert not (room and fits(cache, first, replica))
        replica.step(replica.work(), 1)
        replica.now += clock(replica.work())
        replica.account()
        replica.retire()


def prompt_room(replica):
    """Prompt tokens that the planned step could still take."""
    prompts = sum(n for s, n in replica.shares.items() if s not in replica.decoding)
    return replica.batching.room(len(replica.decoding), 0) - prompts, prompts


def waits_for_the_mix(replica):
    """Does the batching policy, rather than a slot or memory, keep the next one out?"""
    room, prompts = prompt_room(replica)
    first = replica.order.first(replica.waiting, replica.now)
    too_long = replica.batching.whole and prompts and first.known > room
    return isinstance(replica.batching, Static) or room <= 0 or too_long


def fits(cache, sequence, replica):
    """Would the cache take what the sequence computes first?"""
    tokens = sequence.known
    if not replica.batching.whole:
        found = cache.found(sequence.blocks, sequence.known)
        tokens = min(tokens, found + prompt_room(replica)[0])
    size = dict(prompt=sequence.prompt, output=sequence.output, ids=sequence.blocks)
    return cache.start("probe", tokens, **size)
