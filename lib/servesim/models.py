"""What a model's architecture fixes: parameters, weight bytes, cache bytes, arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from servesim import configs
from servesim.checks import at_least, fields, kind, whole
from servesim.facts import read_records, source
from servesim.precision import BF16, Precision

UNQUANTISED_BYTES = 2  # B per value of what quantisation leaves in 16 bit


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A decoder-only transformer with gated feed-forward layers, as its config describes it.

    Left out: biases other than those of query, key and value; vision towers; draft layers
    (DeepSeek-V3 ships one for multi-token prediction).
    """

    name: str
    layers: int
    hidden: int
    heads: int  # query heads
    kv_heads: int
    head_dim: int  # not always hidden / heads; with MLA nope_dim + rope_dim
    ffn: int  # inner width of a dense feed-forward layer
    vocab: int
    tied: bool  # the head reuses the input embedding
    context: int  # tokens the model was made for
    source: str
    qkv_bias: bool = False
    qk_norm: bool = False
    norms: int = 2  # norms of width `hidden` in a layer
    windows: tuple[int | None, ...] = ()  # per layer; None: sees everything; (): all layers do
    experts: int = 0  # routed experts of a MoE layer; 0: a dense model
    experts_per_token: int = 0
    expert_ffn: int = 0
    shared_experts: int = 0  # experts that every token passes
    dense_layers: int = 0  # leading layers of a MoE model that are dense
    router_bias: bool = False
    kv_rank: int = 0  # above 0: MLA, which caches one latent vector for all heads
    rope_dim: int = 0
    q_rank: int = 0
    nope_dim: int = 0
    value_dim: int = 0

    def __post_init__(self):
        kind(str, "'Llama-3.1-8B'", name=self.name, source=self.source)
        kind(bool, "False", tied=self.tied, qkv_bias=self.qkv_bias, qk_norm=self.qk_norm)
        for field in ("layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab"):
            whole(1, **{field: getattr(self, field)})
        whole(1, context=self.context)
        if self.heads % self.kv_heads:
            raise ValueError(f"kv_heads must divide heads ({self.heads}), got {self.kv_heads}")
        if len(self.windows) not in (0, self.layers):
            raise ValueError(
                f"windows must be empty or one per layer ({self.layers}), got {len(self.windows)}"
            )
        if self.experts and not 1 <= self.experts_per_token <= self.experts:
            raise ValueError(
                f"experts_per_token must be from 1 to experts ({self.experts}), "
                f"got {self.experts_per_token}"
            )

    @classmethod
    def from_config(
        cls, config: dict | str | Path, name: str | None = None, source: str = ""
    ) -> Model:
        """The model that a Hugging Face config.json describes (a dict, or the file's path).

        Handles the architectures of configs.ARCHITECTURES, also inside a `text_config`.
        Without a name, the config's `_name_or_path` or model_type is the name.
        Raises ValueError for a missing file, an unknown architecture, a missing key or a wrong
        value.

        >>> tiny = {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64,
        ...         "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100,
        ...         "max_position_embeddings": 512}
        >>> Model.from_config(tiny).params
        95040
        """
        config = configs.load(config)
        described = configs.fields(config)
        name = name or config.get("_name_or_path") or config["model_type"]
        return cls(name=name, source=source, **described)

    @property
    def params(self) -> int:
        """All parameters, counted from the architecture.

        >>> LLAMA_3_1_8B.params
        8030261248
        """
        head = 0 if self.tied else self._embedding
        return self._matrices(self.experts) + self._router + self._vectors + self._embedding + head

    @property
    def active_params(self) -> int:
        """Parameters less the experts that one token does not pass.

        >>> round(MIXTRAL_8X7B.active_params / 1e9, 1)
        12.9
        """
        return self.params - self._matrices(self.experts) + self._matrices(self.experts_per_token)

    @property
    def linear_params(self) -> int:
        """Parameters of the matrices that multiply one token: 2 FLOP each.

        Layers and head, only active experts; not the input embedding, which is a look-up.
        """
        return self._matrices(self.experts_per_token) + self._router + self._embedding

    def weight_bytes(self, precision: Precision = BF16) -> float:
        """B of all weights.

        A quantised precision applies to the layers' matrices; embedding, head, norms, biases
        and routers keep 2 B per value.
        Raises ValueError for what is not a Precision.
        """
        kind(Precision, "precision.BF16", precision=precision)
        matrices = self._matrices(self.experts)
        other_bytes = max(UNQUANTISED_BYTES, precision.bytes)
        return matrices * precision.bytes + (self.params - matrices) * other_bytes

    def read_bytes(self, tokens: int, precision: Precision = BF16) -> float:
        """B of weights that a step with `tokens` new tokens reads.

        A dense model reads all of them. Of E experts, k per token, n tokens touch
        E (1 - (1 - k/E)^n) on average if each token picks at random.
        Left out: routers that favour some experts, which touches fewer.
        Raises ValueError when tokens is below 1.

        >>> round(MIXTRAL_8X7B.read_bytes(1) / MIXTRAL_8X7B.weight_bytes(), 2)
        0.28
        """
        at_least(1, tokens=tokens)
        if not self.experts:
            return self.weight_bytes(precision)
        untouched = (1 - self.experts_per_token / self.experts) ** tokens
        routed = self._matrices(self.experts) - self._matrices(0)
        return self.weight_bytes(precision) - routed * untouched * precision.bytes

    def kv_bytes_per_token(self, precision: Precision = BF16, tp: int = 1) -> float:
        """B that one more token adds to the cache of each of `tp` GPUs, below any window.

        2 (key and value) * layers * KV heads on the GPU * head_dim * B per value.
        A GPU holds kv_heads / tp heads, and at least one: beyond that, heads are copied.
        MLA: layers * (kv_rank + rope_dim) * B per value, the whole of it on each GPU.
        Raises ValueError for what is not a Precision, and a tp that does not split the heads.

        >>> LLAMA_3_1_8B.kv_bytes_per_token()
        131072.0
        """
        kind(Precision, "precision.BF16", precision=precision)
        return self.layers * self._layer_kv_values(tp) * precision.bytes

    def kv_bytes(self, context: int, precision: Precision = BF16, tp: int = 1) -> float:
        """B that one sequence of `context` tokens has in the cache of each of `tp` GPUs.

        A layer with a window keeps its last `window` tokens only.
        Raises ValueError as `kv_bytes_per_token`, and when context is below 0.
        """
        at_least(0, context=context)
        kind(Precision, "precision.BF16", precision=precision)
        windows = self.windows or (None,) * self.layers
        tokens = sum(context if window is None else min(context, window) for window in windows)
        return tokens * self._layer_kv_values(tp) * precision.bytes

    def attention_flops(self, pairs: int) -> int:
        """FLOP of all layers' attention for `pairs` query-key pairs (causal prompt: n²/2).

        4 * heads * head_dim * layers * pairs: a multiply and an add for the score and for the
        value. MLA: keys of nope_dim + rope_dim, values of value_dim.
        Left out: windows (pairs beyond one are counted, so this is an upper bound), softmax, and
        MLA's form for decoding, which works on latent vectors of kv_rank values and does more
        arithmetic to read less.
        """
        value_dim = self.value_dim if self.kv_rank else self.head_dim
        return 2 * self.heads * (self.head_dim + value_dim) * self.layers * pairs

    def _layer_kv_values(self, tp: int) -> int:
        """Values that a token leaves in one layer's cache, on each GPU."""
        whole(1, tp=tp)
        if self.kv_rank:
            return self.kv_rank + self.rope_dim
        if self.kv_heads % tp and tp % self.kv_heads:
            raise ValueError(f"tp must divide {self.kv_heads} KV heads or be a multiple, got {tp}")
        return 2 * max(self.kv_heads // tp, 1) * self.head_dim

    def _matrices(self, experts: int) -> int:
        """Parameters of the layers' matrices with this many routed experts, without routers."""
        dense = self.layers - self._moe_layers
        feed_forward = dense * self.ffn
        feed_forward += self._moe_layers * (experts + self.shared_experts) * self.expert_ffn
        return self.layers * self._attention + 3 * self.hidden * feed_forward

    @property
    def _moe_layers(self) -> int:
        return self.layers - self.dense_layers if self.experts else 0

    @property
    def _router(self) -> int:
        return self._moe_layers * self.experts * self.hidden

    @property
    def _embedding(self) -> int:
        return self.vocab * self.hidden

    @property
    def _attention(self) -> int:
        """Parameters of one layer's attention matrices."""
        if self.kv_rank:
            width = self.heads * self.head_dim
            queries = self.hidden * width
            if self.q_rank:
                queries = self.q_rank * (self.hidden + width)
            latent = self.hidden * (self.kv_rank + self.rope_dim)
            unpack = self.kv_rank * self.heads * (self.nope_dim + self.value_dim)
            return queries + latent + unpack + self.heads * self.value_dim * self.hidden
        return 2 * self.hidden * (self.heads + self.kv_heads) * self.head_dim

    @property
    def _vectors(self) -> int:
        """Parameters of norms and biases."""
        layer = self.norms * self.hidden + self.q_rank + self.kv_rank
        layer += 2 * self.head_dim if self.qk_norm else 0
        layer += (self.heads + 2 * self.kv_heads) * self.head_dim if self.qkv_bias else 0
        router = self._moe_layers * self.experts if self.router_bias else 0
        return self.layers * layer + self.hidden + router


def _model(name: str, entry: dict) -> Model:
    needed = {"source", "read", "config"}
    fields(entry, needed, {"published_params", "params_source", *needed})
    return Model.from_config(entry["config"], name, source(entry))


MODELS = read_records("models.json", _model)

LLAMA_2_7B = MODELS["Llama-2-7B"]
LLAMA_2_13B = MODELS["Llama-2-13B"]
LLAMA_2_70B = MODELS["Llama-2-70B"]
LLAMA_3_1_8B = MODELS["Llama-3.1-8B"]
LLAMA_3_1_70B = MODELS["Llama-3.1-70B"]
LLAMA_3_1_405B = MODELS["Llama-3.1-405B"]
MISTRAL_7B = MODELS["Mistral-7B-v0.3"]
QWEN2_5_7B = MODELS["Qwen2.5-7B"]
QWEN2_5_72B = MODELS["Qwen2.5-72B"]
QWEN3_8B = MODELS["Qwen3-8B"]
QWEN3_32B = MODELS["Qwen3-32B"]
QWEN3_30B_A3B = MODELS["Qwen3-30B-A3B"]
GEMMA_3_27B = MODELS["Gemma-3-27B"]
MIXTRAL_8X7B = MODELS["Mixtral-8x7B"]
DEEPSEEK_V3 = MODELS["DeepSeek-V3"]
