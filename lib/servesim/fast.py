"""The engine's most common case in leaps: FCFS, paged blocks, prompts that join the decodes.

Between two events (an arrival that can join, an end, a full cache) nothing changes but the context
of each sequence, which grows by one token a step. The time of k such steps has a closed form, so
they are taken at once. The results are those of `engine.serve`, to the femtosecond.
"""

import heapq
from collections.abc import Iterable
from math import isqrt
from typing import NamedTuple

import numpy as np

from servesim.checks import at_least
from servesim.clock import Linear, ticks
from servesim.record import seconds
from servesim.workload import Request, Trace


class Served(NamedTuple):
    """One entry for each request in order of arrival, named as in `record.Run`.

    `metrics.tpot_s`, `end_to_end_s`, `meets` and `percentile` take it.
    """

    arrival_s: np.ndarray
    ttft_s: np.ndarray  # NaN where refused
    finish_s: np.ndarray  # NaN where refused
    prompt_tokens: np.ndarray
    output_tokens: np.ndarray
    preemptions: np.ndarray
    steps: int
    busy_s: float  # sum of all steps

    @property
    def refused(self) -> np.ndarray:
        return np.isnan(self.finish_s)

    @property
    def done(self) -> np.ndarray:
        return ~self.refused


def serve(
    requests: Trace | Iterable[Request],
    *,
    clock: Linear,
    blocks: int,
    block: int = 16,
    slots: int,
    budget: int | None = None,
) -> Served:
    """`engine.serve(requests, cache=Paged(blocks=blocks, block=block), ...)` without its steps.

    budget  tokens in one step: chunked prefill, `Chunked(budget)`; None: `Mixed()`

    Source: as `engine.serve`.
    Left out: every other policy, shared prefixes, and what happens in each step.
    Raises ValueError for arguments out of range and requests without prompt or output.

    >>> from servesim.clock import by_hand
    >>> clock = by_hand(step_s=0.020, prompt_token_s=0.0005)
    >>> served = serve([Request(0, 200, 3)], clock=clock, blocks=64, slots=4)
    >>> served.ttft_s.tolist(), served.finish_s.tolist(), served.steps
    ([0.1], [0.14], 3)
    """
    at_least(1, blocks=blocks, block=block, slots=slots, budget=1 if budget is None else budget)
    leaper = _Leaper(*_columns(requests), clock, blocks, block, slots, budget)
    leaper.run()
    first = [
        None if end is None else begin - arrival
        for begin, end, arrival in zip(leaper.first, leaper.finish, leaper.arrival, strict=True)
    ]
    return Served(
        arrival_s=seconds(leaper.arrival),
        ttft_s=seconds(first),
        finish_s=seconds(leaper.finish),
        prompt_tokens=np.array(leaper.prompt, dtype=int),
        output_tokens=np.array(leaper.output, dtype=int),
        preemptions=np.array(leaper.preemptions, dtype=int),
        steps=leaper.step,
        busy_s=leaper.busy / 10**15,
    )


def _columns(requests: Trace | Iterable[Request]) -> tuple[list[int], list[int], list[int]]:
    """Arrivals (fs), prompts and outputs, by arrival."""
    if isinstance(requests, Trace):
        columns = requests.arrival_s, requests.prompt_tokens, requests.output_tokens
        columns = (column[np.argsort(requests.arrival_s, kind="stable")] for column in columns)
    else:
        rows = sorted((request[:3] for request in requests), key=lambda row: row[0])
        columns = map(np.array, zip(*rows, strict=True)) if rows else (np.zeros(0),) * 3
    arrival_s, prompt, output = columns
    if len(arrival_s):
        at_least(1, prompt_tokens=prompt.min(), output_tokens=output.min())
        at_least(0, arrival_s=arrival_s.min())
    return [ticks(t) for t in arrival_s.tolist()], prompt.tolist(), output.tolist()


