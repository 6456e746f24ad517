"""Queueing theory: what waits must be, whatever the program."""

import numpy as np
import pytest

from servesim import fast, metrics
from servesim.arrivals import ClosedLoop, at, gamma, ramp
from servesim.batching import PrefillFirst
from servesim.cache import Paged
from servesim.clock import by_hand
from servesim.engine import serve
from servesim.order import Prediction, ShortestFirst
from servesim.workload import Request, Trace, draw

TICK = by_hand(any_s=0.01)  # a step of 10 ms, whatever it holds


def poisson(rate_per_s, outputs, seed):
    count = len(outputs)
    arrivals_s = gamma(count=count, rate_per_s=rate_per_s, seed=seed)
    return Trace(arrivals_s, np.ones(count, dtype=int), np.asarray(outputs))


def wait_s(served, step_s):
    """Seconds from arrival to the start of the first step."""
    return served.ttft_s - step_s


@pytest.mark.parametrize("load", [0.3, 0.6])
def test_m_d_1(load):  # G14: rho s / (2 (1 - rho))
    traffic = poisson(load / 0.2, [20] * 300_000, seed=1)  # 20 steps of 10 ms: s = 0.2
    served = fast.serve(traffic, clock=TICK, blocks=100, slots=1)
    expected = load * 0.2 / (2 * (1 - load))
    # 2 %: G14's; 300,000 correlated waits scatter by 0.5 % at load 0.6
    assert wait_s(served, 0.01).mean() == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("sizes, chances", [((1, 39), (0.5, 0.5)), ((10, 110), (0.9, 0.1))])
def test_m_g_1(sizes, chances):  # Pollaczek-Khinchine: lambda E[S^2] / (2 (1 - rho))
    outputs = np.random.default_rng(2).choice(sizes, 300_000, p=chances)
    mean_s, square = 0.01 * outputs.mean(), (0.01**2 * outputs.astype(float) ** 2).mean()
    rate = 0.6 / mean_s
    served = fast.serve(poisson(rate, outputs, seed=3), clock=TICK, blocks=100, slots=1)
    expected = rate * square / (2 * (1 - 0.6))
    assert wait_s(served, 0.01).mean() == pytest.approx(expected, rel=0.02)  # sampling, as above


def test_prefill_only_pool():  # G14: TTFT = D + R D^2 / (2 (1 - R D))
    count, prompt, rate = 200_000, 400, 3.0
    duration = 0.0005 * prompt
    arrivals_s = gamma(count=count, rate_per_s=rate, seed=4)
    lengths = np.full(count, prompt), np.ones(count, dtype=int)
    clock = by_hand(prompt_token_s=0.0005)
    served = fast.serve(Trace(arrivals_s, *lengths), clock=clock, blocks=100, block=16, slots=1)
    expected = duration + rate * duration**2 / (2 * (1 - rate * duration))
    assert served.ttft_s.mean() == pytest.approx(expected, rel=0.02)


def test_littles_law():
    """Mean number inside = rate times mean time inside, exactly, over a run that empties."""
    traffic = draw(count=300, rate_per_s=4, seed=5)
    clock = by_hand(any_s=0.02, prompt_token_s=0.0001)
    r = serve(traffic, clock=clock, cache=Paged(blocks=3000), slots=16)
    # running and waiting are counted over steps; who comes during a step waits from its end on
    area = ((r.running + r.waiting) * r.duration_s).sum()
    end_s = r.time_s + r.duration_s
    step = np.searchsorted(r.time_s, r.arrival_s) - 1
    before = np.where(step >= 0, end_s[step] - r.arrival_s, 0)  # not counted by the steps
    area += np.clip(before, 0, None).sum()
    assert area == pytest.approx(metrics.end_to_end_s(r).sum(), rel=1e-9)


