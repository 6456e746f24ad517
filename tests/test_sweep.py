"""Sweeps give the same on one core and on many."""

import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest

from servesim import engine, fast
from servesim.batching import Static
from servesim.cache import Paged
from servesim.clock import by_hand
from servesim.sweep import grid, sweep
from servesim.workload import draw


def steps(slots, seed):
    traffic = draw(count=50, rate_per_s=5, seed=seed)
    return fast.serve(traffic, clock=by_hand(any_s=0.01), blocks=2000, slots=slots).steps


def test_an_executor_changes_nothing():
    points = grid(slots=[2, 8], seed=[1, 2])
    here = sweep(steps, points)
    assert len(set(here)) > 1
    for pool in ThreadPoolExecutor, ProcessPoolExecutor:
        with pool(2) as executor:
            assert sweep(steps, points, executor=executor) == here


def test_dask():
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    with distributed.Client(processes=False, dashboard_address=None) as client:
        executor = client.get_executor()
        assert sweep(steps, grid(slots=[2], seed=[1]), executor=executor) == [steps(2, 1)]


def test_progress(capfd, monkeypatch):
    """A bar that moves, comes to its end, and changes nothing else."""
    assert sweep(steps, grid(slots=[2], seed=[1]), progress=True) == [steps(2, 1)]
    assert "1/1" in capfd.readouterr().err
    traffic = draw(count=25_000, rate_per_s=500, seed=1)
    settings = dict(clock=by_hand(any_s=0.01), blocks=900_000, slots=1_500)
    bar, plain = (fast.serve(traffic, **settings, progress=shown) for shown in (True, False))
    assert "25000/25000" in capfd.readouterr().err
    assert np.array_equal(bar.finish_s, plain.finish_s)
    told = []
    monkeypatch.setattr(fast, "counter", lambda total, shown: told.append)
    fast.serve(traffic, **settings)
    assert len(told) == 3 and sum(told) == 25_000
    thirty, few = draw(count=30, rate_per_s=5, seed=1), dict(clock=settings["clock"], slots=8)
    engine.serve(thirty, **few, cache=Paged(blocks=9_000), batching=Static(), progress=True)
    assert "30/30" in capfd.readouterr().err
    engine.serve(thirty, **few, cache=Paged(blocks=9_000))
    assert capfd.readouterr().err == ""


def test_progress_says_what_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with pytest.raises(ModuleNotFoundError, match="pip install tqdm"):
        sweep(steps, [], progress=True)
