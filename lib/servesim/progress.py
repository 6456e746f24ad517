"""A bar for runs that take long, where it is asked for."""

from collections.abc import Callable


def counter(total: int, shown: bool) -> Callable[[int], object]:
    """A function that is told how many more are done; `shown` moves a bar (needs tqdm).

    Raises ModuleNotFoundError, which says how to install it, for a bar without tqdm.
    """
    if not shown:
        return lambda more: None
    try:
        from tqdm import tqdm
    except ModuleNotFoundError:
        raise ModuleNotFoundError("progress needs the package tqdm: pip install tqdm") from None
    return tqdm(total=total).update