def test_shortest_first_waits_less_and_prediction_errors_cost():
    outputs = np.random.default_rng(6).choice([2, 50], 1500, p=[0.8, 0.2])
    traffic = poisson(0.8 / (0.01 * outputs.mean()), outputs, seed=7)

    def waits(order):
        r = serve(traffic, clock=TICK, cache=Paged(blocks=100), slots=1, order=order)
        return metrics.wait_s(r)

    fcfs, exact, blurred = (
        waits(order) for order in (None, ShortestFirst(), ShortestFirst(Prediction(sigma=3)))
    )
    assert exact.mean() < blurred.mean() < fcfs.mean()
    assert exact.max() > fcfs.max()


# Arrivals


@pytest.mark.parametrize("cv", [0, 0.3, 1, 3])
def test_gamma_gaps(cv):
    gaps_s = np.diff(gamma(count=400_000, rate_per_s=5, cv=cv, seed=8), prepend=0)
    assert gaps_s.mean() == pytest.approx(0.2, rel=0.02)  # 4 standard errors at cv 3
    assert gaps_s.std() / gaps_s.mean() == pytest.approx(cv, rel=0.03, abs=1e-9)


def test_ramp():
    times = ramp(rates_per_s=[0, 10, 10, 0], times_s=[0, 1000, 2000, 3000], seed=9)
    counts = np.histogram(times, bins=[0, 500, 1000, 2000, 3000])[0]
    # 4 standard deviations of a Poisson count
    for count, expected in zip(counts, (1250, 3750, 10_000, 5000), strict=True):
        assert abs(count - expected) < 4 * expected**0.5
    assert (np.diff(times) >= 0).all()


def test_other_times_for_a_trace():
    trace = at([3.0, 1.0], draw(count=5, seed=1))
    assert [r.arrival_s for r in trace] == [1.0, 3.0]


def test_closed_loop():
    """Five users: never more than five inside; each comes back after an answer and a pause."""
    loop = ClosedLoop([Request(0, 1, 10)] * 200, users=5, think_s=0.3, seed=10)
    r = serve(loop.first, clock=TICK, cache=Paged(blocks=100), slots=3, follow=loop.next)
    assert len(r.arrival_s) == 200 and r.done.all()
    assert (r.running + r.waiting).max() <= 5
    # Little: users = rate (response + think); the run's ends matter little
    rate = 200 / metrics.span_s(r)
    assert rate * (metrics.end_to_end_s(r).mean() + 0.3) == pytest.approx(5, rel=0.1)


