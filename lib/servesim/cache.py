"""The paged cache: fixed blocks, shared when full and equal, evicted when nobody holds them."""

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from servesim.checks import whole


class Waste(NamedTuple):
    """Where the tokens of a cache are. They sum to its capacity.

    Source: Kwon et al. (2023), PagedAttention, figure 2.
    """

    used: int  # hold keys and values
    reserved: int  # empty now, and filled before their sequence ends
    internal: int  # allocated, and never filled
    external: int  # free, in pieces too small for the next request
    free: int  # free and usable


def chain(tokens: Sequence[int], block: int) -> tuple[int, ...]:
    """One id for each full block of `tokens`: equal ids mean equal tokens from the start.

    id of a block = hash(id of the block before, tokens of this one)

    Source: Kwon et al. (2023), section 4.4; vLLM's automatic prefix caching.
    Left out: that two different chains may collide (one chance in 2^61 or so).
    Raises ValueError for a block that is not a whole number of at least 1.

    >>> a, b = chain([1, 2, 3, 4, 5], 2), chain([1, 2, 3, 9, 5], 2)
    >>> len(a), a[0] == b[0], a[1] == b[1]
    (2, True, False)
    """
    whole(1, block=block)
    ids, last = [], 0
    for start in range(0, len(tokens) - block + 1, block):
        last = hash((last, *tokens[start : start + block]))
        ids.append(last)
    return tuple(ids)


