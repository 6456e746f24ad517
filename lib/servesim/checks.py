"""The one check of arguments that every module needs."""


def at_least(least: float, **values: float) -> None:
    """Raise ValueError, with name and value, unless least <= value < infinity for each value.

    >>> at_least(1, batch=0)
    Traceback (most recent call last):
    ValueError: batch must be a finite number >= 1, got 0
    """
    for name, value in values.items():
        if not least <= value < float("inf"):
            raise ValueError(f"{name} must be a finite number >= {least}, got {value}")
