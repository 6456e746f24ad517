"""Random traffic, caches and policies: what the tests of the engine draw from."""

from hypothesis import strategies as st

from servesim.batching import Chunked, DecodeFirst, Mixed, PrefillFirst, Static
from servesim.cache import Paged
from servesim.clock import Linear
from servesim.contiguous import Anywhere, Buddy, Contiguous, maximum, oracle, power_of_two
from servesim.order import (
    FCFS,
    FairShare,
    Prediction,
    ShortestFirst,
    ShortestRemaining,
    StrictPriority,
)
from servesim.preemption import (
    Preemption,
    Recompute,
    Replay,
    Swap,
    largest,
    newest,
    oldest,
)
from servesim.workload import Request

BLOCK = 4


def request(arrival_s, prompt, output, group, tree):
    """A request whose first blocks may equal those of others: a path in a small tree."""
    ids = tuple(hash(tree[: i + 1]) for i in range(min(len(tree), -(-prompt // BLOCK))))
    return Request(arrival_s, prompt, output, group, ids)


requests = st.lists(
    st.builds(
        request,
        st.sampled_from([0.0, 0.25, 1.0]) | st.floats(0, 10),  # crowds, and single ones
        st.integers(1, 24),
        st.integers(1, 16),
        st.integers(0, 2),
        st.lists(st.integers(0, 1), max_size=6).map(tuple),
    ),
    max_size=25,
)

# Names, so that a failing example can be read; each call makes a new cache and new policies.
caches = st.one_of(
    st.tuples(st.just("paged"), st.integers(4, 24), st.booleans()),
    st.tuples(
        st.sampled_from(["anywhere", "buddy"]),
        st.integers(20, 90),
        st.sampled_from([oracle, power_of_two, maximum(40), maximum(64)]),
    ),
)
batchings = st.one_of(
    st.sampled_from([Mixed(), PrefillFirst(), DecodeFirst(), Static(), Static(padded=True)]),
    st.builds(Chunked, st.integers(1, 20)),
    st.builds(Mixed, st.integers(1, 30)),
    st.builds(PrefillFirst, st.integers(1, 30)),
)
orders = st.sampled_from(
    [
        FCFS,
        ShortestFirst,
        lambda: ShortestFirst(Prediction(sigma=2, seed=1)),
        ShortestRemaining,
        lambda: ShortestRemaining(Prediction(sigma=1, seed=2)),
        lambda: StrictPriority([10, 9, 1]),
        lambda: StrictPriority([1, 2, 3], preemptive=True),
        lambda: FairShare([3, 1, 1]),
        lambda: FairShare([1, 2, 1], cost=lambda s: s.prompt + s.output, bound_s=3),
    ]
)
preemptions = st.builds(
    Preemption,
    victim=st.sampled_from([newest, oldest, largest]),
    restore=st.sampled_from([Recompute(), Replay(), Swap(4096, 1e6)]),
    to_head=st.booleans(),
    guard=st.integers(0, 4),
)
clocks = st.builds(
    lambda base, decode, token, read, score: Linear(
        lambda decodes, tokens: base + decode * decodes + token * tokens, read, score
    ),
    st.integers(10**9, 10**15),  # at least 1 us: a run in s, as floats, still tells steps apart
    st.integers(0, 10**14),
    st.integers(0, 10**14),
    st.integers(0, 10**12),
    st.integers(0, 10**12),
)


def make_cache(kind, size, how):
    if kind == "paged":
        return Paged(blocks=size, block=BLOCK, share=how)
    return Contiguous({"anywhere": Anywhere, "buddy": Buddy}[kind](size), how)
