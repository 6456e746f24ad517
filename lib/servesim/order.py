"""Who goes first. A policy sees the queue and what a request says of itself.

A policy has three methods:

first(waiting, now)     the sequence that is admitted next; of equals the first in the queue
overtakes(one, other)   may `one`, which waits, push out `other`, which runs?
admitted(sequence)      is called when a sequence is admitted

It changes neither the queue nor a sequence. Of a sequence it may read (times in fs, as `now`; the
names are not those of a Request; sequence.py has the rest):

index, group            its place in order of arrival, its class of users
arrival, admitted       when it came; when it was first admitted, None before that
prompt, output          tokens; a policy that looks at output is an oracle, others predict it
made, known             tokens delivered so far; prompt + made
preempted               times that it was preempted
"""

from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping
from collections.abc import Sequence as Sequenced

import numpy as np

from servesim.checks import above, at_least, kind, takes
from servesim.clock import ticks
from servesim.sequence import Sequence


class Prediction:
    """Predicts how many tokens a request will make: output times exp(sigma z), z normal.

    sigma  0: exact. 1: within a factor of e two times in three

    The error belongs to the request (its index and the seed), and stays.

    >>> Prediction(sigma=0)(Sequence(0, 0, prompt=5, output=80))
    80.0
    """

    def __init__(self, *, sigma: float = 0.0, seed: int = 0):
        at_least(0, sigma=sigma)
        self.sigma = sigma
        self.rng = np.random.default_rng((seed, 1))  # not the stream that drew the lengths
        self.factors = np.ones(0)

    def __call__(self, sequence: Sequence) -> float:
        while sequence.index >= len(self.factors):  # draws come in a fixed order
            more = np.exp(self.sigma * self.rng.standard_normal(1024))
            self.factors = np.concatenate([self.factors, more])
        return sequence.output * float(self.factors[sequence.index])


class FCFS:
    """First come, first served; a preempted sequence stands where it was put back."""

    def first(self, waiting: deque[Sequence], now: int) -> Sequence:
        return waiting[0]

    def overtakes(self, one: Sequence, other: Sequence) -> bool:
        return False

    def admitted(self, sequence: Sequence) -> None:
        pass


class ShortestFirst:
    """The request with the smallest size, by default its exact output (SJF).

    Source: on predictions, Fu et al. (2024), arXiv:2408.15792.
    """

    def __init__(self, size: Callable[[Sequence], float] | None = None):
        self.size = size or Prediction()
        takes(1, "a function of a sequence, such as Prediction()", size=self.size)

    def first(self, waiting: deque[Sequence], now: int) -> Sequence:
        return min(waiting, key=self.size)

    def overtakes(self, one: Sequence, other: Sequence) -> bool:
        return False

    def admitted(self, sequence: Sequence) -> None:
        pass


class ShortestRemaining:
    """The smallest rest, and it pushes out a running one whose rest is larger (SRPT).

    Source: Schrage (1968), doi 10.1287/opre.16.3.687.
    """

    def __init__(self, size: Callable[[Sequence], float] | None = None):
        self.size = size or Prediction()
        takes(1, "a function of a sequence, such as Prediction()", size=self.size)

    def rest(self, sequence: Sequence) -> float:
        return self.size(sequence) - sequence.made

    def first(self, waiting: deque[Sequence], now: int) -> Sequence:
        return min(waiting, key=self.rest)

    def overtakes(self, one: Sequence, other: Sequence) -> bool:
        return self.rest(one) < self.rest(other)

    def admitted(self, sequence: Sequence) -> None:
        pass


class StrictPriority:
    """The group with the highest priority, always.

    priorities  for each group, a number: higher goes first
    preemptive  does it also push out running ones?

    Raises ValueError for a group without a priority.
    """

    def __init__(
        self, priorities: Mapping[int, float] | Sequenced[float], *, preemptive: bool = False
    ):
        kind(Collection, "[2, 1] or {0: 2, 7: 1}", priorities=priorities)
        self.priorities, self.preemptive = priorities, preemptive

    def first(self, waiting: deque[Sequence], now: int) -> Sequence:
        try:
            return max(waiting, key=lambda s: self.priorities[s.group])
        except LookupError:
            raise _without("priorities", self.priorities, waiting) from None

    def overtakes(self, one: Sequence, other: Sequence) -> bool:
        return self.preemptive and self.priorities[one.group] > self.priorities[other.group]

    def admitted(self, sequence: Sequence) -> None:
        pass


class FairShare:
    """The group that has had least for its weight; whoever waits too long goes before all.

    weights  for each group, a number above 0
    cost     what an admission costs its group: 1 is weighted round robin over requests
    bound_s  s from arrival after which a request goes first, the oldest before the others

    Source: virtual time, as in fair queueing; for language models Sheng et al. (2024),
    arXiv:2401.00588, who count tokens.
    Left out: a group that was away comes back with the least, and may catch up at once.
    Raises ValueError for weights that are not above 0, and for a group without one.
    """

    def __init__(
        self,
        weights: Mapping[int, float] | Sequenced[float],
        *,
        cost: Callable[[Sequence], float] = lambda sequence: 1,
        bound_s: float | None = None,
    ):
        kind(Collection, "[3, 1] or {0: 3, 7: 1}", weights=weights)
        for weight in weights.values() if isinstance(weights, Mapping) else weights:
            above(0, weights=weight)
        takes(1, "a function of a sequence", cost=cost)
        at_least(0, bound_s=0 if bound_s is None else bound_s)
        self.weights, self.cost = weights, cost
        self.bound = None if bound_s is None else ticks(bound_s)
        self.served = Counter()

    def first(self, waiting: deque[Sequence], now: int) -> Sequence:
        oldest = min(waiting, key=lambda s: s.arrival)
        if self.bound is not None and now - oldest.arrival > self.bound:
            return oldest
        try:
            return min(waiting, key=lambda s: self.served[s.group] / self.weights[s.group])
        except LookupError:
            raise _without("weights", self.weights, waiting) from None

    def overtakes(self, one: Sequence, other: Sequence) -> bool:
        return False

    def admitted(self, sequence: Sequence) -> None:
        self.served[sequence.group] += self.cost(sequence)


def _without(name: str, table: object, waiting: deque[Sequence]) -> ValueError:
    groups = sorted({sequence.group for sequence in waiting})
    return ValueError(f"{name} must hold a number for each of the groups {groups}, got {table!r}")
