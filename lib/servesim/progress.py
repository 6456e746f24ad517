"""A bar for runs that take long, where it is asked for."""

from collections.abc import Callable


def counter(total: int, shown: bool) -> Callable[[int], object]:
    """A function that is told how many more are done; `shown` moves a bar (needs tqdm)."""
    if not shown:
        return lambda more: None
    from tqdm import tqdm

    return tqdm(total=total).update