class Paged:
    """A pool of `blocks` blocks of `block` tokens each.

    A sequence holds a table of blocks and fills them in order. With `share`, full blocks of a
    prompt are found again by their id (see `chain`): by others while somebody holds them, and
    later until they are evicted, the least recently released first.
    Raises ValueError for blocks or a block that is not a whole number of at least 1.

    >>> cache = Paged(blocks=4, block=16)
    >>> cache.start("a", 20, prompt=20, output=20), cache.grow("a", 32), cache.grow("a", 33)
    (True, True, True)
    >>> cache.start("b", 17, prompt=17, output=1)   # two blocks, and one is left
    False
    """

    def __init__(self, *, blocks: int, block: int = 16, share: bool = False):
        whole(1, blocks=blocks, block=block)
        self.blocks, self.block, self.share = blocks, block, share
        self.tables: dict[Hashable, list[int]] = {}
        self.tokens: dict[Hashable, int] = {}  # cached tokens of each sequence
        self.holders = [0] * blocks  # reference counts
        self._ids: dict[Hashable, tuple[int, ...]] = {}  # of a sequence's full prompt blocks
        self._final: dict[Hashable, int] = {}  # tokens when it ends
        self._free = list(range(blocks))[::-1]  # hold nothing that is of use
        self._cached: OrderedDict[int, int] = OrderedDict()  # block: id; held by nobody
        self._found: dict[int, int] = {}  # id: block
        self._named: dict[int, int] = {}  # block: id
        self._again = 0  # tokens that a second, third, ... holder counts again

    @property
    def capacity(self) -> int:
        return self.blocks * self.block

    @property
    def available(self) -> int:
        """Blocks that can be handed out: free, or cached and held by nobody."""
        return len(self._free) + len(self._cached)

    @property
    def reserved(self) -> int:
        """Tokens in blocks that somebody holds."""
        return (self.blocks - self.available) * self.block

    @property
    def used(self) -> int:
        """Tokens that somebody holds in the cache; a shared block counts once."""
        return sum(self.tokens.values()) - self._again

    def possible(self, prompt: int, output: int) -> bool:
        """Would a request fit in the empty cache? Its last token is never cached."""
        return self._count(prompt + output - 1) <= self.blocks

    def found(self, ids: Sequence[int], known: int) -> int:
        """Tokens at the start of `known` ones that are cached already.

        ids  of the prompt's full blocks. The last known token is always computed, since the next
             one comes out of it
        """
        return self.block * len(self._leading(ids, known))

    def start(
        self, key: Hashable, tokens: int, *, prompt: int, output: int, ids: Sequence[int] = ()
    ) -> bool:
        """Give a new sequence the blocks of its first `tokens`, or change nothing.

        prompt, output  how long it will be; of the output only `waste` makes use
        ids             of the prompt's blocks: full ones that are found are shared
        """
        ids = tuple(ids[: prompt // self.block]) if self.share else ()
        shared = self._leading(ids, tokens)
        idle = sum(not self.holders[block] for block in shared)
        if self._count(tokens) - len(shared) > self.available - idle:
            return False
        for block in shared:
            self._cached.pop(block, None)
            self._hold(block, self.block)
        self.tables[key], self._ids[key] = shared, ids
        self.tokens[key], self._final[key] = (
            len(shared) * self.block,
            max(prompt + output - 1, tokens),
        )
        return self.grow(key, tokens)

    def grow(self, key: Hashable, tokens: int) -> bool:
        """Make room for `tokens` tokens in all, or change nothing. Copies a shared tail block."""
        table, cached = self.tables[key], self.tokens[key]
        tail = cached % self.block
        copies = tail and tokens > cached and self.holders[table[-1]] > 1
        if copies or tokens > len(table) * self.block:
            more = self._count(tokens) - len(table)
            if more + bool(copies) > self.available:
                return False
            if copies:
                self._let_go(table.pop(), tail)
                more += 1
            table.extend(self._take() for _ in range(more))
        self.tokens[key] = tokens
        if self.share:
            self._name(key, cached, tokens)
        return True

    def fork(self, key: Hashable, child: Hashable) -> None:
        """Let `child` go on from the tokens of `key`: all its blocks are shared, copied on write.

        Source: Kwon et al. (2023), section 4.4 (parallel sampling).
        """
        for block, tokens in self._filled(key):
            self._hold(block, tokens)
        self.tables[child] = list(self.tables[key])
        for facts in (self.tokens, self._ids, self._final):
            facts[child] = facts[key]

    def end(self, key: Hashable) -> None:
        """Release the blocks of a sequence, the last first: starts of prompts are kept longest."""
        for block, tokens in reversed(self._filled(key)):
            self._let_go(block, tokens)
        for facts in (self.tables, self.tokens, self._ids, self._final):
            del facts[key]

    def waste(self, need: int = 1) -> Waste:
        """Who holds the tokens now. Blocks are alike, so nothing free is too small."""
        gaps = {}  # tail block: (empty, filled later)
        for key, table in self.tables.items():
            if table:
                gap = -self.tokens[key] % self.block
                gaps[table[-1]] = gap, min(gap, max(0, self._final[key] - self.tokens[key]))
        reserved = sum(later for _, later in gaps.values())
        internal = sum(gap - later for gap, later in gaps.values())
        return Waste(self.used, reserved, internal, 0, self.capacity - self.reserved)

    def _count(self, tokens: int) -> int:
        return -(-tokens // self.block)

    def _leading(self, ids: Sequence[int], tokens: int) -> list[int]:
        """Blocks of the leading run of `ids` that are cached, short of the last of `tokens`."""
        run = []
        for block_id in ids[: (tokens - 1) // self.block] if self.share else ():
            if block_id not in self._found:
                break
            run.append(self._found[block_id])
        return run

    def _take(self) -> int:
        """A block for one holder: a free one, or the least recently released cached one."""
        if self._free:
            block = self._free.pop()
        else:
            block, block_id = self._cached.popitem(last=False)
            del self._found[block_id], self._named[block]
        self.holders[block] = 1
        return block

    def _filled(self, key: Hashable) -> list[tuple[int, int]]:
        """(block, tokens in it) for each block of a sequence."""
        table, size = self.tables[key], self.block
        full = [(block, size) for block in table[:-1]]
        return full + [(block, self.tokens[key] - len(full) * size) for block in table[-1:]]

    def _hold(self, block: int, tokens: int) -> None:
        if self.holders[block]:
            self._again += tokens
        self.holders[block] += 1

    def _let_go(self, block: int, tokens: int) -> None:
        self.holders[block] -= 1
        if self.holders[block]:
            self._again -= tokens
        elif block in self._named:
            self._cached[block] = self._named[block]
        else:
            self._free.append(block)

    def _name(self, key: Hashable, cached: int, tokens: int) -> None:
        """Let the prompt's blocks that are now full be found, unless equal ones already can."""
        table, ids = self.tables[key], self._ids[key]
        for i in range(cached // self.block, min(tokens // self.block, len(ids))):
            if ids[i] not in self._found:
                self._found[ids[i]], self._named[table[i]] = table[i], ids[i]
