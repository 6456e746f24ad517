"""What data/trace_replays.json says of the raw traces, computed again where they are."""

import itertools

import numpy as np
import pytest

from servesim.batching import Static
from servesim.cache import Paged
from servesim.clock import by_hand
from servesim.engine import serve
from servesim.facts import read_json
from servesim.workload import Request
from traces import raw

REPLAYS = read_json("trace_replays.json")
MOONCAKE = REPLAYS["mooncake_conversation_lru"]


@pytest.mark.parametrize(
    "blocks, hit_ratio", list(zip(MOONCAKE["blocks"], MOONCAKE["hit_ratio"], strict=True))
)
def test_mooncake_hit_ratio(blocks, hit_ratio):  # G10
    cache, hits, asked = Paged(blocks=blocks, block=1, share=True), 0, 0
    for i, ids in enumerate(raw("mooncake_conversation").blocks):
        hits += cache.found(ids, len(ids) + 1)
        asked += len(ids)
        assert cache.start(i, len(ids) + 1, prompt=len(ids), output=2, ids=ids)
        cache.end(i)
    assert hits / asked == pytest.approx(hit_ratio, abs=5e-5)


def test_mooncake_hit_ratios_are_those_expected():  # G10, in %, from another implementation
    expected = [4.5, 11, 21, 32.6, 35.5, 36.4, 36.6]
    rounding = [0.05, 0.5, 0.5, 0.05, 0.05, 0.05, 0.05]
    for ours, theirs, within in zip(MOONCAKE["hit_ratio"], expected, rounding, strict=True):
        assert 100 * ours == pytest.approx(theirs, abs=within)


def test_mooncake_turns():
    trace, last_s, pauses_s = raw("mooncake_conversation"), {}, []
    for time_s, ids in zip(trace.arrival_s.tolist(), trace.blocks, strict=True):
        known = list(itertools.takewhile(last_s.__contains__, ids))
        if len(known) > 1:
            pauses_s.append(time_s - last_s[known[-1]])
        last_s.update(dict.fromkeys(ids, time_s))
    facts = REPLAYS["mooncake_conversation_turns"]
    assert round(len(pauses_s) / len(trace), 3) == facts["share"]
    assert round(np.median(pauses_s), 1) == facts["median_pause_s"]


@pytest.mark.parametrize("service", ["chat", "code"])
def test_idle_share_of_static_batches(service):
    facts = REPLAYS[f"azure_2023_{service}_static"]
    lengths = raw(f"azure_2023_{service}").output_tokens.tolist()
    assert len(lengths) == facts["requests"]
    for slots, idle in zip(facts["slots"], facts["idle"], strict=True):
        batches = [lengths[i : i + slots] for i in range(0, len(lengths), slots)]
        held = sum(len(batch) * max(batch) for batch in batches)
        assert 1 - sum(lengths) / held == pytest.approx(idle, abs=5e-5)


def test_share_of_reservations_used():
    facts, trace = REPLAYS["azure_2023_chat_reserved"], raw("azure_2023_chat")
    total = trace.prompt_tokens + trace.output_tokens
    for limit, used in zip(facts["limits"], facts["used"], strict=True):
        assert round(total[total <= limit].mean() / limit, 3) == used


def test_idle_share_by_the_engine():
    facts = REPLAYS["azure_2023_code_static"]
    requests = [Request(0, 1, int(n)) for n in raw("azure_2023_code").output_tokens]
    cache, clock, slots = Paged(blocks=10**6), by_hand(any_s=1), facts["slots"][0]
    run = serve(requests, clock=clock, cache=cache, slots=slots, batching=Static())
    assert 1 - run.working.sum() / run.running.sum() == pytest.approx(facts["idle"][0], abs=5e-5)
