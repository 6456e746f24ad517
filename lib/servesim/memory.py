"""What fits on a card: the budget, and the pool of cache blocks that is left."""

from typing import NamedTuple

from servesim.checks import above, at_least, kind, up_to_one, whole
from servesim.hardware import Accelerator
from servesim.models import Model
from servesim.precision import BF16, Precision

GIB = 2**30  # B


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
    kind(Model, "models.LLAMA_3_1_8B", model=model)
    kind(Accelerator, "hardware.H100", chip=chip)
    kind(Precision, "precision.BF16", weights=weights)
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
