"""How a run of plain steps is taken in one leap.

Between two events (an arrival that can join, an end, a full cache) nothing changes but the context
of each sequence, which grows by one token a step. The time of k such steps has a closed form:

    k fixed(n, 0) + read (k C + n k (k - 1) / 2)      n sequences with C tokens cached in all

Every running sequence gains a token in every step, so its context is a constant plus the number of
the step. Their sum, and how many need a block in the steps of each residue modulo the block size,
is all that has to be known of them; who ends when is a heap.
"""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from math import isqrt

import numpy as np

from servesim.clock import Linear
from servesim.prefixes import Prefixes

FOREVER = float("inf")
PART = 10_000  # requests between two words on how far a run is


class Leaper:
    """The state of a run: FCFS, paged blocks, the newest goes and is rebuilt by one prefill.

    `sprint` serves whole prompts as long as memory suffices; `take_step` does anything, one step
    at a time, as `engine.serve` plans it.
    """

    def __init__(
        self,
        arrival: list[int],  # fs, rising
        prompt: np.ndarray,
        output: np.ndarray,
        clock: Linear,
        blocks: int,
        block: int,
        slots: int,
        budget: int | None,
        prefixes: Prefixes | None,
    ):
        self.clock, self.block, self.slots, self.budget = clock, block, slots, budget
        count = len(arrival)
        self.first: list[int | None] = [None] * count  # fs when token 1 came out
        self.finish: list[int | None] = [None] * count
        self.preemptions = [0] * count
        self.size = prompt.tolist()  # tokens that are known when it is admitted
        self.need = (-(-prompt // block)).tolist()  # blocks for them
        self.final = (prompt + output - 1).tolist()  # tokens in the cache when it ends
        last_need = -(-(prompt + output - 1) // block)
        self.last_need = last_need.tolist()
        self.queue = np.flatnonzero(last_need <= blocks).tolist()  # the others are refused
        self.times = [arrival[i] for i in self.queue] + [FOREVER]
        self.head = self.tail = 0  # queue[head:tail] waits
        self.ahead: list[int] = []  # preempted: they wait before the queue, the first one last
        self.admitted: list[int] = []  # in this order; who is done stays until it comes up
        self.turn: dict[int, int] = {}  # number of its last admission, where prefixes are shared
        self.joined = 0
        self.shift = count.bit_length()
        self.plain: dict[int, int] = {}  # sequences: fs of a step without attention
        self.ends: list[int] = []  # of the running, a heap of (last step << shift) + index
        self.base = 0  # sum over the running of context - step
        self.turns = [0] * block  # running ones that take a block when step % block is this
        self.partial: int | None = None  # the one whose prompt is computed in part
        self.cached = 0  # tokens of it
        self.prefixes = prefixes
        self.free = blocks  # that can be handed out: idle shared ones are among them
        self.now = self.idle = 0  # fs
        self.step = 0  # the next one

    def run(self) -> Iterator[int]:
        """Serve all. Says now and then how many have left the queue."""
        said = 0
        while True:
            if self.head >= said + PART:
                said = self.head
                yield said
            while self.times[self.tail] <= self.now:
                self.tail += 1
            if self.partial is not None:
                while self.partial is not None:
                    self.take_step()
                    while self.times[self.tail] <= self.now:
                        self.tail += 1
            elif self.can_join():
                self.take_step()
            elif self.ends:
                self.leap()
            elif self.tail == len(self.queue):
                return
            else:
                self.idle += self.times[self.tail] - self.now
                self.now = self.times[self.tail]
            if self.budget is None and self.prefixes is None:
                self.sprint()

    def sprint(self) -> None:
        """Steps in which prompts join, and leaps between them, until memory is short."""
        clock, block, slots, shift = self.clock, self.block, self.slots, self.shift
        fixed, read, score = clock.fixed, clock.read, clock.score
        first, finish, size, need = self.first, self.finish, self.size, self.need
        final, last_need, mask = self.final, self.last_need, (1 << shift) - 1
        queue, times, ahead, admitted = self.queue, self.times, self.ahead, self.admitted
        ends, turns, base, free = self.ends, self.turns, self.base, self.free
        head, tail, now, g = self.head, self.tail, self.now, self.step
        n = len(ends)
        plain = self.plain
        stop = head + PART
        while head < stop:
            while times[tail] <= now:
                tail += 1
            at = g % block
            left = free - turns[at]
            held, tokens, pairs = n, 0, 0
            while held < slots and (ahead or head < tail):
                i = ahead[-1] if ahead else queue[head]
                if need[i] > left:
                    break
                if ahead:
                    ahead.pop()
                else:
                    head += 1
                left -= need[i]
                held += 1
                tokens += size[i]
                pairs += size[i] * (size[i] + 1) // 2
                admitted.append(i)
            if held > n:
                now += fixed(n, tokens) + score * pairs + read * (base + n * (g - 1))
                free = left
                for i in admitted[n - held :]:
                    if first[i] is None:
                        first[i] = now
                    late = g - size[i]
                    base -= late
                    turns[(1 + late) % block] += 1
                    heappush(ends, (late + final[i]) << shift | i)
                n = held
                g += 1
            elif n:
                k = (ends[0] >> shift) - g + 1
                if (k // block + 1) * n > free:
                    break
                if n not in plain:
                    plain[n] = fixed(n, 0)
                one = plain[n] + read * (base + n * (g - 1))
                took = k * one + read * n * (k * (k - 1) // 2)
                if n < slots and head == tail and not ahead and took > times[tail] - now:
                    k = steps_within(times[tail] - now, one, read * n)
                    took = k * one + read * n * (k * (k - 1) // 2)
                now += took
                free -= k // block * n + taken(turns, at, k % block)
                g += k
            elif head < tail or times[tail] == FOREVER:
                break
            else:
                self.idle += times[tail] - now
                now = times[tail]
            while ends and ends[0] < g << shift:
                i = heappop(ends) & mask
                finish[i] = now
                late = g - 1 - final[i]
                base += late
                turns[(1 + late) % block] -= 1
                free += last_need[i]
                n -= 1
        self.head, self.tail, self.now, self.step = head, tail, now, g
        self.base, self.free = base, free

    def can_join(self) -> bool:
        """Can the first in the queue join the next step?"""
        room = self.room(len(self.ends))
        if len(self.ends) >= self.slots or room <= 0 or not (self.ahead or self.head < self.tail):
            return False
        i = self.ahead[-1] if self.ahead else self.queue[self.head]
        _, need, idle = self.needs(i, room)
        return need <= self.free - idle - self.turns[self.step % self.block]

    def needs(self, i: int, room: float) -> tuple[int, int, int]:
        """(tokens found in the cache, new blocks, found blocks that are idle) on admission."""
        if self.prefixes is None:
            return 0, -(-min(self.size[i], room) // self.block), 0
        found, idle = self.prefixes.leading(i, (self.size[i] - 1) // self.block)
        return found * self.block, self.need[i] - found, idle

    def take(self, blocks: int) -> None:
        self.free -= blocks
        if self.prefixes is not None:
            self.prefixes.evict(self.free)

    def give(self, i: int, blocks: int) -> None:
        self.free += blocks
        if self.prefixes is not None:
            self.free -= self.prefixes.release(i)

    def room(self, decoding: int) -> float:
        """Prompt tokens that a step can take."""
        return FOREVER if self.budget is None else max(0, self.budget - decoding)

    def leap(self) -> None:
        """All steps until one ends, until an arrival can join, or until the cache is full."""
        n, g = len(self.ends), self.step
        k = (self.ends[0] >> self.shift) - g + 1
        if (k // self.block + 1) * n > self.free:
            k = min(k, self.until_full())
            if not k:
                self.take_step()
                return
        read = self.clock.read
        one = self.clock.fixed(n, 0) + read * (self.base + n * (g - 1))
        waits = self.ahead or self.head < self.tail
        gap = self.times[self.tail] - self.now
        if not waits and n < self.slots and k * one + read * n * (k * (k - 1) // 2) > gap:
            k = steps_within(gap, one, read * n)
        self.now += k * one + read * n * (k * (k - 1) // 2)
        at = g % self.block
        self.take(k // self.block * n + taken(self.turns, at, k % self.block))
        self.step += k
        self.retire()

    def until_full(self) -> int:
        """Steps for which the free blocks suffice."""
        cycles, left = divmod(self.free, len(self.ends))
        extra, at = 0, self.step % self.block
        while (left := left - self.turns[(at + extra) % self.block]) >= 0:
            extra += 1
        return cycles * self.block + extra

    def take_step(self) -> None:
        """One step of any kind."""
        g, at, lost = self.step, self.step % self.block, False
        room = self.room(len(self.ends))
        grown = 0  # sequences that have their block: the oldest, and never a victim
        while self.turns[at] - grown > self.free:
            grown += self.free
            self.take(self.free)
            self.preempt()
            lost = True
        if self.turns[at]:
            self.take(self.turns[at] - grown)
        n = len(self.ends)
        chunks: list[tuple[int, int, int]] = []  # (index, tokens, cached)
        if self.partial is not None:
            room, lost = self.go_on(room, chunks, lost)
        if room > 0 and not lost and (self.ahead or self.head < self.tail):
            self.admit(n + (self.partial is not None or len(chunks)), room, chunks)
        tokens, pairs, read = 0, 0, self.base + n * (g - 1)
        for _, t, c in chunks:
            tokens, pairs, read = tokens + t, pairs + t * c + t * (t + 1) // 2, read + c
        clock = self.clock
        self.now += clock.fixed(n, tokens) + clock.score * pairs + clock.read * read
        self.step += 1
        for i, t, c in chunks:
            if t + c == self.size[i]:
                self.join(i, g)
        if self.ends and self.ends[0] >> self.shift <= g:
            self.retire()

    def go_on(self, room: float, chunks: list, lost: bool) -> tuple[float, bool]:
        """More of the prompt that is under way; it is preempted when it finds no block."""
        i, cached = self.partial, self.cached
        tokens = self.size[i] - cached
        tokens = tokens if tokens < room else room
        more = -(-(cached + tokens) // self.block) + -cached // self.block
        if more > self.free:
            self.preempt()
            return room, True
        if tokens:
            self.free -= more
            chunks.append((i, tokens, cached))
            self.cached += tokens
            if self.cached == self.size[i]:
                self.partial = None
        return room - tokens, lost

    def admit(self, held: int, room: float, chunks: list) -> None:
        """Admit from the queue until slots, tokens or blocks are short."""
        while held < self.slots and room > 0 and (self.ahead or self.head < self.tail):
            i = self.ahead[-1] if self.ahead else self.queue[self.head]
            found, need, idle = self.needs(i, room)
            if need > self.free - idle:
                return
            if self.ahead:
                self.ahead.pop()
            else:
                self.head += 1
            if self.prefixes is not None:
                self.prefixes.hold(i, found // self.block)
            self.take(need + idle)
            if self.prefixes is not None:
                self.prefixes.name(i, found // self.block)
            tokens = min(self.size[i] - found, room)
            held, room = held + 1, room - tokens
            chunks.append((i, tokens, found))
            if found + tokens < self.size[i]:
                self.partial, self.cached = i, tokens

    def join(self, i: int, g: int) -> None:
        """Its prompt was computed in step g, and a token came out."""
        if self.first[i] is None:
            self.first[i] = self.now
        late = g - self.size[i]
        self.base -= late
        self.turns[(1 + late) % self.block] += 1
        self.admitted.append(i)
        self.joined += 1
        self.turn[i] = self.joined
        heappush(self.ends, (late + self.final[i]) << self.shift | i)

    def retire(self) -> None:
        """Let go whose last step is over."""
        over = []
        while self.ends and self.ends[0] >> self.shift < self.step:
            over.append(heappop(self.ends) & ((1 << self.shift) - 1))
        if self.prefixes is not None and len(over) > 1:
            over.sort(key=self.turn.__getitem__)  # idle blocks grow old in this order
        for i in over:
            self.finish[i] = self.now
            late = self.step - 1 - self.final[i]
            self.base += late
            self.turns[(1 + late) % self.block] -= 1
            self.give(i, self.last_need[i])

    def preempt(self) -> None:
        """Send the most recently admitted back to the head of the queue."""
        if self.partial is not None:
            i, self.partial = self.partial, None
            self.free -= -self.cached // self.block
        else:
            i = self.admitted.pop()
            while self.finish[i] is not None:
                i = self.admitted.pop()
            end = next(e for e in self.ends if e & ((1 << self.shift) - 1) == i)
            self.ends.remove(end)
            heapify(self.ends)
            late = (end >> self.shift) - self.final[i]
            self.base += late
            self.turns[(1 + late) % self.block] -= 1
            self.size[i] = self.step - late
            self.give(i, -(-(self.size[i] - 1) // self.block))
            self.need[i] = -(-self.size[i] // self.block)
        self.preemptions[i] += 1
        self.ahead.append(i)


def taken(turns: list[int], at: int, steps: int) -> int:
    """Blocks taken in fewer steps than a block has tokens, from residue `at` on."""
    end = at + steps
    if end <= len(turns):
        return sum(turns[at:end])
    return sum(turns[at:]) + sum(turns[: end - len(turns)])


def steps_within(gap: int, one: int, grow: int) -> int:
    """The least k >= 1 with k one + grow k (k - 1) / 2 >= gap.

    One step takes `one`, each further one `grow` more. From above: k = gap / one is enough, and
    seldom too much by more than a few, unless a leap is long.

    >>> steps_within(10, 4, 0), steps_within(10, 4, 2), steps_within(11, 4, 2)
    (3, 2, 3)
    """
    k = -(-gap // one)
    if k > 8 and grow * k > 8 * one:
        b = 2 * one - grow
        k = (isqrt(b * b + 8 * grow * gap) - b) // (2 * grow) + 1
    while k > 1 and (k - 1) * one + grow * ((k - 1) * (k - 2) // 2) >= gap:
        k -= 1
    return k if k > 1 else 1
