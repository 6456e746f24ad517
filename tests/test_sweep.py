"""Sweeps give the same on one core and on many."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest

from servesim import fast
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


def test_progress():
    pytest.importorskip("tqdm", reason="tqdm is not installed")
    assert sweep(steps, grid(slots=[2], seed=[1]), progress=True) == [steps(2, 1)]
