"""Shared prefixes for the fast path: which block ids are cached, without the blocks themselves.

`cache.Paged` knows which block holds what. Time does not depend on that; it depends on how many
blocks can be handed out, and on which ids are found. Only these are kept here.
"""

from collections import OrderedDict


class Prefixes:
    """Ids that can be found: held by somebody, or idle, the least recently released first."""

    def __init__(self, ids: list[tuple[int, ...]]):
        self.ids = ids  # of each request's full prompt blocks
        self.holders: dict[int, int] = {}
        self.idle: OrderedDict[int, None] = OrderedDict()
        self.held: dict[int, list[int]] = {}  # ids by which a running request's blocks are found

    def leading(self, i: int, limit: int) -> tuple[int, int]:
        """(found, of them idle) blocks at the start of request i, at most `limit`."""
        found = idle = 0
        for block_id in self.ids[i][:limit]:
            if block_id in self.idle:
                idle += 1
            elif block_id not in self.holders:
                break
            found += 1
        return found, idle

    def hold(self, i: int, found: int) -> None:
        """Let request i share its first `found` blocks."""
        self.held[i] = list(self.ids[i][:found])
        for block_id in self.held[i]:
            self.idle.pop(block_id, None)
            self.holders[block_id] = self.holders.get(block_id, 0) + 1

    def name(self, i: int, found: int) -> None:
        """Let the blocks that request i has computed itself be found, unless equal ones are."""
        for block_id in self.ids[i][found:]:
            if block_id not in self.holders and block_id not in self.idle:
                self.holders[block_id] = 1
                self.held[i].append(block_id)

    def evict(self, available: int) -> None:
        """Forget idle ids until they fit in the blocks that can be handed out."""
        while len(self.idle) > available:
            self.idle.popitem(last=False)

    def release(self, i: int) -> int:
        """Request i is gone. Returns how many of its blocks others hold on to."""
        kept = 0
        for block_id in reversed(self.held.pop(i, ())):
            self.holders[block_id] -= 1
            if self.holders[block_id]:
                kept += 1
            else:
                del self.holders[block_id]
                self.idle[block_id] = None
        return kept
