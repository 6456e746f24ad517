"""How many bytes a stored value takes."""

from dataclasses import dataclass

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
    """

    name: str
    bits: int  # of one stored value
    group: int | None = None  # how many values share one 16-bit scale; None: too many to matter

    def __post_init__(self):
        if self.bits < 1:
            raise ValueError(f"bits must be at least 1, got {self.bits}")
        if self.group is not None and self.group < 1:
            raise ValueError(f"group must be None or at least 1, got {self.group}")

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
