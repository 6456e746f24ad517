"""One replica: a clock, a queue and a loop."""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from servesim.checks import at_least
from servesim.workload import Request

# (new tokens, contexts of the sequences that decode, prompts that are prefilled) -> s
StepTime = Callable[[int, list[int], list[int]], float]


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What happened: one entry for each request, in order of arrival, and one for each step."""

    arrival_s: np.ndarray
    ttft_s: np.ndarray  # from arrival to token 1; NaN where refused
    finish_s: np.ndarray  # when the last token came out; NaN where refused
    refused: np.ndarray  # bool

    time_s: np.ndarray  # when the step began
    duration_s: np.ndarray
    running: np.ndarray  # sequences in the step
    waiting: np.ndarray  # requests left in the queue while it ran
    cache_tokens_reserved: np.ndarray  # tokens promised to the sequences in the step
    cache_tokens_used: np.ndarray  # tokens cached when it ended
    new_tokens: np.ndarray  # prompt tokens prefilled + sequences decoded


@dataclass(slots=True, eq=False)
class _Sequence:
    """A request in flight: it makes one token in every step from its first to its last."""

    index: int  # of its request
    arrival_s: float
    prompt: int
    output: int
    first: int | None = None
    last: int | None = None

    @property
    def reserved(self) -> int:
        return self.prompt + self.output


def run(
    requests: Iterable[Request],
    *,
    step_s: StepTime,
    cache_tokens: int,
    slots: int,
    queue: int | None = None,
) -> Run:
    """Serve `requests` to the end with continuous batching, first come, first served.

    A request is admitted between two steps, when a slot is free and its whole prompt and output
    fit in what is left of the cache. Its first step computes the prompt and yields token 1, beside
    the others' decodes. A request is refused on arrival when it could never fit, or when it finds
    `queue` requests waiting.

    step_s        seconds of a step: f(new tokens, contexts that decode, prompts)
    cache_tokens  tokens that the cache holds
    slots         sequences in one step
    queue         requests that may wait; None: any number. At least 1: every request waits until
                  the next step begins

    Source: Yu et al. (2022), Orca: iteration-level scheduling with reservation.
    Left out: blocks, preemption, chunked prefill, shared prefixes, the time to plan a step.
    Raises ValueError for arguments out of range, a request without prompt or output, and a
    step that does not take a positive time.

    >>> r = run([Request(0, 8, 3)], step_s=lambda n, contexts, prompts: 1, cache_tokens=64, slots=4)
    >>> r.ttft_s.tolist(), r.finish_s.tolist(), r.cache_tokens_used.tolist()
    ([1.0], [3.0], [8, 9, 10])
    """
    at_least(1, cache_tokens=cache_tokens, slots=slots, queue=1 if queue is None else queue)
    requests = sorted(requests, key=lambda request: request.arrival_s)
    _check(requests)
    ttft_s, finish_s = np.full((2, len(requests)), np.nan)
    arriving = deque(_Sequence(i, *request) for i, request in enumerate(requests))
    waiting, running, steps = deque(), [], []
    reserved, now_s = 0, 0.0

    while arriving or waiting or running:
        # arrivals
        while arriving and arriving[0].arrival_s <= now_s:
            sequence = arriving.popleft()
            room = queue is None or len(waiting) < queue
            if room and sequence.reserved <= cache_tokens:
                waiting.append(sequence)

        # plan
        step = len(steps)
        contexts = [s.prompt + step - s.first - 1 for s in running]
        admitted = []
        while waiting and len(running) < slots and reserved + waiting[0].reserved <= cache_tokens:
            sequence = waiting.popleft()
            sequence.first, sequence.last = step, step + sequence.output - 1
            reserved += sequence.reserved
            admitted.append(sequence)
            running.append(sequence)
        if not running:
            now_s = arriving[0].arrival_s if arriving else now_s  # idle until the next arrival
            continue

        # clock
        prompts = [s.prompt for s in admitted]
        new_tokens = len(contexts) + sum(prompts)
        duration_s = step_s(new_tokens, contexts, prompts)
        if not 0 < duration_s < float("inf"):
            raise ValueError(f"step_s must give finite seconds > 0, got {duration_s}")
        used = sum(contexts) + new_tokens
        steps.append((now_s, duration_s, len(running), len(waiting), reserved, used, new_tokens))
        now_s += duration_s

        # account
        for sequence in admitted:
            ttft_s[sequence.index] = now_s - sequence.arrival_s

        # retire
        for sequence in [s for s in running if s.last == step]:
            finish_s[sequence.index] = now_s
            reserved -= sequence.reserved
            running.remove(sequence)

    arrival_s = np.array([request.arrival_s for request in requests], dtype=float)
    columns = np.array(steps).reshape(-1, 7).T
    return Run(
        arrival_s, ttft_s, finish_s, np.isnan(finish_s), *columns[:2], *columns[2:].astype(int)
    )


def _check(requests: list[Request]) -> None:
    for i, request in enumerate(requests):
        try:
            at_least(1, prompt_tokens=request.prompt_tokens, output_tokens=request.output_tokens)
            at_least(0, arrival_s=request.arrival_s)
        except ValueError as error:
            raise ValueError(f"request {i}: {error}") from None
