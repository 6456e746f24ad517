import pytest

from servesim.precision import BF16, FP8, FP16, FP32, INT4, INT8, PRECISIONS, Precision


def test_bytes_per_value():
    sizes = {FP32: 4, BF16: 2, FP16: 2, FP8: 1, INT8: 1}
    for precision, size in sizes.items():
        assert precision.bytes == size
    # 128 values of half a byte and one scale of two bytes
    assert INT4.bytes * 128 == 64 + 2


def test_smaller_groups_cost_more():
    sizes = [Precision("int4", 4, group).bytes for group in (None, 128, 64, 32)]
    assert sizes == sorted(sizes)
    assert sizes[-1] == 0.5 + 2 / 32


def test_precisions_are_found_by_their_name():
    assert set(PRECISIONS) == {"fp32", "bf16", "fp16", "fp8", "int8", "int4"}
    assert all(PRECISIONS[name].name == name for name in PRECISIONS)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("none", 0), "bits must be a number of at least 1 .* got 0"),
        (("int8", "8"), "bits must be a number of at least 1 .* got '8'"),
        (("int4", 4, 0), "group must be a whole number .* got 0"),
    ],
)
def test_a_wrong_precision_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Precision(*arguments)
