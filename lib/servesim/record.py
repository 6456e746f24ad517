"""What a run leaves behind: arrays over requests, over steps and over tokens."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from servesim.clock import SECOND
from servesim.sequence import Sequence


class Step(NamedTuple):
    """One step as the engine notes it."""

    time: int  # fs when it began
    duration: int  # fs
    running: int
    working: int
    waiting: int
    reserved: int
    used: int
    decodes: int
    prompt_tokens: int
    preempted: int
    asked: int
    found: int


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What happened, as arrays: `pandas.DataFrame({"ttft": run.ttft_s, ...})` takes them.

    One entry for each request, in order of arrival (in a closed loop: as they were sent); one for
    each step; and one for each token delivered.
    """

    arrival_s: np.ndarray
    admitted_s: np.ndarray  # when the first step that held it began; NaN where refused
    ttft_s: np.ndarray  # from arrival to token 1; NaN where refused
    finish_s: np.ndarray  # when the last token came out; NaN where refused
    refused: np.ndarray  # bool
    prompt_tokens: np.ndarray
    output_tokens: np.ndarray
    group: np.ndarray
    found_tokens: np.ndarray  # prompt tokens found in the cache, over all its admissions
    preemptions: np.ndarray  # times it was preempted

    time_s: np.ndarray  # when the step began
    duration_s: np.ndarray
    running: np.ndarray  # slots taken
    working: np.ndarray  # sequences that computed something: fewer where a batch waits
    waiting: np.ndarray  # requests left in the queue while it ran
    cache_tokens_reserved: np.ndarray  # tokens set aside, or in blocks that somebody holds
    cache_tokens_used: np.ndarray  # tokens cached when it ended; a shared block counts once
    decodes: np.ndarray  # sequences that gained one token
    prefilled: np.ndarray  # prompt tokens computed
    new_tokens: np.ndarray  # prefilled + decodes
    preempted: np.ndarray  # sequences preempted before it began
    asked_tokens: np.ndarray  # tokens of the sequences admitted to it ...
    hit_tokens: np.ndarray  # ... and those of them that were found in the cache

    token_request: np.ndarray  # whose token it is
    token_s: np.ndarray  # when it came out

    @property
    def done(self) -> np.ndarray:
        """Requests that were served."""
        return ~self.refused


def seconds(times: Iterable[int | None]) -> np.ndarray:
    """fs to s; None becomes NaN."""
    return np.array(list(times), dtype=float) / SECOND


def record(sequences: list[Sequence], steps: list[Step], delivered: list[list[int]]) -> Run:
    """The arrays of a run. delivered: for each step the requests that gained a token."""
    first = [None if s.first is None else s.first - s.arrival for s in sequences]
    finish = seconds([s.finish for s in sequences])
    rows = {
        name: np.array([getattr(s, name) for s in sequences], dtype=int)
        for name in ("prompt", "output", "group", "found", "preempted")
    }
    column = dict(zip(Step._fields, zip(*steps, strict=True) if steps else [()] * 12, strict=True))
    count = {name: np.array(column[name], dtype=int) for name in Step._fields[2:]}
    ends_s = seconds([step.time + step.duration for step in steps])
    return Run(
        arrival_s=seconds([s.arrival for s in sequences]),
        admitted_s=seconds([s.admitted for s in sequences]),
        ttft_s=seconds(first),
        finish_s=finish,
        refused=np.isnan(finish),
        prompt_tokens=rows["prompt"],
        output_tokens=rows["output"],
        group=rows["group"],
        found_tokens=rows["found"],
        preemptions=rows["preempted"],
        time_s=seconds(column["time"]),
        duration_s=seconds(column["duration"]),
        running=count["running"],
        working=count["working"],
        waiting=count["waiting"],
        cache_tokens_reserved=count["reserved"],
        cache_tokens_used=count["used"],
        decodes=count["decodes"],
        prefilled=count["prompt_tokens"],
        new_tokens=count["decodes"] + count["prompt_tokens"],
        preempted=count["preempted"],
        asked_tokens=count["asked"],
        hit_tokens=count["found"],
        token_request=np.array([i for step in delivered for i in step], dtype=int),
        token_s=np.repeat(ends_s, [len(step) for step in delivered]),
    )
