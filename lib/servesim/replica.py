"""The state of one replica, and what the engine's loop does to it, part by part."""

import heapq
from collections import deque
from collections.abc import Callable, Collection
from numbers import Integral

from servesim.batching import INF, Chunked, DecodeFirst, Mixed, PrefillFirst, Static
from servesim.cache import Paged
from servesim.checks import at_least, kind, whole
from servesim.clock import SECOND, Chunk, Work, ticks
from servesim.contiguous import Contiguous
from servesim.order import FCFS, FairShare, ShortestFirst, ShortestRemaining, StrictPriority
from servesim.preemption import Preemption
from servesim.record import Step
from servesim.sequence import Sequence
from servesim.workload import Request

Order = FCFS | ShortestFirst | ShortestRemaining | StrictPriority | FairShare
Batching = Mixed | PrefillFirst | DecodeFirst | Chunked | Static

# (index of the request that ended, s) -> the request that its user sends next
Follow = Callable[[int, float], Request | None]


def _check(index: int, request: Request) -> None:
    try:
        whole(1, prompt_tokens=request.prompt_tokens, output_tokens=request.output_tokens)
        at_least(0, arrival_s=request.arrival_s)
    except ValueError as error:
        raise ValueError(f"request {index}: {error}") from None


def _among(sequences: Collection[Sequence], wanted: str, given: Sequence) -> None:
    """Raise ValueError unless a policy gave one of these."""
    if given not in sequences:
        got = f"request {given.index}, not in it" if isinstance(given, Sequence) else repr(given)
        raise ValueError(f"{wanted}, got {got}")


