"""Caches: published and hand-counted figures, then invariants under random use."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servesim import memory
from servesim.cache import Paged, chain
from servesim.contiguous import Anywhere, Buddy, Contiguous, maximum, oracle, power_of_two

LENGTHS = 50, 2000, 30, 40  # Ex 40
TOKEN_BYTES = 1000


def fill(cache, lengths):
    """Start sequences that hold these many tokens, and no more; how many found room."""
    return sum(cache.start(i, n, prompt=n - 1, output=1) for i, n in enumerate(lengths))


# Published figures


def test_paging_paper_figure_13():  # G9: 12 GiB of LLaMA-13B's cache hold 7 requests of 2,048
    slots = memory.pool(12 * memory.GIB, bytes_per_token=819_200).tokens
    assert slots == 15_728
    for allocator in Buddy(slots), Anywhere(slots):
        assert fill(Contiguous(allocator, maximum(2048)), [100] * 50) == 7


# Counted by hand


def test_reserving_the_longest():  # Ex 40
    cache = Contiguous(Anywhere(8000), maximum(2000))
    assert fill(cache, LENGTHS) == 4
    waste = cache.waste()
    assert cache.reserved * TOKEN_BYTES == 8_000_000
    assert waste.used * TOKEN_BYTES == 2_120_000
    assert (waste.reserved + waste.internal) * TOKEN_BYTES == 5_880_000
    assert waste.used / cache.reserved == 0.265


def test_blocks_of_16():  # Ex 41, and Ex 50: 64 B of bookkeeping for each block
    for size, reserved, with_tables in ((16, 2_144_000, 2_152_576), (256, 2_816_000, 2_816_704)):
        cache = Paged(blocks=8000 // size, block=size)
        assert fill(cache, LENGTHS) == 4
        assert cache.reserved * TOKEN_BYTES == reserved
        tables = sum(len(table) for table in cache.tables.values())
        assert reserved + 64 * tables == with_tables
    assert 8_000_000 - 2_144_000 == 5_856_000


def test_only_full_blocks_are_shared():  # Ex 43: 19 blocks, not 18; Ex 44: nothing in common
    prefix, one, two = range(200), range(1000, 1030), range(2000, 2045)
    cache = Paged(blocks=40, block=16, share=True)
    for i, suffix in enumerate((one, two)):
        tokens = [*prefix, *suffix]
        found = cache.found(chain(tokens, 16), len(tokens))
        assert found == 12 * 16 * i
        size = dict(prompt=len(tokens), output=1, ids=chain(tokens, 16))
        assert cache.start(i, len(tokens), **size)
    assert cache.reserved == 19 * 16 and cache.used == 200 - 8 + 38 + 53
    alone = Paged(blocks=40, block=16)
    fill(alone, (230, 245))
    assert alone.reserved == 31 * 16
    other = [9999, *prefix[1:], *two]
    assert cache.found(chain(other, 16), len(other)) == 0


def test_the_last_token_is_never_shared():
    cache = Paged(blocks=9, block=2, share=True)
    ids = chain(range(4), 2)
    assert cache.start("a", 4, prompt=4, output=1, ids=ids)
    assert cache.found(ids, 4) == 2 and cache.found(ids, 5) == 4


def test_least_recently_released_goes_first():
    cache = Paged(blocks=3, block=1, share=True)
    for name in 7, 8, 9:
        cache.start(name, 1, prompt=1, output=1, ids=[name])
    for name in 8, 7, 9:
        cache.end(name)
    assert cache.start("new", 2, prompt=2, output=1, ids=[7, 1])  # finds 7, evicts 8
    assert [cache.found([name], 2) for name in (7, 8, 9, 1)] == [1, 0, 1, 1]


def test_ends_of_prompts_are_evicted_before_their_starts():
    cache = Paged(blocks=3, block=1, share=True)
    cache.start("a", 3, prompt=3, output=1, ids=[1, 2, 3])
    cache.end("a")
    cache.start("b", 1, prompt=1, output=1, ids=[9])
    assert cache.found([1, 2, 3], 4) == 2


def test_copy_on_write():
    cache = Paged(blocks=4, block=4)
    cache.start("a", 6, prompt=6, output=4)
    cache.fork("a", "b")
    assert cache.reserved == 8 and cache.used == 6
    assert cache.grow("b", 7)  # the half-full block is copied, the full one stays shared
    assert cache.tables["a"][0] == cache.tables["b"][0]
    assert cache.tables["a"][1] != cache.tables["b"][1]
    assert cache.reserved == 12 and cache.used == 4 + 2 + 3
    assert cache.grow("a", 7) and cache.reserved == 12  # nobody else holds its tail any more
    cache.fork("b", "c")
    assert cache.grow("a", 9) and not cache.grow("c", 8)  # no block is left for the copy
    for key in "abc":
        cache.end(key)
    assert cache.reserved == cache.used == 0


def test_buddies():
    memory = Buddy(24)  # pieces of 16 and 8
    places = [memory.take(n) for n in (3, 3, 8)]
    assert places == [16, 20, 0] and memory.take(16) is None and memory.take(5) == 8
    assert memory.free == 0
    memory.give(16, 3)
    assert memory.too_small(8) == 4 and memory.too_small(4) == 0
    memory.give(20, 3)  # both halves are free: they are one piece of 8 again
    assert memory.too_small(8) == 0 and memory.take(7) == 16


def test_waste_as_the_paper_splits_it():
    cache = Contiguous(Buddy(64), power_of_two)
    cache.start("a", 10, prompt=10, output=11)  # caches 20 in the end, takes 32
    cache.start("b", 3, prompt=3, output=2)  # caches 4 in the end, takes 8
    waste = cache.waste(need=30)
    assert waste == (13, 10 + 1, 12 + 4, 24, 0)
    assert cache.waste(need=16) == (13, 11, 16, 8, 16)
    paged = Paged(blocks=4, block=16)
    paged.start("a", 10, prompt=10, output=4)
    assert paged.waste() == (10, 3, 3, 0, 48)


# Under random use

moves = st.lists(
    st.tuples(
        st.sampled_from(["start", "grow", "end", "fork"]),
        st.integers(0, 5),  # which sequence
        st.integers(1, 30),  # tokens, or tokens more
        st.lists(st.integers(0, 1), max_size=8),  # its prompt, token by token
    ),
    max_size=60,
)
caches = st.one_of(
    st.builds(Paged, blocks=st.integers(1, 12), block=st.integers(1, 5), share=st.booleans()),
    st.builds(
        Contiguous,
        st.builds(Buddy, st.integers(1, 70)) | st.builds(Anywhere, st.integers(1, 70)),
        st.sampled_from([oracle, power_of_two, maximum(20)]),
    ),
)


def held(cache):
    """(tokens in pieces or blocks that are held, tokens cached), counted afresh."""
    if isinstance(cache, Contiguous):
        pieces = [cache.memory.piece(room) for _, room in cache._pieces.values()]
        return sum(pieces), sum(cache.tokens.values())
    filled = {}
    for key in cache.tables:
        for i, block in enumerate(cache.tables[key]):
            here = min(cache.block, cache.tokens[key] - i * cache.block)
            assert here > 0
            assert filled.setdefault(block, here) == here  # who shares a block agrees on it
    return len(filled) * cache.block, sum(filled.values())


def check(cache):
    assert (cache.reserved, cache.used) == held(cache)
    assert sum(cache.waste(need=7)) == cache.capacity and min(cache.waste(need=7)) >= 0
    if isinstance(cache, Paged):
        counts = [0] * cache.blocks
        for table in cache.tables.values():
            assert len(set(table)) == len(table)
            for block in table:
                counts[block] += 1
        assert counts == cache.holders
        idle = [*cache._free, *cache._cached]
        assert sorted(idle) == [block for block, count in enumerate(counts) if not count]
        assert {v: k for k, v in cache._found.items()} == cache._named
    elif isinstance(cache.memory, Buddy):
        spans = [(start, cache.memory.piece(room)) for start, room in cache._pieces.values()]
        spans += [(s, size) for size, holes in cache.memory._holes.items() for s in holes]
        end = 0
        for start, size in sorted(spans):  # pieces and holes tile the memory
            assert start == end
            end += size
        assert end == cache.capacity


@settings(max_examples=1000)
@given(caches, moves)
def test_blocks_are_conserved(cache, moves):
    lengths, forked = {}, set()
    for kind, key, tokens, prompt in moves:
        before = cache.reserved, cache.used
        if kind == "start" and key not in lengths:
            ids = chain(prompt, cache.block) if isinstance(cache, Paged) else ()
            size = dict(prompt=len(prompt), output=tokens, ids=ids)
            if cache.start(key, tokens, **size):
                lengths[key] = tokens
            else:
                assert (cache.reserved, cache.used) == before
        elif kind == "grow" and key in lengths:
            if cache.grow(key, lengths[key] + tokens % 3):
                lengths[key] += tokens % 3
            else:
                assert (cache.reserved, cache.used) == before
        elif kind == "end" and key in lengths:
            cache.end(key)
            del lengths[key]
        elif kind == "fork" and key in lengths and isinstance(cache, Paged):
            child = max(lengths) + 6
            cache.fork(key, child)
            lengths[child] = lengths[key]
            forked.add(child)
        assert cache.tokens == lengths
        check(cache)
    for key in lengths:
        cache.end(key)
    assert cache.reserved == cache.used == 0
    if isinstance(cache, Contiguous):
        assert cache.memory.free == cache.capacity
        assert cache.memory.take(cache.memory.largest) is not None  # whole again


@settings(max_examples=300)
@given(st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=10), max_size=12))
def test_what_is_found_is_what_was_cached(prompts):
    """Against the definition: tokens of the longest common start, in full blocks."""
    cache = Paged(blocks=100, block=2, share=True)
    for i, prompt in enumerate(prompts):
        common = [shared_start(prompt, other) for other in prompts[:i]]
        expected = max(common, default=0) // 2 * 2
        limit = (len(prompt) - 1) // 2 * 2
        ids = chain(prompt, 2)
        assert cache.found(ids, len(prompt)) == min(expected, limit)
        cache.start(i, len(prompt), prompt=len(prompt), output=1, ids=ids)


def shared_start(one, other):
    same = 0
    while same < min(len(one), len(other)) and one[same] == other[same]:
        same += 1
    return same


def test_chain_tells_places_apart():
    assert chain([1, 2, 1, 2], 2)[0] != chain([1, 2, 1, 2], 2)[1]
    assert chain(range(6), 3) == chain(range(7), 3)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: Paged(blocks=0), "blocks must be"),
        (lambda: Paged(blocks=1, block=0), "block must be"),
        (lambda: Paged(blocks="10"), "blocks must be a whole number .* at least 1, got '10'"),
        (lambda: Paged(blocks=None), "blocks must be a whole number .* got None"),
        (lambda: Paged(blocks=2.5), "blocks must be a whole number .* got 2.5"),
        (lambda: chain([1], 0), "block must be"),
        (lambda: Buddy(0), "capacity must be"),
        (lambda: Anywhere(0), "capacity must be"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()
