import dataclasses
import json
from datetime import date

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from servesim import models
from servesim.facts import read_json
from servesim.models import (
    DEEPSEEK_V3,
    GEMMA_3_27B,
    LLAMA_2_7B,
    LLAMA_2_13B,
    LLAMA_3_1_8B,
    LLAMA_3_1_70B,
    LLAMA_3_1_405B,
    MIXTRAL_8X7B,
    MODELS,
    QWEN2_5_72B,
    QWEN3_30B_A3B,
    Model,
)
from servesim.precision import BF16, FP8, FP32, INT4, INT8

TABLE = read_json("models.json")
TINY = {
    "model_type": "llama",
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 100,
    "max_position_embeddings": 512,
}

a_model = st.sampled_from(list(MODELS.values()))
a_context = st.integers(0, 300_000)
a_tp = st.sampled_from([1, 2, 4, 8, 16, 32])


def splits(model, tp):
    """Whether `tp` GPUs can share the model's KV heads evenly, by splitting or by copying."""
    return model.kv_heads % tp == 0 or tp % model.kv_heads == 0


def tiny(**changes):
    """The model of TINY with these keys changed; None takes a key away."""
    config = TINY | changes
    return Model.from_config({key: value for key, value in config.items() if value is not None})


# Oracles: published counts, and counts by hand.


@pytest.mark.parametrize("name", TABLE)
def test_parameters_are_those_of_the_published_weights(name):
    model, published = MODELS[name], TABLE[name]["published_params"]
    # Llama 2's files also store a buffer of rotary frequencies in every layer
    buffers = model.layers * model.head_dim // 2 if name.startswith("Llama-2") else 0
    assert model.params == published - buffers


def test_parameters_of_a_tiny_model_by_hand():
    attention = 64 * 64 + 2 * 64 * 32 + 64 * 64  # queries, keys and values, output
    feed_forward = 3 * 64 * 128
    norms = 2 * 64
    embedding = 100 * 64
    layers = 2 * (attention + feed_forward + norms)
    assert tiny().params == layers + 64 + 2 * embedding
    assert tiny(tie_word_embeddings=True).params == layers + 64 + embedding
    assert tiny().linear_params == 2 * (attention + feed_forward) + embedding
    assert tiny(tie_word_embeddings=True).linear_params == tiny().linear_params
    assert tiny(model_type="qwen2").params == tiny().params + 2 * (64 + 2 * 32)
    assert tiny(model_type="qwen3").params == tiny().params + 2 * (16 + 16)


def test_active_parameters():
    expert = 3 * 4096 * 14336
    assert MIXTRAL_8X7B.params - MIXTRAL_8X7B.active_params == 32 * (8 - 2) * expert
    assert round(MIXTRAL_8X7B.active_params / 1e9, 1) == 12.9  # the paper's 12.9B
    assert round(QWEN3_30B_A3B.active_params / 1e9, 1) == 3.4  # A3B, with the embedding
    # DeepSeek's README_WEIGHTS: 36.6B activated, with the head and without the input embedding
    assert round(DEEPSEEK_V3.linear_params / 1e9, 1) == 36.6
    assert LLAMA_3_1_8B.active_params == LLAMA_3_1_8B.params


