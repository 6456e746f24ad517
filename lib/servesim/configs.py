"""Reads a Hugging Face config.json: what it says, in the field names of models.Model."""

import json
import os
from pathlib import Path

ARCHITECTURES = (
    "llama",
    "mistral",
    "mixtral",
    "qwen2",
    "qwen3",
    "qwen3_moe",
    "gemma3_text",
    "deepseek_v3",
)

# What transformers' Gemma3TextConfig assumes where a published file says nothing.
GEMMA3_DEFAULTS = {
    "vocab_size": 262_208,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "max_position_embeddings": 131_072,
    "sliding_window": 4096,
    "sliding_window_pattern": 6,
    "tie_word_embeddings": True,
}


def load(config: dict | str | Path) -> dict:
    """The text model's part of a config, given as a dict or as the path of a config.json.

    Raises ValueError when there is no such file, and when it (in UTF-8) or the value is not a JSON
    object.
    """
    if isinstance(config, str | Path):
        if not os.path.isfile(config):  # False, too, for text that is too long for a path
            wanted = "config must be a dict or the path of a config.json"
            raise ValueError(f"{wanted}, got {str(config)!r}, which is no file")
        try:
            config = json.loads(Path(config).read_text(encoding="utf-8"))
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"config must be JSON: {config}: {error}") from None
    config = _object("config", config)
    text = config.get("text_config")
    return config if text is None else _object("text_config", text)


def _object(name: str, value: object) -> dict:
    if not isinstance(value, dict):
        raise ValueError(f"{name} must be a JSON object, got {type(value).__name__}")
    return value


def fields(config: dict) -> dict:
    """The fields of a Model (all but name and source) that a text model's config describes.

    Raises ValueError for an architecture that is not one of ARCHITECTURES, for a missing key,
    for a value of the wrong kind, and for a variant that would be counted wrongly.
    """
    kind = _architecture(config)
    if kind == "gemma3_text":
        config = GEMMA3_DEFAULTS | config
    _refuse_variants(config)
    hidden, heads = _count(config, "hidden_size"), _count(config, "num_attention_heads")
    return {
        "layers": _count(config, "num_hidden_layers"),
        "hidden": hidden,
        "heads": heads,
        "kv_heads": _count(config, "num_key_value_heads", heads),
        "head_dim": _head_dim(kind, config, hidden, heads),
        "ffn": _count(config, "intermediate_size"),
        "vocab": _count(config, "vocab_size"),
        "tied": _tied(config),
        "context": _count(config, "max_position_embeddings"),
        "windows": _windows(kind, config),
        "qkv_bias": kind == "qwen2",
        "qk_norm": kind in ("qwen3", "qwen3_moe", "gemma3_text"),
        "norms": 4 if kind == "gemma3_text" else 2,
        **_experts(kind, config),
        **_latent(kind, config),
    }


def _architecture(config: dict) -> str:
    allowed = f"model_type must be one of {', '.join(ARCHITECTURES)}"
    if "model_type" not in config:
        raise ValueError(f"config has no key model_type; {allowed}")
    kind = "gemma3_text" if config["model_type"] == "gemma3" else config["model_type"]
    if kind not in ARCHITECTURES:
        raise ValueError(f"{allowed}; got {kind!r}")
    return kind


def _count(config: dict, key: str, default: int | None = None, least: int = 1) -> int:
    """The whole number at `key`; `default` stands in for a missing or null one."""
    value = config.get(key)
    value = default if value is None else value
    if value is None:
        raise ValueError(f"config has no key {key}; it must be a whole number of at least {least}")
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f"{key} must be a whole number of at least {least}, got {value!r}")
    return value


def _tied(config: dict) -> bool:
    tied = config.get("tie_word_embeddings", False)
    if not isinstance(tied, bool):
        raise ValueError(f"tie_word_embeddings must be true or false, got {tied!r}")
    return tied


def _refuse_variants(config: dict) -> None:
    """Options that change the parameters and that no model in the table uses."""
    for key in ("attention_bias", "mlp_bias", "mlp_only_layers"):
        if config.get(key):
            raise ValueError(f"{key} must be false or empty, got {config[key]!r}")
    for key in ("decoder_sparse_step", "moe_layer_freq"):
        if config.get(key, 1) != 1:
            raise ValueError(f"{key} must be 1, got {config[key]!r}")


def _head_dim(kind: str, config: dict, hidden: int, heads: int) -> int:
    if kind == "deepseek_v3":
        return _count(config, "qk_nope_head_dim") + _count(config, "qk_rope_head_dim")
    if config.get("head_dim") is not None:
        return _count(config, "head_dim")
    if hidden % heads:
        raise ValueError(
            f"hidden_size must be a multiple of num_attention_heads when head_dim is not given, "
            f"got {hidden} and {heads}"
        )
    return hidden // heads


def _windows(kind: str, config: dict) -> tuple[int | None, ...]:
    """For each layer the tokens it can look back on (None: all of them); () if no layer has one."""
    layers = _count(config, "num_hidden_layers")
    if kind in ("llama", "deepseek_v3") or config.get("sliding_window") is None:
        return ()
    window = _count(config, "sliding_window")
    if config.get("layer_types"):
        windows = _windows_by_name(config["layer_types"], layers, window)
    elif kind == "gemma3_text":
        pattern = _count(config, "sliding_window_pattern")
        windows = tuple(None if (i + 1) % pattern == 0 else window for i in range(layers))
    elif kind in ("mistral", "mixtral"):
        windows = (window,) * layers
    elif config.get("use_sliding_window"):
        first = _count(config, "max_window_layers", least=0)
        windows = tuple(window if i >= first else None for i in range(layers))
    else:
        return ()
    return windows if any(windows) else ()


def _windows_by_name(names: list[str], layers: int, window: int) -> tuple[int | None, ...]:
    if not isinstance(names, list | tuple):
        raise ValueError(f"layer_types must be a list of {layers} names, got {names!r}")
    if len(names) != layers:
        raise ValueError(f"layer_types must name {layers} layers, got {len(names)}")
    meaning = {"full_attention": None, "sliding_attention": window}
    for name in names:
        if name not in meaning:
            raise ValueError(f"layer_types must hold only {', '.join(meaning)}; got {name!r}")
    return tuple(meaning[name] for name in names)


def _experts(kind: str, config: dict) -> dict:
    key = {
        "mixtral": "num_local_experts",
        "qwen3_moe": "num_experts",
        "deepseek_v3": "n_routed_experts",
    }.get(kind)
    if key is None:
        return {}
    width = "intermediate_size" if kind == "mixtral" else "moe_intermediate_size"
    deepseek = kind == "deepseek_v3"
    return {
        "experts": _count(config, key),
        "experts_per_token": _count(config, "num_experts_per_tok"),
        "expert_ffn": _count(config, width),
        "shared_experts": _count(config, "n_shared_experts", least=0) if deepseek else 0,
        "dense_layers": _count(config, "first_k_dense_replace", least=0) if deepseek else 0,
        "router_bias": deepseek,
    }


def _latent(kind: str, config: dict) -> dict:
    """MLA: keys and values of all heads unpacked from one latent vector of kv_rank values."""
    if kind != "deepseek_v3":
        return {}
    full_queries = "q_lora_rank" in config and config["q_lora_rank"] is None
    return {
        "nope_dim": _count(config, "qk_nope_head_dim"),
        "rope_dim": _count(config, "qk_rope_head_dim"),
        "value_dim": _count(config, "v_head_dim"),
        "kv_rank": _count(config, "kv_lora_rank"),
        "q_rank": 0 if full_queries else _count(config, "q_lora_rank"),
    }
