"""How long one step of an engine takes. Pure functions: no state, no clock.

Two layers of one formula. `IDEAL` is the roofline that a reader derives by hand; `CALIBRATED` is
the same formula with four constants, fitted together to sums of measured kernels of engine steps.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple

from servesim.checks import at_least, kind, up_to_one, whole
from servesim.facts import read_json
from servesim.hardware import Accelerator
from servesim.models import Model
from servesim.precision import BF16, Precision

ACTIVATION_BYTES = 2  # B per activation value: they stay in 16 bit whatever the weights are


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What an engine reaches of a chip's peaks. The defaults are the ideal.

    memory          fraction of the peak B/s that reads of weights and cache reach, in (0, 1]
    compute         fraction of the peak FLOP/s that matrix products reach, in (0, 1]
    elementwise     the same fraction of B/s for everything between the products; None: left out
    layer_s         s per layer that neither roof explains (launches, norms)
    link_latency_s  s that one all-reduce takes however little it carries

    Raises ValueError for a fraction outside (0, 1] and for a negative time.
    """

    memory: float = 1.0
    compute: float = 1.0
    elementwise: float | None = None
    layer_s: float = 0.0
    link_latency_s: float = 0.0

    def __post_init__(self):
        for name in ("memory", "compute", "elementwise"):
            fraction = getattr(self, name)
            if fraction is not None:
                up_to_one(**{name: fraction})
        at_least(0, layer_s=self.layer_s, link_latency_s=self.link_latency_s)


IDEAL = Reach()
_fit = read_json("calibration.json")
CALIBRATED = Reach(**{k: _fit[k] for k in ("memory", "compute", "elementwise", "layer_s")})


class StepTime(NamedTuple):
    """Where the seconds of one step go. The step takes `total_s`."""

    weights_s: float  # reading the weights
    arithmetic_s: float  # multiplying by the weights
    kv_s: float  # reading the cache
    attention_s: float  # attention's arithmetic
    elementwise_s: float  # reads and writes between the matrix products
    layers_s: float  # what neither roof explains
    link_s: float  # all-reduces between the GPUs of a group

    @property
    def linear_s(self) -> float:
        """The linear layers: their reads and their arithmetic overlap, the longer one counts."""
        return max(self.weights_s, self.arithmetic_s)

    @property
    def total_s(self) -> float:
        others = self.kv_s + self.attention_s + self.elementwise_s + self.layers_s + self.link_s
        return self.linear_s + others

    @property
    def memory_s(self) -> float:
        """Seconds for which HBM is busy."""
        return self.weights_s + self.kv_s + self.elementwise_s

    @property
    def compute_s(self) -> float:
        """Seconds for which the tensor cores are busy."""
        return self.arithmetic_s + self.attention_s

    @property
    def bound(self) -> str:
        """The resource that is busy for longer: "memory" or "compute"."""
        return "memory" if self.memory_s >= self.compute_s else "compute"