@pytest.mark.parametrize(
    "model, bytes_per_token",
    [
        (LLAMA_2_7B, 524_288),
        (LLAMA_2_13B, 819_200),
        (LLAMA_3_1_8B, 131_072),
        (LLAMA_3_1_70B, 327_680),
        (LLAMA_3_1_405B, 516_096),
        (QWEN2_5_72B, 327_680),
        (DEEPSEEK_V3, 61 * (512 + 64) * 2),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_cache_bytes_per_token(model, bytes_per_token):
    assert model.kv_bytes_per_token() == bytes_per_token
    assert model.kv_bytes_per_token(FP8) == bytes_per_token / 2
    assert model.kv_bytes(1000) == 1000 * bytes_per_token


def test_windowed_layers_stop_growing():
    # Gemma 3 27B: 62 layers, every sixth sees everything; 16 heads * 128 * (key + value) * 2 B
    layer = 16 * 128 * 2 * 2
    assert sum(window is None for window in GEMMA_3_27B.windows) == 10
    assert GEMMA_3_27B.windows[4:7] == (1024, None, 1024)
    assert GEMMA_3_27B.kv_bytes_per_token() == 62 * layer
    assert GEMMA_3_27B.kv_bytes(1024) == 62 * 1024 * layer == 520_093_696
    assert GEMMA_3_27B.kv_bytes(8192) == (10 * 8192 + 52 * 1024) * layer == 1_107_296_256
    assert GEMMA_3_27B.kv_bytes(131_072) == (10 * 131_072 + 52 * 1024) * layer == 11_173_625_856


def test_tensor_parallel_splits_heads_and_then_copies_them():
    whole = LLAMA_3_1_8B.kv_bytes_per_token()  # 8 KV heads
    shares = {tp: LLAMA_3_1_8B.kv_bytes_per_token(tp=tp) / whole for tp in (1, 2, 4, 8, 16, 32)}
    assert shares == {1: 1, 2: 1 / 2, 4: 1 / 4, 8: 1 / 8, 16: 1 / 8, 32: 1 / 8}
    assert DEEPSEEK_V3.kv_bytes_per_token(tp=8) == DEEPSEEK_V3.kv_bytes_per_token()


def test_weight_bytes():
    assert LLAMA_3_1_8B.weight_bytes() == 2 * 8_030_261_248
    matrices = 32 * (2 * 4096 * (32 + 8) * 128 + 3 * 4096 * 14336)
    rest = LLAMA_3_1_8B.params - matrices
    assert LLAMA_3_1_8B.weight_bytes(FP8) == matrices + 2 * rest
    assert LLAMA_3_1_8B.weight_bytes(INT4) == matrices * (0.5 + 2 / 128) + 2 * rest
    assert LLAMA_3_1_8B.weight_bytes(FP32) == 4 * LLAMA_3_1_8B.params


def test_bytes_that_a_step_reads():
    assert LLAMA_3_1_8B.read_bytes(7) == LLAMA_3_1_8B.weight_bytes()
    assert MIXTRAL_8X7B.read_bytes(1) == pytest.approx(2 * MIXTRAL_8X7B.active_params)
    # two tokens that each pick 2 of 8: 8 * (1 - (3/4)^2) = 3.5 experts on average
    experts = 32 * 3 * 4096 * 14336
    rest = MIXTRAL_8X7B.params - 8 * experts
    assert MIXTRAL_8X7B.read_bytes(2) == pytest.approx(2 * (rest + 3.5 * experts))
    assert MIXTRAL_8X7B.read_bytes(1000) == pytest.approx(MIXTRAL_8X7B.weight_bytes())


def test_attention_arithmetic():
    pairs = 8192**2 // 2
    assert LLAMA_3_1_8B.attention_flops(pairs) == 4 * 32 * 128 * 32 * pairs
    # MLA: scores over 128 + 64 values, sums over 128
    assert DEEPSEEK_V3.attention_flops(pairs) == 2 * 128 * (192 + 128) * 61 * pairs


# Reading a config.


def test_a_config_can_be_a_dict_a_path_or_the_text_part_of_a_file(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(TINY))
    nested = tmp_path / "nested.json"
    nested.write_text(json.dumps({"model_type": "llava", "text_config": TINY}))
    configs = (TINY, path, str(path), nested)
    assert {Model.from_config(config, "tiny") for config in configs} == {
        Model.from_config(TINY, "tiny")
    }
    assert tiny().name == "llama"
    assert Model.from_config(TINY, "mine", "my notes").source == "my notes"


def test_head_dim_is_derived_only_when_it_is_not_given():
    assert tiny().head_dim == tiny(head_dim=None).head_dim == 16
    # as in Mistral Nemo: 32 heads of 128 in a hidden size of 5,120
    nemo = tiny(hidden_size=5120, num_attention_heads=32, num_key_value_heads=8, head_dim=128)
    assert nemo.head_dim == 128 != 5120 // 32
    assert nemo.kv_bytes_per_token() == 2 * 2 * 8 * 128 * 2
    assert (GEMMA_3_27B.head_dim, DEEPSEEK_V3.head_dim) == (128, 192)


def test_kv_heads():
    assert tiny(num_key_value_heads=None).kv_heads == 4  # every query head has its own
    multi_query = tiny(num_key_value_heads=1)
    assert multi_query.kv_bytes_per_token(tp=4) == multi_query.kv_bytes_per_token()


def test_windows_of_each_architecture():
    mistral = {"model_type": "mistral"}
    assert tiny(**mistral, sliding_window=None).windows == ()
    assert tiny(**mistral, sliding_window=64).windows == (64, 64)
    qwen = {"model_type": "qwen2", "sliding_window": 64, "max_window_layers": 1}
    assert tiny(**qwen, use_sliding_window=False).windows == ()
    assert tiny(**qwen, use_sliding_window=True).windows == (None, 64)
    gemma = {"model_type": "gemma3_text", "head_dim": 16, "sliding_window": 64}
    assert tiny(**gemma, sliding_window_pattern=2).windows == (64, None)
    assert tiny(**gemma).windows == (64, 64)  # the sixth layer would be the first without
    names = ["full_attention", "sliding_attention"]
    assert tiny(**gemma, layer_types=names).windows == (None, 64)
    assert tiny(**gemma, layer_types=["full_attention"] * 2).windows == ()
    assert tiny(sliding_window=64).windows == ()  # Llama has no windows


def test_latent_attention_without_a_query_rank():
    latent = {
        "model_type": "deepseek_v3", "n_routed_experts": 4, "num_experts_per_tok": 2,
        "n_shared_experts": 1, "first_k_dense_replace": 1, "moe_intermediate_size": 32,
        "kv_lora_rank": 24, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16,
    }  # fmt: skip
    with_rank = tiny(**latent, q_lora_rank=32)
    direct = Model.from_config(TINY | latent | {"q_lora_rank": None})
    # 64 -> 4 heads * (16 + 8), against 64 -> 32 -> 4 * (16 + 8) and a norm of 32, in two layers
    assert direct.params - with_rank.params == 2 * (64 * 96 - 32 * (64 + 96) - 32)
    assert direct.kv_bytes_per_token() == 2 * (24 + 8) * 2


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"model_type": "gpt2"}, "model_type must be one of llama, .*; got 'gpt2'"),
        ({"model_type": None}, "config has no key model_type; model_type must be one of llama"),
        ({"vocab_size": None}, "config has no key vocab_size; it must be a whole number"),
        ({"num_hidden_layers": "2"}, "num_hidden_layers must be a whole number .* got '2'"),
        ({"hidden_size": 64.0}, "hidden_size must be a whole number of at least 1, got 64.0"),
        ({"intermediate_size": True}, "intermediate_size must be a whole number .* got True"),
        ({"vocab_size": 0}, "vocab_size must be a whole number of at least 1, got 0"),
        ({"hidden_size": 66}, "hidden_size must be a multiple of num_attention_heads .* 66 and 4"),
        ({"num_key_value_heads": 3}, r"kv_heads must divide heads \(4\), got 3"),
        ({"tie_word_embeddings": 1}, "tie_word_embeddings must be true or false, got 1"),
        ({"attention_bias": True}, "attention_bias must be false or empty, got True"),
        ({"model_type": "qwen3_moe"}, "config has no key num_experts"),
        ({"model_type": "qwen3_moe", "decoder_sparse_step": 2}, "decoder_sparse_step must be 1"),
        (
            {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 5},
            r"experts_per_token must be from 1 to experts \(4\), got 5",
        ),
        (
            {"model_type": "mistral", "sliding_window": 8, "layer_types": ["full_attention"]},
            "layer_types must name 2 layers, got 1",
        ),
        (
            {"model_type": "mistral", "sliding_window": 8, "layer_types": 5},
            "layer_types must be a list of 2 names, got 5",
        ),
        (
            {"model_type": "mistral", "sliding_window": 8, "layer_types": ["linear"] * 2},
            "layer_types must hold only full_attention, sliding_attention; got 'linear'",
        ),
    ],
)
def test_a_wrong_config_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        tiny(**changes)


