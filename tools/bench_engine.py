"""Prints how fast the simulator is. Run by `make bench`, or alone; best of three on one core."""

import resource
import sys
import time
from pathlib import Path

from servesim import clock, costs, engine, fast
from servesim.arrivals import at, gamma
from servesim.cache import Paged
from servesim.hardware import H100
from servesim.models import LLAMA_3_1_8B
from servesim.workload import draw, read_trace

RAW = Path(__file__).resolve().parents[2] / "shared" / "data"
CLOCK = clock.of(LLAMA_3_1_8B, H100, reach=costs.CALIBRATED)
CHAT = dict(clock=CLOCK, blocks=25_000, slots=256)  # an H100's pool: 400,000 tokens
RATE_PER_S = 15.4  # 80 % of the 19.3 that it completes when flooded


def best(serve, requests, repeats: int = 3, **options) -> float:
    """Requests per second of the fastest of some runs."""
    times = []
    for _ in range(repeats):
        began = time.process_time()
        serve(requests, **options)
        times.append(time.process_time() - began)
    return len(requests) / min(times)


def row(name: str, per_s: float, count: int) -> None:
    print(
        f"{name:44} {count:9,d} {count / per_s * 1e3:10.1f} ms {per_s:11,.0f} requests/s",
        flush=True,
    )


def main(largest: int) -> None:
    few = draw(count=300, rate_per_s=RATE_PER_S, seed=1)
    row("300 requests", best(fast.serve, few, **CHAT), 300)
    readable = dict(clock=CLOCK, slots=256)
    times = []
    for _ in range(3):
        began = time.process_time()
        engine.serve(few, cache=Paged(blocks=25_000), **readable)
        times.append(time.process_time() - began)
    row("the same, in the readable loop", 300 / min(times), 300)
    count = 10_000
    while count <= largest:
        chat = draw(count=count, rate_per_s=RATE_PER_S, seed=1)
        row("paged, FCFS", best(fast.serve, chat, **CHAT), count)
        row("chunked prefill, budget 512", best(fast.serve, chat, budget=512, **CHAT), count)
        row("chunked prefill, budget 2048", best(fast.serve, chat, budget=2048, **CHAT), count)
        count *= 10
    path = RAW / "mooncake_conversation.jsonl"
    if path.exists():
        raw = read_trace(path)
        shaped = at(gamma(count=len(raw), rate_per_s=1.7, seed=1), raw)
        shared = dict(clock=CLOCK, blocks=50_000, block=512, slots=256, share=True)
        row("shared prefixes, Mooncake", best(fast.serve, shaped, **shared), len(raw))
    gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"memory at most {gib:.2f} GiB")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
