"""What happens when a running sequence needs a block and there is none.

`Preemption` says who goes, how the work is made good later, and where in the queue it waits.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from servesim.checks import members, takes, whole
from servesim.clock import SECOND
from servesim.sequence import Sequence

Victim = Callable[[list[Sequence]], Sequence]


def newest(running: list[Sequence]) -> Sequence:
    """The most recently admitted: whoever is oldest always gets on."""
    return max(running, key=lambda s: s.turn)


def oldest(running: list[Sequence]) -> Sequence:
    """The least recently admitted."""
    return min(running, key=lambda s: s.turn)


def largest(running: list[Sequence]) -> Sequence:
    """The one that gives back most; of equals the most recently admitted."""
    return max(running, key=lambda s: (s.cached, s.turn))


class Restore(Protocol):
    """How a sequence gets its cache back."""

    def drop(self, sequence: Sequence) -> int:
        """Forget or move its cached tokens. Returns fs that the move takes."""

    def back(self, sequence: Sequence) -> int:
        """Called when it is admitted again. Returns fs that the move takes."""

    def prefill(self, sequence: Sequence) -> int:
        """Tokens that it has to have cached, on admission, before it decodes one by one."""


class Recompute:
    """Keep the ids of the generated tokens; one prefill over prompt + generated rebuilds all.

    Source: vLLM; Kwon et al. (2023), section 4.5.
    """

    def drop(self, sequence: Sequence) -> int:
        sequence.cached = 0
        return 0

    def back(self, sequence: Sequence) -> int:
        return 0

    def prefill(self, sequence: Sequence) -> int:
        return sequence.known


class Replay:
    """Start over: prefill the prompt, then make the same tokens again, one in each step.

    They were delivered before and are not delivered twice.
    """

    def drop(self, sequence: Sequence) -> int:
        sequence.cached = 0
        return 0

    def back(self, sequence: Sequence) -> int:
        return 0

    def prefill(self, sequence: Sequence) -> int:
        return sequence.prompt


@dataclass(frozen=True)
class Swap:
    """Copy the cache to the host and back; the step waits for the copy.

    Source: Kwon et al. (2023), section 4.5.
    Left out: copies that overlap with computing; an end of the host's memory.
    """

    bytes_per_token: float
    link_bytes_per_s: float  # B/s, one direction

    def drop(self, sequence: Sequence) -> int:
        sequence.swapped, sequence.cached = sequence.cached, 0
        return self._fs(sequence.swapped)

    def back(self, sequence: Sequence) -> int:
        sequence.cached, sequence.swapped = sequence.swapped, 0
        return self._fs(sequence.cached)

    def prefill(self, sequence: Sequence) -> int:
        return sequence.swapped if sequence.made else sequence.prompt

    def _fs(self, tokens: int) -> int:
        return round(tokens * self.bytes_per_token / self.link_bytes_per_s * SECOND)


@dataclass(frozen=True)
class Preemption:
    """Who is preempted, how it is restored, where it waits.

    victim   newest, oldest or largest; or a function of the candidates
    restore  Recompute(), Replay() or Swap(...)
    to_head  back to the head of the queue, or to its tail
    guard    steps that a sequence runs after each admission before it can be a victim. When
             memory is short and everybody is protected, nobody is

    Raises ValueError for arguments of the wrong kind, and for a negative guard.
    """

    victim: Victim = newest
    restore: Restore = field(default_factory=Recompute)
    to_head: bool = True
    guard: int = 0

    def __post_init__(self):
        takes(1, "a function of the candidates, such as newest", victim=self.victim)
        members("drop back prefill", "Recompute()", restore=self.restore)
        whole(0, guard=self.guard)

    def unguarded(self, running: list[Sequence]) -> list[Sequence]:
        """Those that have run for long enough."""
        return [s for s in running if s.steps >= self.guard]

    def choose(self, running: list[Sequence]) -> Sequence:
        """Who goes when memory is short."""
        return self.victim(self.unguarded(running) or running)
