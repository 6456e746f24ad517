"""Caches that give a sequence one piece for its whole life: what paging is compared with."""

from collections.abc import Callable, Hashable, Sequence

from servesim.cache import Waste
from servesim.checks import whole

# (prompt, output) -> tokens to set aside when a request starts
Room = Callable[[int, int], int]


def oracle(prompt: int, output: int) -> int:
    """What the request will need, which only a simulator knows."""
    return prompt + output


def power_of_two(prompt: int, output: int) -> int:
    """The next power of two: at most twice what is needed.

    >>> power_of_two(600, 100), power_of_two(512, 512)
    (1024, 1024)
    """
    return 1 << (prompt + output - 1).bit_length()


def maximum(tokens: int) -> Room:
    """Always `tokens`: the longest request that the engine serves."""
    return lambda prompt, output: tokens


class Anywhere:
    """A counter: memory is handed out as long as there is some, wherever it lies."""

    def __init__(self, capacity: int):
        whole(1, capacity=capacity)
        self.capacity = self.free = self.largest = capacity

    def piece(self, room: int) -> int:
        """Tokens that a piece for `room` tokens takes."""
        return room

    def take(self, room: int) -> int | None:
        """Where the piece begins (here: anywhere), or None when there is none."""
        if room > self.free:
            return None
        self.free -= room
        return 0

    def give(self, start: int, room: int) -> None:
        self.free += room

    def too_small(self, room: int) -> int:
        """Free tokens that cannot serve a request for `room`."""
        return self.free if self.free < room else 0


class Buddy:
    """A buddy allocator: pieces are powers of two; two free halves become whole again.

    >>> memory = Buddy(24)   # 16 and 8
    >>> memory.take(5), memory.take(4), memory.take(4), memory.take(8), memory.take(1)
    (16, 0, 4, 8, None)

    Source: Knowlton (1965), doi 10.1145/365628.365655; Kwon et al. (2023), section 6.1, let
    their baseline allocate this way.
    """

    def __init__(self, capacity: int):
        whole(1, capacity=capacity)
        self.capacity = self.free = capacity
        self.largest = 1 << (capacity.bit_length() - 1)  # tokens in the largest piece
        sizes = [1 << bit for bit in range(capacity.bit_length())]
        self._holes: dict[int, set[int]] = {size: set() for size in sizes}
        self._tops: set[tuple[int, int]] = set()  # (start, size): these have no buddy
        start = 0
        for size in reversed(sizes):
            if capacity & size:
                self._holes[size].add(start)
                self._tops.add((start, size))
                start += size

    def piece(self, room: int) -> int:
        """Tokens that a piece for `room` tokens takes: the next power of two."""
        return 1 << (room - 1).bit_length()

    def take(self, room: int) -> int | None:
        """Where a piece for `room` tokens begins: in the smallest hole, then the first."""
        want = self.piece(room)
        size = min((s for s, holes in self._holes.items() if holes and s >= want), default=None)
        if size is None:
            return None
        start = min(self._holes[size])
        self._holes[size].remove(start)
        while size > want:
            size //= 2
            self._holes[size].add(start + size)
        self.free -= want
        return start

    def give(self, start: int, room: int) -> None:
        """Free a piece and join it with its buddy as often as that is free."""
        size = self.piece(room)
        self.free += size
        while (start, size) not in self._tops:
            top = max(begin for begin, _ in self._tops if begin <= start)
            buddy = top + ((start - top) ^ size)
            if buddy not in self._holes[size]:
                break
            self._holes[size].remove(buddy)
            start, size = min(start, buddy), 2 * size
        self._holes[size].add(start)

    def too_small(self, room: int) -> int:
        """Free tokens that lie in holes too small for a request of `room`."""
        want = self.piece(room)
        return sum(size * len(holes) for size, holes in self._holes.items() if size < want)


class Contiguous:
    """A cache of one piece for each sequence: `room` says how much is set aside at the start.

    memory  Anywhere(tokens) counts only; Buddy(tokens) also finds a place
    room    oracle, power_of_two or maximum(longest request)

    Source: Yu et al. (2022), Orca, and Kwon et al. (2023), section 6.1.

    >>> cache = Contiguous(Buddy(15_728), maximum(2048))   # PagedAttention's figure 13
    >>> sum(cache.start(i, 50, prompt=50, output=50) for i in range(20))
    7
    """

    block = 1  # token by token

    def __init__(self, memory: Anywhere | Buddy, room: Room = oracle):
        self.memory, self.room = memory, room
        self.tokens: dict[Hashable, int] = {}  # cached tokens of each sequence
        self._pieces: dict[Hashable, tuple[int, int]] = {}  # (start, room)
        self._final: dict[Hashable, int] = {}  # tokens when it ends

    @property
    def capacity(self) -> int:
        return self.memory.capacity

    @property
    def reserved(self) -> int:
        """Tokens set aside."""
        return self.capacity - self.memory.free

    @property
    def used(self) -> int:
        """Tokens that hold keys and values."""
        return sum(self.tokens.values())

    def possible(self, prompt: int, output: int) -> bool:
        """Could the request be served with the cache to itself?"""
        room = self.room(prompt, output)
        return prompt + output <= room and self.memory.piece(room) <= self.memory.largest

    def found(self, ids: Sequence[int], known: int) -> int:
        """Tokens of a prompt that are cached already: nothing is shared here."""
        return 0

    def start(
        self, key: Hashable, tokens: int, *, prompt: int, output: int, ids: Sequence[int] = ()
    ) -> bool:
        """Set a piece aside for a new sequence that caches `tokens`, or change nothing."""
        room = self.room(prompt, output)
        fits = max(tokens, prompt + output) <= room
        start = self.memory.take(room) if fits else None
        if start is None:
            return False
        self._pieces[key], self.tokens[key] = (start, room), tokens
        self._final[key] = prompt + output - 1
        return True

    def grow(self, key: Hashable, tokens: int) -> bool:
        """Cache `tokens` tokens in all: within the piece there is always place."""
        if tokens > self._pieces[key][1]:
            return False
        self.tokens[key] = tokens
        return True

    def end(self, key: Hashable) -> None:
        """Release the piece of a sequence."""
        self.memory.give(*self._pieces.pop(key))
        del self.tokens[key], self._final[key]

    def waste(self, need: int = 1) -> Waste:
        """Who holds the tokens now, if the next request sets `need` aside."""
        later = sum(max(0, self._final[key] - cached) for key, cached in self.tokens.items())
        small = self.memory.too_small(need)
        internal = self.reserved - self.used - later
        return Waste(self.used, later, internal, small, self.memory.free - small)
