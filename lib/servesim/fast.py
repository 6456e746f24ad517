"""The engine's most common case, for millions of requests: what comes out, without every step.

The results are those of `engine.serve`, to the femtosecond (`leaper.py` says how).
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

import numpy as np

from servesim.checks import at_least, kind, whole
from servesim.clock import SECOND, Linear, ticks
from servesim.leaper import Leaper
from servesim.prefixes import Prefixes
from servesim.progress import counter
from servesim.record import seconds
from servesim.workload import Request, Trace, listed


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
    share: bool = False,
    progress: bool = False,
) -> Served:
    """`engine.serve(requests, cache=Paged(blocks=blocks, block=block), ...)` without its steps.

    budget  tokens in one step: chunked prefill, `Chunked(budget)`; None: `Mixed()`
    share   find prompts' blocks again by their ids, as `Paged(share=True)` does
    progress  show a bar of the requests that were admitted (needs the package tqdm)

    Source: as `engine.serve`.
    Left out: every other policy, sharing together with chunks, and what happens in each step.
    Raises ValueError for arguments of the wrong kind or out of range, requests without prompt or
    output, and `share` with a `budget`.

    >>> from servesim.clock import by_hand
    >>> clock = by_hand(step_s=0.020, prompt_token_s=0.0005)
    >>> served = serve([Request(0, 200, 3)], clock=clock, blocks=64, slots=4)
    >>> served.ttft_s.tolist(), served.finish_s.tolist(), served.steps
    ([0.1], [0.14], 3)
    """
    kind(Linear, "clock.of(...) or clock.by_hand(...)", clock=clock)
    whole(0, **{"clock.fixed (fs)": clock.fixed(1, 0)})
    whole(1, blocks=blocks, block=block, slots=slots, budget=1 if budget is None else budget)
    if share and budget is not None:
        raise ValueError(f"budget must be None when prefixes are shared, got {budget}")
    requests = requests if isinstance(requests, Trace) else listed(requests)
    arrival, prompt, output = _columns(requests)
    prefixes = _prefixes(requests, block) if share else None
    leaper = Leaper(arrival, prompt, output, clock, blocks, block, slots, budget, prefixes)
    done, told = counter(len(arrival), progress), 0
    for admitted in leaper.run():
        done(admitted - told)
        told = admitted
    done(len(arrival) - told)
    first = (None if f is None else f - a for f, a in zip(leaper.first, arrival, strict=True))
    return Served(
        arrival_s=seconds(arrival),
        ttft_s=seconds(first),
        finish_s=seconds(leaper.finish),
        prompt_tokens=prompt,
        output_tokens=output,
        preemptions=np.array(leaper.preemptions, dtype=int),
        steps=leaper.step,
        busy_s=(leaper.now - leaper.idle) / SECOND,
    )


def _columns(requests: Trace | Iterable[Request]) -> tuple[list[int], np.ndarray, np.ndarray]:
    """Arrivals (fs), prompts and outputs, by arrival."""
    if isinstance(requests, Trace):
        arrival_s, prompt = requests.arrival_s, requests.prompt_tokens
        output = requests.output_tokens
    else:
        arrival_s, prompt, output = ([request[i] for request in requests] for i in range(3))
    arrival_s = _checked("arrival_s", arrival_s, "iuf", partial(at_least, 0))
    prompt = _checked("prompt_tokens", prompt, "iu", partial(whole, 1))
    output = _checked("output_tokens", output, "iu", partial(whole, 1))
    order = np.argsort(arrival_s, kind="stable")
    return _ticks(arrival_s[order]), prompt[order].astype(int), output[order].astype(int)


def _ticks(seconds: np.ndarray) -> list[int]:
    """`clock.ticks` of each, and of floats all at once; whole seconds in fs may pass 64 bits."""
    if seconds.dtype.kind != "f":
        return list(map(ticks, seconds.tolist()))
    return list(map(int, np.rint(seconds.astype(float) * SECOND).tolist()))


def _checked(name: str, values, kinds: str, check: Callable[..., None]) -> np.ndarray:
    """The array of values that pass `check`; of these kinds, the extremes speak for all."""
    column = np.array(values)
    extremes = column.size and column.dtype.kind in kinds
    for value in [column.min().item(), column.max().item()] if extremes else values:
        check(**{name: value})
    return column


def _prefixes(requests: Trace | list[Request], block: int) -> Prefixes:
    """The ids of full prompt blocks, by arrival."""
    rows = sorted(requests, key=lambda request: request.arrival_s)
    return Prefixes([row.blocks[: row.prompt_tokens // block] for row in rows])