class Replica:
    """A queue, the running sequences, their cache and the policies that decide."""

    def __init__(
        self,
        requests: list[Request],
        cache: Paged | Contiguous,
        slots: int,
        batching: Batching,
        order: Order,
        preemption: Preemption,
        queue: int | None,
        follow: Follow | None,
    ):
        self.cache, self.slots, self.queue, self.follow = cache, slots, queue, follow
        self.batching, self.order, self.preemption = batching, order, preemption
        self.now = 0  # fs
        self.sequences: list[Sequence] = []  # all, by index
        self.arriving: list[tuple[int, int]] = []  # a heap of (fs, index)
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []  # by admission
        self.leaving: list[Sequence] = []  # done, and still among the running
        self.admissions = 0
        self.fruitless = 0  # preemptions since a token was delivered
        self.decoding: set[Sequence] = set()  # of the running: one token to compute, not the first
        # of the step that is planned:
        self.shares: dict[Sequence, int] = {}  # tokens that each computes
        self.moving = 0  # fs of copies between card and host
        self.preempted = self.asked = self.found = 0
        for index, request in enumerate(requests):
            _check(index, request)
        for request in sorted(requests, key=lambda request: request.arrival_s):
            self.expect(request)

    def expect(self, request: Request) -> None:
        """Note a request that will arrive."""
        index = len(self.sequences)
        full = request.blocks[: request.prompt_tokens // self.cache.block]
        arrival = ticks(request.arrival_s)
        self.sequences.append(Sequence(index, arrival, *request[1:4], blocks=full))
        heapq.heappush(self.arriving, (self.sequences[-1].arrival, index))

    @property
    def busy(self) -> bool:
        return bool(self.arriving or self.waiting or self.running)

    # arrivals

    def arrivals(self) -> None:
        """Put whoever has arrived into the queue, or refuse it."""
        while self.arriving and self.arriving[0][0] <= self.now:
            sequence = self.sequences[heapq.heappop(self.arriving)[1]]
            room = self.queue is None or len(self.waiting) < self.queue
            if room and self.cache.possible(sequence.prompt, sequence.output):
                self.waiting.append(sequence)
            else:
                self.ended(sequence)

    def ended(self, sequence: Sequence) -> None:
        following = self.follow and self.follow(sequence.index, self.now / SECOND)
        if following:
            kind(Request, "Request(9.5, 200, 50)", **{"what follow gives": following})
            _check(len(self.sequences), following)
            self.expect(following)

    def idle(self) -> None:
        """Wait for the next arrival. Without one, nothing will ever change."""
        if not (self.arriving or self.waiting or self.running):
            return
        if not self.arriving:
            free = self.cache.capacity - self.cache.reserved
            raise RuntimeError(
                f"nobody can run, and nobody will arrive: {len(self.waiting)} wait, "
                f"{len(self.running)} hold a slot of {self.slots}, {free} of "
                f"{self.cache.capacity} tokens of the cache are free"
            )
        self.now = max(self.now, self.arriving[0][0])

    # plan

    def plan(self) -> None:
        """Decide who computes how many tokens in the next step: `shares`."""
        self.shares, self.moving = {}, 0
        self.preempted = self.asked = self.found = 0
        room = self.batching.room(len(self.decoding), len(self.running))
        if not (room == INF or isinstance(room, Integral)):
            raise ValueError(
                f"batching.room must give a whole number of tokens (int) or INF, got {room!r}"
            )
        if self.batching.alone:
            self.admit(room)
            if not self.shares:
                self.go_on(room)
        else:
            room = self.go_on(room)
            if not self.preempted:
                self.admit(room)

    def go_on(self, room: float) -> float:
        """Give the running ones their tokens, preempting where blocks are short."""
        for sequence in self.running[:]:
            if sequence in self.decoding:
                if self.grow(sequence, sequence.cached + 1):
                    self.shares[sequence] = 1
            elif not sequence.done and sequence in self.running:
                tokens = min(sequence.piece, room)
                if tokens > 0 and self.grow(sequence, sequence.cached + tokens):
                    self.shares[sequence] = tokens
                    room -= tokens
        return room

    def grow(self, sequence: Sequence, tokens: int) -> bool:
        """Room for `tokens` in all, at the cost of others; False when it is out itself."""
        while not self.cache.grow(sequence.index, tokens):
            # a static batch keeps those who are done: they go first
            victim = self.leaving.pop() if self.leaving else self.preemption.choose(self.running)
            _among(self.running, "preemption.choose must give one of the running", victim)
            self.preempt(victim)
            if victim is sequence:
                return False
        return True

    def preempt(self, victim: Sequence) -> None:
        """Take a running sequence out of the step and its memory from it."""
        self.running.remove(victim)
        self.decoding.discard(victim)
        self.cache.end(victim.index)
        self.shares.pop(victim, None)
        if victim.done:
            return
        self.moving += self.preemption.restore.drop(victim)
        (self.waiting.appendleft if self.preemption.to_head else self.waiting.append)(victim)
        victim.preempted += 1
        self.preempted += 1
        self.fruitless += 1
        if self.fruitless > 200 * (1 + len(self.running)):
            raise RuntimeError(
                f"livelock: {self.fruitless} preemptions since the last new token; request "
                f"{victim.index} was preempted {victim.preempted} times and has made "
                f"{victim.made} of {victim.output} tokens"
            )

    def admit(self, room: float) -> None:
        """Admit in the policy's order, until the first who finds no slot, tokens or memory."""
        prompts = 0
        while self.waiting and room > 0:
            sequence = self.order.first(self.waiting, self.now)
            _among(self.waiting, "order.first must give one of the queue, and leave it", sequence)
            sequence.cached = sequence.swapped or self.cache.found(sequence.blocks, sequence.known)
            sequence.prefill = self.preemption.restore.prefill(sequence)
            tokens = sequence.piece
            if not self.batching.whole:
                tokens = min(tokens, room)
            elif tokens > room and prompts:
                tokens = 0
            if not tokens or not self.start(sequence, tokens):
                sequence.cached = 0
                return
            prompts, room = prompts + 1, room - tokens

    def start(self, sequence: Sequence, tokens: int) -> bool:
        """Let a waiting sequence run, if there is a slot and memory for its next `tokens`."""
        size = dict(prompt=sequence.prompt, output=sequence.output, ids=sequence.blocks)
        cached = sequence.cached + tokens
        while len(self.running) >= self.slots or not self.cache.start(
            sequence.index, cached, **size
        ):
            last = self.overtaken(sequence)
            if last is None:
                return False
            self.preempt(last)
        self.waiting.remove(sequence)
        self.running.append(sequence)
        self.shares[sequence] = tokens
        self.note_admission(sequence)
        return True

    def overtaken(self, sequence: Sequence) -> Sequence | None:
        """The running one that it may push out first, if any."""
        last = None
        for other in self.preemption.unguarded(self.running):
            if self.order.overtakes(last or sequence, other):
                last = other
        return last

    def note_admission(self, sequence: Sequence) -> None:
        self.admissions += 1
        sequence.turn, sequence.steps = self.admissions, 0
        sequence.admitted = self.now if sequence.admitted is None else sequence.admitted
        self.order.admitted(sequence)
        if sequence.cached >= sequence.prefill:
            self.decoding.add(sequence)
        if sequence.swapped:
            self.moving += self.preemption.restore.back(sequence)
        else:
            sequence.found += sequence.cached
            self.found += sequence.cached
            self.asked += sequence.known

    # clock, account, retire

    def work(self) -> Work:
        """What the planned step holds."""
        contexts, chunks = [], []
        for sequence, tokens in self.shares.items():
            if sequence in self.decoding:
                contexts.append(sequence.cached)
            else:
                chunks.append(Chunk(tokens, sequence.cached))
        if self.batching.padded:
            slots = len(self.running)
            contexts = [max(contexts)] * slots if contexts else []
            chunks = [max(chunks)] * slots if chunks else []
        return Work(contexts, chunks)

    def step(self, work: Work, duration: int) -> Step:
        """What is worth noting of the planned step."""
        return Step(
            time=self.now,
            duration=duration,
            running=len(self.running),
            working=len(self.shares),
            waiting=len(self.waiting),
            reserved=self.cache.reserved,
            used=self.cache.used,
            decodes=work.decodes,
            prompt_tokens=work.prompt_tokens,
            preempted=self.preempted,
            asked=self.asked,
            found=self.found,
        )

    def account(self) -> list[int]:
        """Cache what was computed. Returns the requests that gained a token."""
        gained = []
        for sequence, tokens in self.shares.items():
            sequence.cached += tokens
            sequence.steps += 1
            if sequence.cached == sequence.prompt + sequence.made:
                sequence.made += 1
                gained.append(sequence.index)
                if sequence.made == 1:
                    sequence.first = self.now
                if sequence.made == sequence.output:
                    self.over(sequence)
                    continue
            if sequence.cached >= sequence.prefill:
                self.decoding.add(sequence)
        self.fruitless = 0 if gained else self.fruitless
        return gained

    def over(self, sequence: Sequence) -> None:
        """Its last token came out."""
        sequence.finish = self.now
        self.decoding.discard(sequence)
        self.leaving.append(sequence)
        self.ended(sequence)

    def retire(self) -> None:
        """Let go who is done; a static batch goes when all of it is."""
        if self.batching.together and not all(s.done for s in self.running):
            return
        for sequence in self.leaving:
            self.running.remove(sequence)
            self.cache.end(sequence.index)
        self.leaving.clear()
