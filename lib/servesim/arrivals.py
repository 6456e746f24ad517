"""When requests come: gaps of any burstiness, ramps, and users who wait for their answer.

Each draws from a stream of its own, so that one seed may serve lengths and arrivals alike.
"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from servesim.checks import above, at_least, whole
from servesim.workload import Request, Trace


def gamma(*, count: int, rate_per_s: float, cv: float = 1.0, seed: int) -> np.ndarray:
    """Arrival times (s) whose gaps follow a Gamma distribution of mean 1 / rate.

    cv  coefficient of variation of the gaps: 0 is a metronome, 1 is Poisson, more is bursts

        shape = 1 / cv^2,  scale = cv^2 / rate

    Raises ValueError for arguments out of range.

    >>> gamma(count=3, rate_per_s=2, cv=0, seed=1).tolist()
    [0.5, 1.0, 1.5]
    """
    whole(1, count=count)
    at_least(0, cv=cv)
    above(0, rate_per_s=rate_per_s)
    if cv == 0:
        return np.arange(1, count + 1) / rate_per_s
    rng = np.random.default_rng((seed, 2))
    return rng.gamma(1 / cv**2, cv**2 / rate_per_s, count).cumsum()


def ramp(*, rates_per_s: Sequence[float], times_s: Sequence[float], seed: int) -> np.ndarray:
    """Poisson arrivals (s) whose rate goes in straight lines through the given points.

    times_s      moments, rising, the first is 0
    rates_per_s  requests per second at these moments

    By thinning: candidates at the highest rate, each kept with chance rate(t) / highest.

    Source: Lewis and Shedler (1979), doi 10.1002/nav.3800260304.
    Raises ValueError for points that do not pair, times that do not rise, and negative rates.

    >>> times = ramp(rates_per_s=[0, 20], times_s=[0, 100], seed=1)
    >>> bool((times < 50).sum() * 2 < (times >= 50).sum())   # a quarter comes in the first half
    True
    """
    times, rates = np.asarray(times_s, dtype=float), np.asarray(rates_per_s, dtype=float)
    if times.shape != rates.shape or times.size < 2 or times[0] != 0 or (np.diff(times) <= 0).any():
        raise ValueError(f"times_s must rise from 0, one for each rate, got {list(times_s)}")
    if not (rates >= 0).all() or not 0 < rates.max() < float("inf"):
        raise ValueError(f"rates_per_s must be >= 0 and not all 0, got {list(rates_per_s)}")
    rng, highest = np.random.default_rng((seed, 3)), rates.max()
    candidates = np.sort(rng.uniform(0, times[-1], rng.poisson(highest * times[-1])))
    kept = rng.random(len(candidates)) < np.interp(candidates, times, rates) / highest
    return candidates[kept]


def at(times_s: Iterable[float], lengths: Trace) -> Trace:
    """The requests of a trace, in its order, at other times; surplus times or requests go.

    >>> from servesim.workload import draw
    >>> len(at([0.0, 1.0], draw(count=5, seed=1)))
    2
    """
    times = np.sort(np.fromiter(times_s, dtype=float))[: len(lengths)]
    count = len(times)
    blocks = None if lengths.blocks is None else lengths.blocks[:count]
    return Trace(times, lengths.prompt_tokens[:count], lengths.output_tokens[:count], blocks)


class ClosedLoop:
    """`users` users: each sends a request, waits for its end, thinks, and sends the next.

    Give the engine `first` as requests and `next` as `follow`. The lengths are dealt from `lengths`
    in order, whoever asks; when they are used up, nobody sends any more.

    think_s  mean of the exponentially distributed pause, in s; 0: none

    >>> from servesim.workload import draw
    >>> loop = ClosedLoop(draw(count=5, seed=1), users=2, think_s=0, seed=1)
    >>> len(loop.first), loop.next(0, 9.5).arrival_s
    (2, 9.5)
    """

    def __init__(self, lengths: Iterable[Request], *, users: int, think_s: float, seed: int):
        whole(1, users=users)
        at_least(0, think_s=think_s)
        self._lengths = iter(lengths)
        rng = np.random.default_rng((seed, 4))
        self._think_s: Callable[[], float] = lambda: float(rng.exponential(think_s))
        sent = (self.next(i, 0.0) for i in range(users))
        self.first = [request for request in sent if request]

    def next(self, index: int, now_s: float) -> Request | None:
        """The request that follows one that ended at `now_s`."""
        request = next(self._lengths, None)
        return request and request._replace(arrival_s=now_s + self._think_s())