class _Leaper:
    """The state of a run. What grows with every token is kept for all sequences at once.

    Every running sequence gains a token in every step, so its context at the end of step g is
    base + g with a constant base, and it needs a block in the steps of one residue modulo the
    block size. Their sum, and how many have which residue, is all that a step has to know.
    """

    def __init__(self, arrival, prompt, output, clock, blocks, block, slots, budget):
        self.arrival, self.prompt, self.output = arrival, prompt, output
        self.clock, self.block, self.slots, self.budget = clock, block, slots, budget
        count = len(arrival)
        self.first: list[int | None] = [None] * count
        self.finish: list[int | None] = [None] * count
        self.preemptions = [0] * count
        self.made = [0] * count  # at the last admission
        self.start = [0] * count  # step of the first token after it
        self.free = blocks
        fits = [-(-(p + o - 1) // block) <= blocks for p, o in zip(prompt, output, strict=True)]
        self.queue = [i for i in range(count) if fits[i]]  # the others are refused
        self.times = [arrival[i] for i in self.queue]
        self.head = self.tail = 0  # queue[head:tail] waits
        self.ahead: list[int] = []  # preempted, and waiting before the queue; the first is last
        self.admitted: list[int] = []  # by admission; who is done stays until it comes up
        self.ends: list[tuple[int, int]] = []  # a heap of (last step, index) of the running
        self.base = 0  # sum of context - step over the running
        self.turns = [0] * (2 * block)  # running ones that need a block at step % block, twice
        self.partial: int | None = None  # whose prompt is computed in part
        self.cached = 0  # tokens of it
        self.now = self.busy = 0  # fs
        self.step = 0  # the next one

    def run(self) -> None:
        times, total = self.times, len(self.times)
        while True:
            while self.tail < total and times[self.tail] <= self.now:
                self.tail += 1
            waits = self.ahead or self.head < self.tail
            if self.partial is not None or (waits and self.joins()):
                self.take_step()
            elif self.ends:
                self.leap(not waits)
            elif self.tail == total:
                return
            else:
                self.now = times[self.tail]

    def joins(self) -> bool:
        """Can the first in the queue join the next step?"""
        n = len(self.ends)
        if n >= self.slots:
            return False
        i = self.ahead[-1] if self.ahead else self.queue[self.head]
        tokens = self.prompt[i] + self.made[i]
        if self.budget is not None:
            tokens = min(tokens, self.budget - n)
            if tokens <= 0:
                return False
        more = self.turns[self.step % self.block]
        return -(-tokens // self.block) <= self.free - more

    def leap(self, alone: bool) -> None:
        """All steps until one ends, until an arrival can join, or until the cache is full."""
        n, g, block = len(self.ends), self.step, self.block
        grow = self.clock.read * n  # fs that each step takes more than the one before
        one = self.clock.fixed(n, 0) + self.clock.read * (self.base + n * (g - 1))
        k = self.ends[0][0] - g + 1
        if (k // block + 1) * n > self.free:
            k = min(k, self.until_full())
            if not k:
                return self.take_step()
        if alone and n < self.slots and self.tail < len(self.times):
            gap = self.times[self.tail] - self.now
            if k * one + grow * (k * (k - 1) // 2) > gap:
                k = steps_within(gap, one, grow)
        took = k * one + grow * (k * (k - 1) // 2)
        self.now += took
        self.busy += took
        at = g % block
        self.free -= k // block * n + sum(self.turns[at : at + k % block])
        self.step += k
        self.retire()

    def until_full(self) -> int:
        """Steps for which the free blocks suffice."""
        cycles, left = divmod(self.free, len(self.ends))
        at = self.step % self.block
        for extra in range(self.block):
            left -= self.turns[at + extra]
            if left < 0:
                return cycles * self.block + extra
        return (cycles + 1) * self.block

    def take_step(self) -> None:
        """One step, planned as `engine.serve` plans it."""
        n, g, block = len(self.ends), self.step, self.block
        room = None if self.budget is None else max(0, self.budget - n)
        preempted = False
        while self.turns[g % block] > self.free:
            preempted = True
            self.preempt()
        self.free -= self.turns[g % block]
        n = len(self.ends)
        chunks: list[tuple[int, int]] = []  # (tokens, cached)
        joined: list[int] = []
        if self.partial is not None:
            room, lost = self.continue_partial(room, chunks, joined)
            preempted |= lost
        if not preempted:
            self.admit(n + len(joined) + (self.partial is not None), room, chunks, joined)
        tokens = cached = pairs = 0
        for t, c in chunks:
            tokens, cached, pairs = tokens + t, cached + c, pairs + t * c + t * (t + 1) // 2
        clock = self.clock
        took = clock.fixed(n, tokens) + clock.score * pairs
        took += clock.read * (self.base + n * (g - 1) + cached)
        self.now += took
        self.busy += took
        self.step += 1
        for i in joined:
            self.join(i, g)
        self.retire()

    def continue_partial(self, room, chunks, joined) -> tuple[int, bool]:
        """Compute more of the prompt that is under way; it goes when it finds no block."""
        i, block = self.partial, self.block
        known = self.prompt[i] + self.made[i]
        tokens = min(known - self.cached, room)
        if not tokens:
            return room, False
        more = -(-(self.cached + tokens) // block) + -self.cached // block
        if more > self.free:
            self.preempt()
            return room, True
        self.free -= more
        chunks.append((tokens, self.cached))
        self.cached += tokens
        if self.cached == known:
            joined.append(i)
            self.partial = None
        return room - tokens, False

    def admit(self, held, room, chunks, joined) -> None:
        """Admit from the queue until slots, tokens or blocks are short."""
        block = self.block
        while held < self.slots and (self.ahead or self.head < self.tail):
            i = self.ahead[-1] if self.ahead else self.queue[self.head]
            tokens = known = self.prompt[i] + self.made[i]
            if room is not None:
                tokens = min(known, room)
            need = -(-tokens // block)
            if tokens <= 0 or need > self.free:
                return
            if self.ahead:
                self.ahead.pop()
            else:
                self.head += 1
            self.free -= need
            chunks.append((tokens, 0))
            held += 1
            if room is not None:
                room -= tokens
            if tokens == known:
                joined.append(i)
            else:
                self.partial, self.cached = i, tokens

    def join(self, i: int, g: int) -> None:
        """Its prompt was computed in step g, and a token came out."""
        known = self.prompt[i] + self.made[i]
        if self.first[i] is None:
            self.first[i] = self.now
        last = g + self.output[i] - self.made[i] - 1
        self.start[i] = g
        self.base += known - g
        self.turn(known - g, 1)
        self.admitted.append(i)
        heapq.heappush(self.ends, (last, i))

    def turn(self, base: int, change: int) -> None:
        """Note that a sequence with this base is running, or no longer."""
        residue = (1 - base) % self.block
        self.turns[residue] += change
        self.turns[residue + self.block] += change

    def retire(self) -> None:
        """Let go whose last step is over."""
        ends, g = self.ends, self.step - 1
        while ends and ends[0][0] == g:
            i = heapq.heappop(ends)[1]
            self.finish[i] = self.now
            cached = self.prompt[i] + self.output[i] - 1
            self.base -= cached - g
            self.turn(cached - g, -1)
            self.free -= -cached // self.block

    def preempt(self) -> None:
        """Send the most recently admitted back to the head of the queue."""
        g = self.step
        if self.partial is not None:
            i, cached, self.partial = self.partial, self.cached, None
        else:
            i = self.admitted.pop()
            while self.finish[i] is not None:
                i = self.admitted.pop()
            base = self.prompt[i] + self.made[i] - self.start[i]
            cached = base + g - 1
            self.base -= base
            self.turn(base, -1)
            self.ends.remove((self.start[i] + self.output[i] - self.made[i] - 1, i))
            heapq.heapify(self.ends)
            self.made[i] += g - self.start[i]
        self.free -= -cached // self.block
        self.preemptions[i] += 1
        self.ahead.append(i)


def steps_within(gap: int, one: int, grow: int) -> int:
    """The least k >= 1 with k one + grow k (k - 1) / 2 >= gap, for gap > 0 and one >= grow.

    >>> steps_within(10, 4, 0), steps_within(10, 4, 2), steps_within(11, 4, 2)
    (3, 2, 3)
    """
    if grow:
        b = 2 * one - grow
        k = (isqrt(b * b + 8 * grow * gap) - b) // (2 * grow)
    else:
        k = gap // one
    while k * one + grow * (k * (k - 1) // 2) < gap:
        k += 1
    return max(k, 1)
