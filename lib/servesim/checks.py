"""The checks of arguments that every module needs: each names the argument, what is allowed, what
was given."""

from collections.abc import Collection
from inspect import signature
from numbers import Integral, Real


def at_least(least: float, **values: float) -> None:
    """Raise ValueError unless each value is a number and least <= value < infinity.

    >>> at_least(1, batch=0)
    Traceback (most recent call last):
    ValueError: batch must be a number of at least 1 and finite, got 0
    """
    for name, value in values.items():
        if not (isinstance(value, Real) and least <= value < float("inf")):
            raise ValueError(
                f"{name} must be a number of at least {least} and finite, got {value!r}"
            )


def above(limit: float, **values: float) -> None:
    """Raise ValueError unless each value is a number and limit < value < infinity."""
    for name, value in values.items():
        if not (isinstance(value, Real) and limit < value < float("inf")):
            raise ValueError(f"{name} must be a number above {limit} and finite, got {value!r}")


def up_to_one(**values: float) -> None:
    """Raise ValueError unless each value is a number and 0 < value <= 1."""
    for name, value in values.items():
        if not (isinstance(value, Real) and 0 < value <= 1):
            raise ValueError(f"{name} must be a number above 0 and at most 1, got {value!r}")


def whole(least: int, **values: int) -> None:
    """Raise ValueError unless each value is an int, Python's or numpy's, and least <= value.

    >>> whole(1, slots=2.5)
    Traceback (most recent call last):
    ValueError: slots must be a whole number (int) of at least 1, got 2.5
    """
    for name, value in values.items():
        if not (isinstance(value, Integral) and least <= value):
            raise ValueError(
                f"{name} must be a whole number (int) of at least {least}, got {value!r}"
            )


def kind(wanted: type, example: str, **values: object) -> None:
    """Raise ValueError, with an example, unless each value is a `wanted`."""
    for name, value in values.items():
        if not isinstance(value, wanted):
            raise ValueError(
                f"{name} must be of the class {wanted.__name__}, such as {example}, got {value!r}"
            )


def members(names: str, example: str, **values: object) -> None:
    """Raise ValueError, with what is missing, unless each value is an object with these members.

    >>> members("first admitted", "FCFS()", order="sjf")
    Traceback (most recent call last):
    ValueError: order must be an object with first, admitted, such as FCFS(), got 'sjf'
    """
    for name, value in values.items():
        missing = [n for n in names.split() if not hasattr(value, n)]
        if missing or isinstance(value, type):
            wanted = ", ".join(missing or names.split())
            raise ValueError(
                f"{name} must be an object with {wanted}, such as {example}, got {value!r}"
            )


def takes(arguments: int, wanted: str, **functions: object) -> None:
    """Raise ValueError, with what is wanted, unless each can be called with so many arguments."""
    for name, function in functions.items():
        try:
            signature(function).bind(*range(arguments))
        except TypeError:
            raise ValueError(f"{name} must be {wanted}, got {function!r}") from None
        except ValueError:
            pass  # a function in C, such as operator.attrgetter's, may not tell


def fields(record: object, needed: Collection[str], allowed: Collection[str]) -> None:
    """Raise ValueError unless a record has all `needed` fields, and none but the `allowed`."""
    if not isinstance(record, dict):
        raise ValueError(f"must be an object with the fields {sorted(needed)}, got {record!r}")
    if missing := sorted(set(needed) - set(record)):
        raise ValueError(f"the fields {missing} are missing")
    if extra := sorted(set(record) - set(allowed)):
        raise ValueError(f"the fields {extra} must be among {sorted(allowed)}")