def test_a_closed_loop_goes_on_after_a_refusal():
    loop = ClosedLoop([Request(0, 90, 1)] + [Request(0, 1, 1)] * 3, users=1, think_s=0, seed=1)
    cache = Paged(blocks=1, block=4)
    r = serve(loop.first, clock=TICK, cache=cache, slots=1, follow=loop.next)
    assert r.refused.tolist() == [True, False, False, False]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: gamma(count=1, rate_per_s=0, seed=0), "rate_per_s must be"),
        (lambda: gamma(count=1, rate_per_s=1, cv=-1, seed=0), "cv must be"),
        (lambda: ramp(rates_per_s=[1], times_s=[0], seed=0), "times_s must rise from 0"),
        (lambda: ramp(rates_per_s=[1, 1], times_s=[1, 2], seed=0), "times_s must rise from 0"),
        (lambda: ramp(rates_per_s=[0, 0], times_s=[0, 2], seed=0), "rates_per_s must be"),
        (lambda: ClosedLoop([], users=0, think_s=0, seed=0), "users must be"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# Metrics


def test_arrivals_faster_than_admissions():  # Ex 47: 2 admissions a second
    r = serve(
        [Request(i / 10, 1, 1) for i in range(5)],
        clock=by_hand(any_s=0.5),
        cache=Paged(blocks=9),
        slots=1,
        batching=PrefillFirst(),
    )
    assert metrics.wait_s(r) == pytest.approx([0, 0.4, 0.8, 1.2, 1.6])


def test_the_four_numbers_of_one_request():  # Ex 16, with token 1 out of the prefill
    clock = by_hand(step_s=0.020, prompt_token_s=0.0005)
    r = serve([Request(1, 200, 6)], clock=clock, cache=Paged(blocks=99), slots=1)
    assert r.ttft_s == pytest.approx(0.100)
    assert metrics.itl_s(r) == pytest.approx([0.020] * 5)
    assert metrics.tpot_s(r) == pytest.approx(0.020)
    assert metrics.end_to_end_s(r) == pytest.approx(0.200)
    assert metrics.user_tokens_per_s(r) == pytest.approx(6 / 0.2)
    assert metrics.tokens_per_s(r) == pytest.approx(6 / 0.2)


def test_goodput():
    r = serve([Request(0, 1, 3)] * 3, clock=TICK, cache=Paged(blocks=9), slots=1)
    assert r.ttft_s == pytest.approx([0.01, 0.04, 0.07])
    assert metrics.meets(r, ttft_s=0.05).tolist() == [True, True, False]
    assert metrics.meets(r, tpot_s=0.009).tolist() == [False] * 3
    assert metrics.goodput_per_s(r, ttft_s=0.05, end_to_end_s=1) == pytest.approx(2 / 0.09)


@pytest.mark.parametrize(
    "call, column",
    [
        (metrics.wait_s, "admitted_s"),
        (metrics.itl_s, "token_s"),
        (metrics.span_s, "time_s"),
        (metrics.tokens_per_s, "time_s"),
        (lambda run: metrics.goodput_per_s(run, ttft_s=1), "time_s"),
        (metrics.hit_rate, "asked_tokens"),
        (lambda run: metrics.over_time(run, run.preemptions, [0, 1]), "time_s"),
        (lambda run: metrics.rate(run, run.preemptions, [0, 1]), "time_s"),
        (lambda run: metrics.mean(run, run.preemptions), "duration_s"),
    ],
)
def test_what_the_fast_path_does_not_record(call, column):
    served = fast.serve([Request(0, 1, 3)], clock=TICK, blocks=9, slots=1)
    with pytest.raises(ValueError, match=f"run must have {column}, .* of the class Served"):
        call(served)


def test_mean_itl_is_not_mean_tpot():
    clock = by_hand(any_s=0.01, decode_s=0.01)
    requests = [Request(0, 1, 2), Request(0, 1, 11)]
    r = serve(requests, clock=clock, cache=Paged(blocks=9), slots=2)
    assert metrics.tpot_s(r) == pytest.approx([0.03, 0.021])
    assert metrics.itl_s(r).mean() == pytest.approx((0.03 + 0.03 + 9 * 0.02) / 11)


def test_over_time_and_rates():
    requests = [Request(0, 1, 10), Request(0.5, 1, 10)]
    r = serve(requests, clock=by_hand(any_s=0.1), cache=Paged(blocks=9), slots=2)
    assert metrics.over_time(r, r.running, [0, 0.5, 1.0, 1.5, 2.5]).tolist() == pytest.approx(
        [1, 2, 1, 0]
    )
    assert metrics.rate(r, r.new_tokens, [0, 1.01, 3]).sum() > 0
    assert metrics.mean(r, r.running) == pytest.approx(20 / 15)
    empty = serve([], clock=TICK, cache=Paged(blocks=9), slots=2)
    assert metrics.over_time(empty, empty.running, [0, 1]).tolist() == [0]
    assert metrics.tokens_per_s(empty) == metrics.goodput_per_s(empty) == 0
    assert metrics.hit_rate(empty) == metrics.preemption_rate(empty) == 0


def test_hit_rate():
    ids = tuple(range(4))
    requests = [Request(0, 64, 1, blocks=ids), Request(1, 64, 1, blocks=ids)]
    r = serve(requests, clock=TICK, cache=Paged(blocks=9, share=True), slots=2)
    assert metrics.hit_rate(r) == 48 / 128  # three full blocks; the last token is computed
    assert r.found_tokens.tolist() == [0, 48] and r.prefilled.tolist() == [64, 16]


def test_percentile():
    with pytest.raises(ValueError, match="at least one number"):
        metrics.percentile(np.array([np.nan]), 50)
    with pytest.raises(ValueError, match="from 0 to 100"):
        metrics.percentile(np.array([1.0]), 101)
