"""The raw public traces, for those who have them."""

from pathlib import Path

import pytest

from servesim.workload import Trace, read_trace

RAW = Path(__file__).parents[2] / "shared" / "data"


def raw(name: str) -> Trace:
    """The trace of that name; skips the test, saying so, where it is absent."""
    path = next(RAW.glob(f"{name}.*"), None)
    if path is None:
        pytest.skip(f"the public trace {name} is not in {RAW}: see data/README.md for its address")
    return read_trace(path)
