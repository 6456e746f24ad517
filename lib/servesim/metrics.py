"""The words for speed, computed from a `Run`. Arrays have one entry for each request, NaN where
the word has no meaning: a refused request, or the pace of a single token. What `fast.serve` does
not record raises ValueError."""

from collections.abc import Sequence

import numpy as np

from servesim.record import Run


def _needs(column: str, run: Run) -> None:
    """Raise ValueError unless this column was recorded."""
    if not hasattr(run, column):
        raise ValueError(
            f"run must have {column}, as the Run of engine.serve does (fast.serve keeps neither "
            f"steps nor tokens), got an object of the class {type(run).__name__}"
        )


def wait_s(run: Run) -> np.ndarray:
    """Seconds from arrival until the first step that holds the request begins."""
    _needs("admitted_s", run)
    return run.admitted_s - run.arrival_s


def end_to_end_s(run: Run) -> np.ndarray:
    """Seconds from arrival to the last token."""
    return run.finish_s - run.arrival_s


def tpot_s(run: Run) -> np.ndarray:
    """Time per output token: (last token - token 1) / (tokens - 1), in s."""
    steps = np.where(run.output_tokens > 1, run.output_tokens - 1, np.nan)
    return (run.finish_s - run.arrival_s - run.ttft_s) / steps


def itl_s(run: Run) -> np.ndarray:
    """Inter-token latencies: seconds between a token and the next of the same request.

    One entry for each such pair, ordered by request, then by time. Their mean over tokens is not
    the mean of `tpot_s` over requests: long replies count more.
    """
    _needs("token_s", run)
    order = np.lexsort((run.token_s, run.token_request))
    same = np.diff(run.token_request[order]) == 0
    return np.diff(run.token_s[order])[same]


def user_tokens_per_s(run: Run) -> np.ndarray:
    """Tokens/s as one user sees them: output / end to end."""
    return run.output_tokens / end_to_end_s(run)


def span_s(run: Run) -> float:
    """Seconds from the first arrival to the end of the last step; 0.0 when nothing was served."""
    _needs("time_s", run)
    if not len(run.time_s):
        return 0.0
    return float(run.time_s[-1] + run.duration_s[-1] - run.arrival_s.min())


def tokens_per_s(run: Run) -> float:
    """Output tokens of all requests per second."""
    span = span_s(run)
    return len(run.token_s) / span if span else 0.0


def meets(
    run: Run,
    *,
    ttft_s: float | None = None,
    tpot_s: float | None = None,
    end_to_end_s: float | None = None,
) -> np.ndarray:
    """For each request: was it served within every given limit, in s?

    A single token has no pace, so it meets any tpot_s.
    """
    met = run.done.copy()
    limits = (ttft_s, run.ttft_s), (tpot_s, _tpot_s(run)), (end_to_end_s, _end_to_end_s(run))
    for limit, values in limits:
        if limit is not None:
            met &= ~(values > limit)
    return met


_tpot_s, _end_to_end_s = tpot_s, end_to_end_s  # `meets` has arguments of these names


def goodput_per_s(run: Run, **limits: float) -> float:
    """Requests that meet every limit (see `meets`) per second.

    Source: Zhong et al. (2024), DistServe, arXiv:2401.09670.
    """
    span = span_s(run)
    return float(meets(run, **limits).sum() / span) if span else 0.0


def percentile(values: np.ndarray, percent: float) -> float:
    """Nearest rank: the smallest value that at least `percent` % of them do not exceed.

    NaN is left out. Raises ValueError when nothing is left, and for percent outside 0 to 100.

    >>> batches = np.array([4, 4, 5, 4, 32, 4, 4, 5, 4, 4])
    >>> percentile(15 + batches, 50), percentile(15 + batches, 99)
    (19.0, 47.0)
    """
    values = values[~np.isnan(values)]
    if not len(values):
        raise ValueError("values must hold at least one number")
    if not 0 <= percent <= 100:
        raise ValueError(f"percent must be from 0 to 100, got {percent}")
    return float(np.percentile(values, percent, method="inverted_cdf"))


def hit_rate(run: Run) -> float:
    """Share of the admitted tokens that the prefix cache held already."""
    _needs("asked_tokens", run)
    asked = run.asked_tokens.sum()
    return float(run.hit_tokens.sum() / asked) if asked else 0.0


def preemption_rate(run: Run) -> float:
    """Preemptions per request that was served."""
    served = run.done.sum()
    return float(run.preemptions.sum() / served) if served else 0.0


def over_time(run: Run, column: np.ndarray, edges_s: Sequence[float]) -> np.ndarray:
    """Mean of a step's column in each interval between the edges; idle time counts as 0.

    column  such as run.waiting (queue depth), run.running / slots (occupancy) or
            run.cache_tokens_used / capacity (cache utilisation)

    >>> from servesim.clock import by_hand
    >>> from servesim.cache import Paged
    >>> from servesim.engine import serve
    >>> from servesim.workload import Request
    >>> r = serve([Request(0, 1, 2)], clock=by_hand(any_s=1), cache=Paged(blocks=1), slots=1)
    >>> over_time(r, r.running, [0, 1, 4]).tolist()   # two steps of 1 s, then nothing
    [1.0, 0.3333333333333333]
    """
    _needs("time_s", run)
    edges = np.asarray(edges_s, dtype=float)
    area = np.concatenate([[0], np.cumsum(column * run.duration_s)])
    moments = np.column_stack([run.time_s, run.time_s + run.duration_s]).ravel()
    if not len(moments):
        return np.zeros(len(edges) - 1)
    sums = np.column_stack([area[:-1], area[1:]]).ravel()
    return np.diff(np.interp(edges, moments, sums)) / np.diff(edges)


def rate(run: Run, count: np.ndarray, edges_s: Sequence[float]) -> np.ndarray:
    """Events per second in each interval between the edges.

    count  of each step, such as run.preempted or run.new_tokens; they count when it begins
    """
    _needs("time_s", run)
    edges = np.asarray(edges_s, dtype=float)
    return np.histogram(run.time_s, bins=edges, weights=count)[0] / np.diff(edges)


def mean(run: Run, column: np.ndarray) -> float:
    """Mean of a step's column over the time that steps take; idle time does not count."""
    _needs("duration_s", run)
    total = run.duration_s.sum()
    return float((column * run.duration_s).sum() / total) if total else 0.0