def step(
    model: Model,
    chip: Accelerator,
    *,
    new_tokens: int,
    kv_bytes: float = 0,
    pairs: float = 0,
    tp: int = 1,
    weights: Precision = BF16,
    reach: Reach = IDEAL,
) -> StepTime:
    """Seconds of one forward pass on a group of `tp` chips, term by term.

        t = max(W / tp / (e_m BW),  2 P n / tp / (e_c peak))     linear layers
          + kv_bytes / (e_m BW)                                  attention's reads
          + 4 heads head_dim layers pairs / tp / (e_c peak)      attention's arithmetic
          + elementwise bytes / (e_e BW)
          + layers t_layer
          + 2 layers (alpha + 2 (tp - 1) / tp n d 2 B / link)    two all-reduces a layer

    Every chip reads its share W / tp of the weights and does its share of the arithmetic, at the
    same time as the others; so the maximum is taken over shares.

    new_tokens  n, tokens that the pass computes, over all sequences
    kv_bytes    cached B that attention reads, on ONE chip (`Model.kv_bytes` with this `tp`)
    pairs       query-key pairs that attention scores, over all sequences and one layer and head
    weights     precision of the weights: it sets W and the peak FLOP/s
    reach       e_m, e_c, e_e, t_layer, alpha

    Source: the roofline of Williams et al. (2009), doi 10.1145/1498765.1498785, as Pope et al.
    (2022), arXiv:2211.05102, apply it to a transformer; ring all-reduce: Patarasu and Yuan (2009).
    Left out: that the input embedding is read by the row (here all of W is read) and that logits
    are needed once per sequence (here: for every new token), which for Llama-3.1-8B adds 7 % each;
    writes of keys and values; routing and all-to-all of expert models; overlap with the link.
    Raises ValueError for arguments of the wrong kind, new_tokens or tp below 1, and negative
    kv_bytes or pairs.

    >>> from servesim.hardware import H100
    >>> from servesim.models import LLAMA_3_1_8B
    >>> t = step(LLAMA_3_1_8B, H100, new_tokens=1)
    >>> print(f"{t.total_s * 1e3:.2f} ms, bound by {t.bound}")
    4.79 ms, bound by memory
    """
    check_kinds(model, chip, reach, weights=weights)
    at_least(1, new_tokens=new_tokens)
    whole(1, tp=tp)
    at_least(0, kv_bytes=kv_bytes, pairs=pairs)
    bytes_per_s = reach.memory * chip.hbm_bytes_per_s
    flops = reach.compute * chip.flops(weights)
    return StepTime(
        weights_s=model.read_bytes(new_tokens, weights) / tp / bytes_per_s,
        arithmetic_s=2 * model.linear_params * new_tokens / tp / flops,
        kv_s=kv_bytes / bytes_per_s,
        attention_s=model.attention_flops(pairs) / tp / (reach.compute * chip.bf16_flops),
        elementwise_s=_elementwise_s(model, chip, new_tokens, tp, reach),
        layers_s=model.layers * reach.layer_s,
        link_s=_link_s(model, chip, new_tokens, tp, reach),
    )


def check_kinds(
    model: Model, chip: Accelerator, reach: Reach = IDEAL, **precisions: Precision
) -> None:
    """Raise ValueError unless each is what the functions here take."""
    kind(Model, "models.LLAMA_3_1_8B", model=model)
    kind(Accelerator, "hardware.H100", chip=chip)
    kind(Reach, "costs.IDEAL", reach=reach)
    kind(Precision, "precision.BF16", **precisions)


def _elementwise_s(model: Model, chip: Accelerator, tokens: int, tp: int, reach: Reach) -> float:
    """Activations that move between the products: norms, residuals, the FFN's gate, rotations.

    2 B n L (8 d + 3 d_ff / tp + 2 (h + 2 h_kv) d_h / tp) / (e_e BW)
    """
    if reach.elementwise is None:
        return 0.0
    values = 8 * model.hidden + 3 * _ffn_width(model) / tp
    values += 2 * (model.heads + 2 * model.kv_heads) * model.head_dim / tp
    moved = ACTIVATION_BYTES * tokens * model.layers * values
    return moved / (reach.elementwise * chip.hbm_bytes_per_s)


def _ffn_width(model: Model) -> float:
    """Hidden width of the feed-forward part that one token passes, averaged over the layers."""
    if not model.experts:
        return model.ffn
    active = (model.experts_per_token + model.shared_experts) * model.expert_ffn
    dense = model.dense_layers
    return (dense * model.ffn + (model.layers - dense) * active) / model.layers


def _link_s(model: Model, chip: Accelerator, tokens: int, tp: int, reach: Reach) -> float:
    if tp == 1:
        return 0.0
    message = ACTIVATION_BYTES * tokens * model.hidden
    all_reduce_s = reach.link_latency_s + 2 * (tp - 1) / tp * message / chip.link_bytes_per_s
    return 2 * model.layers * all_reduce_s


def decode(
    model: Model,
    chip: Accelerator,
    *,
    batch: int,
    context: int,
    tp: int = 1,
    weights: Precision = BF16,
    cache: Precision = BF16,
    reach: Reach = IDEAL,
) -> StepTime:
    """Seconds of one step in which each of `batch` sequences gains one token.

    context  tokens that each sequence has in the cache
    cache    precision of the cached keys and values

    Source: `step`.
    Left out: attention's arithmetic, which runs under its reads (a cached byte meets a few FLOP:
    heads / kv_heads; latent attention with many heads comes near the ridge).
    Raises ValueError for arguments of the wrong kind, batch or tp below 1, and a negative context.

    >>> from servesim.hardware import H100
    >>> from servesim.models import LLAMA_3_1_8B
    >>> print(f"{decode(LLAMA_3_1_8B, H100, batch=64, context=1024).total_s * 1e3:.2f} ms")
    7.36 ms
    """
    kind(Model, "models.LLAMA_3_1_8B", model=model)
    kind(Precision, "precision.BF16", cache=cache)
    at_least(1, batch=batch)  # a mean batch need not be whole
    at_least(0, context=context)
    kv_bytes = batch * model.kv_bytes(context, cache, tp)
    return step(
        model, chip, new_tokens=batch, kv_bytes=kv_bytes, tp=tp, weights=weights, reach=reach
    )


