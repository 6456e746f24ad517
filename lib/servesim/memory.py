"""What fits on a card: the budget, and the pool of cache blocks that is left."""

from typing import NamedTuple

from servesim.checks import above, at_least, kind, up_to_one, whole
from servesim.costs import ACTIVATION_BYTES, check_kinds
from servesim.hardware import Accelerator
from servesim.models import Model
from servesim.precision import BF16, Precision

GIB = 2**30  # B
LOGIT_BYTES = 4  # B of one score: engines choose the next token in 32 bit


class Budget(NamedTuple):
    """Bytes of one card, by use. `card` is the sum of all the others."""

    card: float
    unused: float  # what the engine is told not to touch
    weights: float
    activations: float
    other: float
    pool: float  # what is left for the cache


def budget(
    model: Model,
    chip: Accelerator,
    *,
    utilisation: float = 0.9,
    weights: Precision = BF16,
    activations: float = 0.0,
    other: float = 0.0,
    tp: int = 1,
) -> Budget:
    """Split one card of a group of `tp`, in B: pool = utilisation card - weights / tp - the rest.

    utilisation  share of the card that the engine may use, in (0, 1]
    activations  B that the largest step needs besides weights and cache
    other        B of everything else: runtime, graphs, communication buffers

    Source: the rule of today's engines (vLLM's gpu_memory_utilization works like this).
    Left out: what differs between the cards of a group; fragmentation.
    Raises ValueError for arguments of the wrong kind or out of range, and when no pool is left: it
    says what is missing.

    >>> from servesim.hardware import H100
    >>> from servesim.models import LLAMA_3_1_8B
    >>> b = budget(LLAMA_3_1_8B, H100, activations=2e9)
    >>> sum(b[1:]) == b.card
    True
    """
    check_kinds(model, chip, weights=weights)
    up_to_one(utilisation=utilisation)
    at_least(0, activations=activations, other=other)
    whole(1, tp=tp)
    card = chip.usable_bytes
    share = model.weight_bytes(weights) / tp
    unused = (1 - utilisation) * card
    left = card - unused - share - activations - other
    if left < 0:
        raise ValueError(
            f"{model.name} does not fit on {chip.name}: {-left / GIB:.2f} GiB are missing "
            f"({utilisation:.0%} of {card / GIB:.2f} GiB usable, weights {share / GIB:.2f}, "
            f"activations {activations / GIB:.2f}, other {other / GIB:.2f}, tp {tp})"
        )
    return Budget(card, unused, share, activations, other, left)


def activation_bytes(model: Model, *, tokens: int, sequences: int = 256, copies: int = 10) -> int:
    """Estimated peak B of a step's intermediate results; all layers use the same space in turn.

        2 n d 2 B + max(3 n d_ff 2 B, copies sequences V 4 B)

    The residual stream and a copy of it, and the larger of what never exists together: the widest
    place of a feed-forward block, and the logits once the last layer is done.

    tokens     n, in the largest step
    sequences  that choose a next token in it
    copies     arrays of the size of the logits at once; 10 where a sampler sorts them

    Source of the copies: 1.25 GiB for 256 sequences and 131,072 words, vLLM's pull request 32558.
    Checked against: the start-up logs in chapter 24, 4 to 7 % below this.
    Left out: attention's working space, buffers between cards, vision encoders, a step whose tokens
    meet in one expert.
    Raises ValueError for arguments of the wrong kind or out of range.

    >>> from servesim.models import LLAMA_3_1_8B
    >>> print(f"{activation_bytes(LLAMA_3_1_8B, tokens=8192) / GIB:.2f} GiB")
    1.35 GiB
    """
    kind(Model, "models.LLAMA_3_1_8B", model=model)
    whole(1, tokens=tokens, sequences=sequences, copies=copies)
    stream = 2 * tokens * model.hidden * ACTIVATION_BYTES
    feed_forward = 3 * tokens * model.ffn * ACTIVATION_BYTES
    logits = copies * sequences * model.vocab * LOGIT_BYTES
    return stream + max(feed_forward, logits)


class Pool(NamedTuple):
    """Cache memory in blocks of `block` tokens."""

    blocks: int
    block: int
    bytes_per_token: float

    @property
    def tokens(self) -> int:
        return self.blocks * self.block

    def requests(self, context: int) -> int:
        """Requests of `context` tokens that fit at once; each takes whole blocks.

        >>> pool(12 * 2**30, bytes_per_token=98_304).requests(256)
        512
        """
        at_least(1, context=context)
        return self.blocks // -(-context // self.block)


def pool(pool_bytes: float, *, block: int = 16, bytes_per_token: float) -> Pool:
    """Whole blocks in `pool_bytes`: blocks = floor(pool / (block bytes_per_token)).

    block            tokens in a block
    bytes_per_token  B that one token caches on this card (`Model.kv_bytes_per_token`)

    Source: Kwon et al. (2023), PagedAttention, arXiv:2309.06180, section 4.
    Left out: windowed layers, which stop growing; bookkeeping of the blocks.
    Raises ValueError for arguments out of range.

    >>> pool(12 * 2**30, bytes_per_token=819_200).tokens   # LLaMA-13B, from the paper's table 1
    15728
    """
    at_least(0, pool_bytes=pool_bytes)
    whole(1, block=block)
    above(0, bytes_per_token=bytes_per_token)
    return Pool(int(pool_bytes // (block * bytes_per_token)), block, bytes_per_token)
