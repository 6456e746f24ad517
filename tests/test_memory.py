"""The memory budget against published figures (G9) and the course's examples, then invariants."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servesim.hardware import ACCELERATORS, H100, RTX_4090, Accelerator
from servesim.memory import GIB, budget, pool
from servesim.models import LLAMA_2_7B, LLAMA_2_13B, LLAMA_3_1_8B, LLAMA_3_1_70B
from servesim.precision import FP8, INT8


def test_slots_of_the_paged_attention_paper():  # G9, table 1
    p = pool(12 * GIB, bytes_per_token=819_200)
    assert LLAMA_2_13B.kv_bytes_per_token() == 819_200
    assert p.tokens == 15_728  # the paper rounds to 15.7K
    assert p.requests(2048) == 7


def test_example_13_five_of_seven_fit():
    p = pool(2e9, block=8, bytes_per_token=4e8 / 1000)  # 1,000 tokens are one request of 4e8 B
    assert min(7, p.requests(1000)) == 5


@pytest.mark.parametrize("card_gib, requests", [(24, 22), (80, 137)])
def test_example_24(card_gib, requests):
    assert LLAMA_2_7B.kv_bytes_per_token() * 1000 == 500 * 2**20  # 500 MiB a request
    p = pool((card_gib - 13) * GIB, block=8, bytes_per_token=LLAMA_2_7B.kv_bytes_per_token())
    assert p.requests(1000) == requests


def test_example_27():
    p = pool(12 * GIB, bytes_per_token=98_304)
    assert {n: p.requests(n) for n in (256, 512, 1024, 2048)} == {
        256: 512, 512: 256, 1024: 128, 2048: 64
    }  # fmt: skip


def test_budget_of_a_card():
    b = budget(LLAMA_3_1_8B, H100, utilisation=0.9, activations=2e9, other=1e9)
    assert b.card == H100.usable_bytes
    assert b.weights == 16_060_522_496
    assert b.unused == pytest.approx(0.1 * b.card)
    assert b.pool == pytest.approx(0.9 * b.card - b.weights - 3e9)


def test_13b_does_not_fit_on_24_gib():  # Ex 19: 24.2 GiB of weights, -0.2 left
    card = Accelerator(
        name="24 GiB", bf16_flops=1e14, eight_bit_flops=None, hbm_bytes=24 * GIB,
        hbm_bytes_per_s=1e12, link_bytes_per_s=1e10, source="invented",
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"Llama-2-13B does not fit on 24 GiB: 0\.24 GiB are mis"):
        budget(LLAMA_2_13B, card, utilisation=1)
    assert budget(LLAMA_2_7B, card, utilisation=1).pool / GIB == pytest.approx(11.45, abs=0.01)
    assert budget(LLAMA_2_13B, card, utilisation=1, weights=INT8).pool > 0


def test_the_message_adds_up():
    with pytest.raises(ValueError) as error:
        budget(LLAMA_3_1_70B, RTX_4090, tp=2, activations=GIB, other=GIB)
    card = RTX_4090.usable_bytes / GIB
    missing = LLAMA_3_1_70B.weight_bytes() / GIB / 2 + 2 - 0.9 * card
    assert f"{missing:.2f} GiB are missing" in str(error.value)
    assert f"90% of {card:.2f} GiB" in str(error.value) and "tp 2" in str(error.value)


fractions = st.floats(0.5, 1)


@given(st.sampled_from([H100, ACCELERATORS["H200"]]), fractions, st.sampled_from([1, 2, 4, 8]))
def test_a_budget_adds_up(chip, utilisation, tp):
    b = budget(LLAMA_3_1_8B, chip, utilisation=utilisation, tp=tp, weights=FP8, other=1e9)
    assert sum(b[1:]) == pytest.approx(b.card, rel=1e-12)
    assert min(b) >= 0


@given(
    st.floats(0, 1e12),
    st.integers(1, 512),
    st.floats(1000, 1e6),
    st.integers(1, 100_000),
)
def test_a_pool_never_overflows(pool_bytes, block, bytes_per_token, context):
    p = pool(pool_bytes, block=block, bytes_per_token=bytes_per_token)
    assert p.tokens * bytes_per_token <= pool_bytes * (1 + 1e-12)
    assert (p.blocks + 1) * block * bytes_per_token > pool_bytes * (1 - 1e-12)
    assert p.requests(context) * context <= p.tokens
    blocks_each = -(-context // block)
    assert p.blocks - p.requests(context) * blocks_each < blocks_each


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: budget(LLAMA_2_7B, H100, utilisation=0),
            "utilisation must be a number above 0 and at",
        ),
        (lambda: budget(LLAMA_2_7B, H100, utilisation=1.01), "utilisation must be"),
        (lambda: budget(LLAMA_2_7B, H100, activations=-1), "activations must be"),
        (lambda: budget(LLAMA_2_7B, H100, other=float("nan")), "other must be"),
        (lambda: budget("Llama-2-7B", H100), "model must be of the class Model, such as models."),
        (lambda: budget(LLAMA_2_7B, H100, tp=0), "tp must be"),
        (lambda: pool(-1, bytes_per_token=1), "pool_bytes must be"),
        (lambda: pool(1, block=0, bytes_per_token=1), "block must be"),
        (lambda: pool(1, bytes_per_token=0), "bytes_per_token must be a number above 0 .* got 0"),
        (lambda: pool(1, bytes_per_token=1).requests(0), "context must be"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()