def prefill(
    model: Model,
    chip: Accelerator,
    *,
    prompt: int,
    batch: int = 1,
    tp: int = 1,
    weights: Precision = BF16,
    cache: Precision = BF16,
    reach: Reach = IDEAL,
) -> StepTime:
    """Seconds of one pass over `batch` whole prompts of `prompt` tokens each.

    Token i of a prompt attends to i tokens: prompt (prompt + 1) / 2 pairs for each sequence.

    Source: `step`.
    Left out: writing keys and values to the cache and reading them within the pass (they are
    small against the arithmetic), so `cache` changes nothing here; windows, which drop pairs.
    Raises ValueError for arguments of the wrong kind, and prompt, batch or tp below 1.

    >>> from servesim.hardware import H100
    >>> from servesim.models import LLAMA_3_1_8B
    >>> t = prefill(LLAMA_3_1_8B, H100, prompt=2048)
    >>> print(f"{t.total_s * 1e3:.1f} ms, bound by {t.bound}")
    32.2 ms, bound by compute
    """
    kind(Precision, "precision.BF16", cache=cache)
    whole(1, prompt=prompt)
    at_least(1, batch=batch)
    return step(
        model,
        chip,
        new_tokens=batch * prompt,
        pairs=batch * causal_pairs(prompt),
        tp=tp,
        weights=weights,
        reach=reach,
    )


def causal_pairs(prompt: int) -> int:
    """Query-key pairs of one causal pass over `prompt` tokens: 1 + 2 + ... + prompt.

    >>> causal_pairs(4)
    10
    """
    return prompt * (prompt + 1) // 2


def clock(
    model: Model,
    chip: Accelerator,
    *,
    tp: int = 1,
    weights: Precision = BF16,
    cache: Precision = BF16,
    reach: Reach = IDEAL,
) -> Callable[[int, Sequence[int], Sequence[int]], float]:
    """A function (new tokens, contexts that decode, prompts) -> s, as `engine.run` wants it.

    It gives `step(...).total_s`. Only attention depends on more than the number of new tokens, so
    the rest is computed once for each number.
    Raises ValueError for arguments of the wrong kind.

    >>> from servesim.hardware import H100
    >>> from servesim.models import LLAMA_3_1_8B
    >>> step_s = clock(LLAMA_3_1_8B, H100)
    >>> print(f"{step_s(2, [1000, 3000], []) * 1e3:.2f} ms")
    4.95 ms
    """
    check_kinds(model, chip, reach, weights=weights, cache=cache)
    plan = partial(step, model, chip, tp=tp, weights=weights, reach=reach)
    one = plan(new_tokens=1, kv_bytes=1, pairs=1)
    without_attention_s = lru_cache(None)(lambda new_tokens: plan(new_tokens=new_tokens).total_s)
    kv_bytes = lru_cache(None)(lambda context: model.kv_bytes(context, cache, tp))

    def step_s(new_tokens: int, contexts: Sequence[int], prompts: Sequence[int]) -> float:
        reads_s = one.kv_s * sum(map(kv_bytes, contexts))
        scores_s = one.attention_s * sum(map(causal_pairs, prompts))
        return without_attention_s(new_tokens) + reads_s + scores_s

    return step_s


def tokens_per_step(acceptance: float, guesses: int) -> float:
    """Mean tokens that one step of speculative decoding yields: (1 - a^(g+1)) / (1 - a).

    acceptance  a, chance that a guessed token is right, independent of the others, in [0, 1]
    guesses     g, tokens guessed before each step of the large model

    Source: Leviathan et al. (2023), arXiv:2211.17192, equation 1.
    Left out: the time that guessing takes; acceptance that falls along the guesses.
    Raises ValueError outside these ranges.

    >>> round(tokens_per_step(0.8, 4), 2)
    3.36
    """
    at_least(0, acceptance=acceptance)
    if acceptance > 1:
        raise ValueError(f"acceptance must be from 0 to 1, got {acceptance}")
    whole(0, guesses=guesses)
    return sum(acceptance**i for i in range(guesses + 1))