def test_what_is_not_a_config_is_refused(tmp_path):
    broken = tmp_path / "config.json"
    broken.write_text("{")
    with pytest.raises(ValueError, match="config must be JSON"):
        Model.from_config(broken)
    broken.write_bytes(b"\x80\x02")
    with pytest.raises(ValueError, match="config must be JSON: .*config.json: 'utf-8' codec"):
        Model.from_config(broken)
    with pytest.raises(ValueError, match='the path of a config.json, got \'{"model_type"'):
        Model.from_config(json.dumps(TINY | {"_name_or_path": "x" * 5000}))
    with pytest.raises(ValueError, match="config must be a JSON object, got list"):
        Model.from_config([TINY])
    with pytest.raises(ValueError, match="text_config must be a JSON object, got int"):
        Model.from_config({"text_config": 5})
    with pytest.raises(ValueError, match="a dict or the path of a config.json, got 'meta-llama/L"):
        Model.from_config("meta-llama/Llama-3.1-8B")
    assert Model.from_config(TINY | {"text_config": None}) == tiny()


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: LLAMA_3_1_8B.kv_bytes(-1), "context must be a number of at least 0 .* got -1"),
        (lambda: LLAMA_3_1_8B.kv_bytes(1, tp=0), "tp must be a whole number .* got 0"),
        (lambda: DEEPSEEK_V3.kv_bytes(1, tp=0), "tp must be a whole number .* got 0"),
        (lambda: LLAMA_3_1_8B.kv_bytes(1, tp=3), "tp must divide 8 KV heads or be a .* got 3"),
        (lambda: MIXTRAL_8X7B.read_bytes(0), "tokens must be a number of .* got 0"),
        (lambda: MIXTRAL_8X7B.read_bytes(float("nan")), "tokens must be a number of .* got nan"),
        (lambda: LLAMA_3_1_8B.kv_bytes("8"), "context must be a number of at least 0 .* got '8'"),
        (
            lambda: LLAMA_3_1_8B.weight_bytes("fp8"),
            "precision must be .* precision.BF16, got 'fp8'",
        ),
        (
            lambda: dataclasses.replace(LLAMA_2_7B, layers=0),
            "layers must be a whole number .* got 0",
        ),
        (lambda: dataclasses.replace(LLAMA_2_7B, windows=(8,)), "one per layer .32., got 1"),
        (
            lambda: dataclasses.replace(LLAMA_2_7B, source=None),
            "source must be .* str, .* got None",
        ),
        (lambda: dataclasses.replace(LLAMA_2_7B, tied="no"), "tied must be .* bool, .* got 'no'"),
        (lambda: dataclasses.replace(LLAMA_2_7B, context=4.5), "context must be .* got 4.5"),
        (
            lambda: models._model("X", TABLE["Llama-2-7B"] | {"source": None}),
            "source must be of the class str, .* got None",
        ),
    ],
)
def test_a_wrong_argument_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# Invariants.


