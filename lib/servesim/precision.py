"""How many bytes a stored value takes."""

from dataclasses import dataclass

from servesim.checks import at_least, whole

SCALE_BITS = 16  # one per group of quantised values


@dataclass(frozen=True, slots=True)
class Precision:
    """A format for weights or for the cache.

    8-bit weights mean W8A8: the activations are 8 bit too, so the chip's 8-bit units can work.
    4-bit weights are weight-only: they are unpacked and multiplied at the 16-bit rate.

    >>> INT4.bytes
    0.515625

    Left out: zero points of asymmetric formats; the one scale per matrix or channel of
    FP8 and INT8, which adds less than 0.1 %.
    Raises ValueError for bits below 1, and for a group that is not a whole number of at least 1.
    """

    name: str
    bits: int  # of one stored value
    group: int | None = None  # how many values share one 16-bit scale; None: too many to matter

    def __post_init__(self):
        at_least(1, bits=self.bits)
        if self.group is not None:
            whole(1, group=self.group)

    @property
    def bytes(self) -> float:
        """B per stored value, its share of the scale included: (bits + 16 / group) / 8."""
        scale_bits = SCALE_BITS / self.group if self.group else 0
        return (self.bits + scale_bits) / 8


FP32 = Precision("fp32", 32)
BF16 = Precision("bf16", 16)
FP16 = Precision("fp16", 16)
FP8 = Precision("fp8", 8)
INT8 = Precision("int8", 8)
INT4 = Precision("int4", 4, group=128)

PRECISIONS = {p.name: p for p in (FP32, BF16, FP16, FP8, INT8, INT4)}
