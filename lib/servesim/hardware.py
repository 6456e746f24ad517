"""What one chip can do at most, from its makers' documents."""

from dataclasses import MISSING, dataclass, fields

from servesim import checks
from servesim.facts import read_records, source
from servesim.precision import Precision


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """One chip. Peak figures only: how much of a peak is reached belongs to costs.py.

    Raises ValueError for a figure that is not a finite number above 0, for memory of less than
    1e9 B (it was meant in GB), and for another field of the wrong kind.
    """

    name: str
    bf16_flops: float  # FLOP/s, dense (without 2:4 sparsity), sums kept in 32 bit
    eight_bit_flops: float | None  # FLOP/s, dense; None: 8-bit values run at the 16-bit rate
    fp8: bool = True  # False: the 8-bit rate is for integers only
    hbm_bytes: float  # B, as the datasheet states it
    reported_bytes: float | None = None  # B, the total that the driver reports
    hbm_bytes_per_s: float  # B/s
    link_bytes_per_s: float  # B/s to the other chips of the node, ONE direction
    source: str  # where every number above can be looked up, and when that was done

    def __post_init__(self):
        for field in ("bf16_flops", "hbm_bytes_per_s", "link_bytes_per_s"):
            checks.above(0, **{field: getattr(self, field)})
        if self.eight_bit_flops is not None:
            checks.above(0, eight_bit_flops=self.eight_bit_flops)
        checks.at_least(10**9, **{"hbm_bytes (in bytes)": self.hbm_bytes})
        if self.reported_bytes is not None:
            checks.at_least(10**9, **{"reported_bytes (in bytes)": self.reported_bytes})
        checks.kind(bool, "True", fp8=self.fp8)
        checks.kind(str, "'H100'", name=self.name, source=self.source)

    @property
    def ridge(self) -> float:
        """FLOP that the chip can do in the time it reads one byte.

        Work with fewer FLOP per byte waits for memory, work with more waits for arithmetic.

        >>> round(H100.ridge)
        295
        """
        return self.bf16_flops / self.hbm_bytes_per_s

    @property
    def usable_bytes(self) -> float:
        """B of memory that the driver reports, or the datasheet's figure where that is unknown."""
        return self.hbm_bytes if self.reported_bytes is None else self.reported_bytes

    def flops(self, precision: Precision) -> float:
        """FLOP/s at which weights of this precision are multiplied.

        8-bit weights use the 8-bit units where the chip has them for that format.
        Everything narrower or without such units is unpacked to 16 bit first.
        Raises ValueError for what is not a Precision, and for values wider than 16 bit, whose rate
        is not in the table.

        >>> from servesim.precision import BF16, FP8
        >>> H100.flops(FP8) / H100.flops(BF16), A100_80.flops(FP8) / A100_80.flops(BF16)
        (2.0, 1.0)
        """
        checks.kind(Precision, "precision.BF16", precision=precision)
        if precision.bits > 16:
            raise ValueError(
                f"precision must be at most 16 bits wide, got {precision.name}: {precision.bits}"
            )
        if precision.bits != 8 or self.eight_bit_flops is None:
            return self.bf16_flops
        return self.bf16_flops if precision.name == "fp8" and not self.fp8 else self.eight_bit_flops


_FIELDS = {field.name: field for field in fields(Accelerator) if field.name != "name"}
_NEEDED = {"read", *(name for name, field in _FIELDS.items() if field.default is MISSING)}


def _accelerator(name: str, entry: dict) -> Accelerator:
    checks.fields(entry, _NEEDED, {"read", "note", *_FIELDS})
    figures = {key: value for key, value in entry.items() if key not in ("read", "note")}
    figures["source"] = source(entry)
    return Accelerator(name=name, **figures)


ACCELERATORS = read_records("accelerators.json", _accelerator)

A100_40 = ACCELERATORS["A100-40"]
A100_80 = ACCELERATORS["A100-80"]
H100 = ACCELERATORS["H100"]
H200 = ACCELERATORS["H200"]
B200 = ACCELERATORS["B200"]
L4 = ACCELERATORS["L4"]
L40S = ACCELERATORS["L40S"]
A10 = ACCELERATORS["A10"]
T4 = ACCELERATORS["T4"]
RTX_3090 = ACCELERATORS["RTX 3090"]
RTX_4090 = ACCELERATORS["RTX 4090"]
A6000 = ACCELERATORS["RTX A6000"]
MI300X = ACCELERATORS["MI300X"]
TPU_V5E = ACCELERATORS["TPU v5e"]