@given(a_model, a_context, a_context, a_tp)
def test_a_longer_context_never_takes_less_cache(model, context, more, tp):
    assume(splits(model, tp))
    bytes_ = model.kv_bytes(context, tp=tp)
    assert bytes_ <= model.kv_bytes(context + more, tp=tp)
    assert bytes_ <= context * model.kv_bytes_per_token(tp=tp)
    if not model.windows:
        assert bytes_ == context * model.kv_bytes_per_token(tp=tp)


@given(a_model, a_context, a_tp)
def test_more_gpus_never_raise_the_cache_of_one_nor_lower_that_of_all(model, context, tp):
    assume(splits(model, tp) and splits(model, 2 * tp))
    assert model.kv_bytes(context, tp=2 * tp) <= model.kv_bytes(context, tp=tp)
    assert 2 * tp * model.kv_bytes(context, tp=2 * tp) >= tp * model.kv_bytes(context, tp=tp)


@given(a_model, st.integers(1, 5000), st.sampled_from([BF16, FP8, INT4]))
def test_a_step_reads_more_with_more_tokens_and_never_more_than_all(model, tokens, weights):
    read = model.read_bytes(tokens, weights)
    assert read <= model.read_bytes(tokens + 1, weights) <= model.weight_bytes(weights)
    assert read >= model.linear_params * weights.bytes


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda model: model.name)
def test_fewer_bits_never_take_more_bytes(model):
    sizes = [model.weight_bytes(weights) for weights in (INT4, INT8, BF16, FP32)]
    assert sizes == sorted(set(sizes))
    assert model.linear_params < model.active_params <= model.params


# The table.


@pytest.mark.parametrize("name", TABLE)
def test_every_model_has_a_source_and_a_date(name):
    entry = TABLE[name]
    assert "(Hugging Face)" in entry["source"]
    assert entry["params_source"]
    assert date.fromisoformat(entry["read"]) >= date(2026, 1, 1)
    assert entry["read"] in MODELS[name].source
    assert MODELS[name].name == name


def test_each_model_has_a_name_in_the_module():
    named = {value for value in vars(models).values() if isinstance(value, Model)}
    assert named == set(MODELS.values())
