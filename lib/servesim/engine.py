"""One replica: a clock, a queue and a loop."""

from collections.abc import Callable, Iterable
from numbers import Integral

from servesim.batching import Mixed
from servesim.cache import Paged
from servesim.checks import members, takes, whole
from servesim.clock import Clock, Work, ticks
from servesim.contiguous import Anywhere, Contiguous
from servesim.order import FCFS
from servesim.preemption import Preemption
from servesim.progress import counter
from servesim.record import Run, record
from servesim.replica import Batching, Follow, Order, Replica
from servesim.workload import Request, listed

# (new tokens, contexts of the sequences that decode, prompts that are prefilled) -> s
StepTime = Callable[[int, list[int], list[int]], float]


def serve(
    requests: Iterable[Request],
    *,
    clock: Clock,
    cache: Paged | Contiguous,
    slots: int,
    batching: Batching | None = None,
    order: Order | None = None,
    preemption: Preemption | None = None,
    queue: int | None = None,
    follow: Follow | None = None,
    progress: bool = False,
) -> Run:
    """Serve `requests` to the end on one replica.

    Before each step the policies decide what it holds. A sequence whose last known token is
    computed in the step gains a token when it ends: token 1 comes out of the prompt's prefill.
    A request is refused on arrival when it could never fit, or when it finds `queue` waiting.

    clock       whole fs of a step, from the `Work` that it holds
    cache       a new, empty one
    slots       sequences in one step
    batching    what a step holds; unless given Mixed(): prompts join the decodes
    order       who is admitted first; unless given FCFS()
    preemption  what happens when the cache is full; unless given Preemption(): the newest goes
                to the head of the queue and is rebuilt by one prefill
    queue       requests that may wait; None: any number. At least 1: every request waits until
                the next step begins
    follow      for a closed loop: called when a request ends or is refused
    progress    show a bar of the requests that ended (needs the package tqdm)

    Source: Yu et al. (2022), Orca; Kwon et al. (2023), PagedAttention; vLLM's schedulers.
    Left out: the time to plan a step; several replicas.
    Raises ValueError for arguments of the wrong kind or out of range, requests without prompt or
    output, and steps that take no time or no whole fs; RuntimeError, which says why, for a run
    that cannot progress.

    >>> from servesim.clock import by_hand
    >>> clock = by_hand(step_s=0.020, prompt_token_s=0.0005)
    >>> r = serve([Request(0, 200, 3)], clock=clock, cache=Paged(blocks=64), slots=4)
    >>> r.ttft_s.tolist(), r.finish_s.tolist(), r.time_s.tolist()
    ([0.1], [0.14], [0.0, 0.1, 0.12])
    """
    whole(1, slots=slots, queue=1 if queue is None else queue)
    requests = listed(requests)
    policies = batching or Mixed(), order or FCFS(), preemption or Preemption()
    _check(clock, cache, *policies, follow)
    follow = _counting(follow, counter(len(requests), progress))
    replica = Replica(requests, cache, slots, *policies, queue, follow)
    steps, delivered = [], []
    while replica.busy:
        replica.arrivals()

        replica.plan()
        if not replica.shares:
            replica.idle()
            continue

        work = replica.work()
        duration = clock(work) + replica.moving
        if not (isinstance(duration, Integral) and duration > 0):
            raise ValueError(
                f"clock must give whole femtoseconds (an int above 0; clock.ticks turns seconds "
                f"into them), got {duration!r}"
            )
        steps.append(replica.step(work, duration))
        replica.now += duration

        delivered.append(replica.account())
        replica.retire()
    return record(replica.sequences, steps, delivered)


def _check(clock, cache, batching, order, preemption, follow) -> None:
    """Each has what the loop will ask of it."""
    takes(
        1, "a function of one step's Work, such as clock.of(...) or clock.by_hand(...)", clock=clock
    )
    members(
        "block capacity reserved used possible found start grow end",
        "Paged(blocks=100)",
        cache=cache,
    )
    members("room whole alone together padded", "Mixed()", batching=batching)
    members("first overtakes admitted", "FCFS()", order=order)
    members("unguarded choose restore to_head", "Preemption()", preemption=preemption)
    if follow is not None:
        takes(2, "a function of index and s that gives a Request or None", follow=follow)


def _counting(follow: Follow | None, done: Callable[[int], object]) -> Follow:
    """`follow`, when `done` has been told of one more."""

    def counted(index: int, now_s: float) -> Request | None:
        done(1)
        return follow and follow(index, now_s)

    return counted


def run(
    requests: Iterable[Request],
    *,
    step_s: StepTime,
    cache_tokens: int,
    slots: int,
    queue: int | None = None,
) -> Run:
    """`serve` with prompt and output reserved on admission, as the first continuous engine did.

    A request is admitted between two steps, when a slot is free and its whole prompt and output
    fit in what is left of the cache. Its first step computes the prompt and yields token 1, beside
    the others' decodes.

    step_s        seconds of a step: f(new tokens, contexts that decode, prompts)
    cache_tokens  tokens that the cache holds
    slots, queue  as `serve` takes them

    Source: Yu et al. (2022), Orca: iteration-level scheduling with reservation.
    Left out: blocks, preemption, chunked prefill, shared prefixes.
    Raises ValueError as `serve`, and for a step that does not take a positive time.

    >>> r = run([Request(0, 8, 3)], step_s=lambda n, contexts, prompts: 1, cache_tokens=64, slots=4)
    >>> r.ttft_s.tolist(), r.finish_s.tolist(), r.cache_tokens_used.tolist()
    ([1.0], [3.0], [8, 9, 10])
    """
    whole(1, cache_tokens=cache_tokens)
    takes(
        3, "a function of new tokens, contexts and prompts, such as costs.clock(...)", step_s=step_s
    )

    def clock(work: Work) -> int:
        duration_s = step_s(work.new_tokens, work.contexts, [c.tokens for c in work.chunks])
        if not 0 < duration_s < float("inf"):
            raise ValueError(f"step_s must give finite seconds > 0, got {duration_s}")
        return ticks(duration_s)

    cache = Contiguous(Anywhere(cache_tokens))
    return serve(requests, clock=clock, cache=cache, slots=slots, queue=queue)
