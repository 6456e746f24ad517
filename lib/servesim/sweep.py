"""One function over a grid of settings, on as many cores as an executor has."""

from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from itertools import product
from typing import TypeVar

from servesim.progress import counter

Result = TypeVar("Result")


def grid(**values: Iterable) -> list[dict]:
    """All combinations of the given values, the last one changing fastest.

    >>> grid(slots=[1, 2], load=[0.5])
    [{'slots': 1, 'load': 0.5}, {'slots': 2, 'load': 0.5}]
    """
    return [dict(zip(values, point, strict=True)) for point in product(*values.values())]


def sweep(
    function: Callable[..., Result],
    points: Iterable[dict],
    *,
    executor: Executor | None = None,
    progress: bool = False,
) -> list[Result]:
    """function(**point) for each point, in their order.

    executor  any concurrent.futures.Executor (processes, threads, a Dask client's get_executor());
              None: one after the other, here
    progress  show a bar (needs the package tqdm)

    >>> sweep(lambda a, b: a + b, grid(a=[1, 2], b=[10]))
    [11, 12]
    """
    points = list(points)
    if executor is None:
        results = (function(**point) for point in points)
    else:
        results = (f.result() for f in [executor.submit(function, **point) for point in points])
    done, kept = counter(len(points), progress), []
    for result in results:
        kept.append(result)
        done(1)
    return kept
