import dataclasses
import json
from datetime import date

import pytest

from servesim import facts, hardware
from servesim.facts import read_csv, read_json
from servesim.hardware import A100_40, A100_80, ACCELERATORS, B200, H100, H200, TPU_V5E
from servesim.models import MODELS
from servesim.precision import BF16, FP8, FP16, FP32, INT4, INT8

TABLE = read_json("accelerators.json")


def test_ridges_by_hand():
    # datasheet FLOP/s over bytes/s: 989.5 / 3.35, 312 / 2.039 and 197 / 0.819
    assert round(H100.ridge) == 295
    assert round(A100_80.ridge) == 153
    assert round(TPU_V5E.ridge) == 241


def test_links_are_one_direction():
    # the datasheets' NVLink figures add both directions: 600, 900, 900 and 1,800 GB/s
    both = {A100_80: 600e9, H100: 900e9, H200: 900e9, B200: 1800e9}
    for chip, total in both.items():
        assert chip.link_bytes_per_s == total / 2


@pytest.mark.parametrize(
    "name, mib",
    [("A100-40", 40960), ("A100-80", 81920), ("H100", 81559), ("H200", 143771), ("L4", 23034),
     ("A10", 23028), ("T4", 15360), ("RTX 3090", 24576), ("RTX 4090", 24564)],
)  # fmt: skip
def test_reported_memory_is_what_nvidia_smi_shows(name, mib):
    assert ACCELERATORS[name].reported_bytes == mib * 2**20
    assert ACCELERATORS[name].usable_bytes == mib * 2**20


def test_usable_memory_falls_back_to_the_datasheet():
    assert TPU_V5E.reported_bytes is None
    assert TPU_V5E.usable_bytes == TPU_V5E.hbm_bytes == 16e9


def test_rate_for_each_precision():
    assert H100.flops(BF16) == H100.flops(FP16) == H100.flops(INT4) == 989.5e12
    assert H100.flops(FP8) == H100.flops(INT8) == 1979e12
    assert A100_80.flops(INT8) == 624e12  # Ampere multiplies 8-bit integers, not fp8
    assert A100_80.flops(FP8) == A100_80.flops(BF16) == 312e12
    without = dataclasses.replace(H100, eight_bit_flops=None)
    assert without.flops(FP8) == without.flops(INT8) == without.bf16_flops
    with pytest.raises(ValueError, match="precision must be at most 16 bits wide, got fp32: 32"):
        H100.flops(FP32)


@pytest.mark.parametrize("name", TABLE)
def test_every_figure_has_a_source_and_a_date(name):
    chip, entry = ACCELERATORS[name], TABLE[name]
    assert any(maker in entry["source"] for maker in ("(NVIDIA)", "(AMD)", "(Google)"))
    assert date.fromisoformat(entry["read"]) >= date(2026, 1, 1)
    assert entry["read"] in chip.source


@pytest.mark.parametrize("chip", ACCELERATORS.values(), ids=lambda chip: chip.name)
def test_figures_are_in_si_units(chip):
    # wide enough for any chip of the last eight years, too narrow for a slip of a thousand
    assert 50 < chip.ridge < 500
    assert 1e10 < chip.usable_bytes < 1e12
    assert 1e10 < chip.link_bytes_per_s < chip.hbm_bytes_per_s < 1e13
    # eight-bit units are twice as fast; four times where 32-bit sums halve the 16-bit rate
    assert 1.9 < chip.eight_bit_flops / chip.bf16_flops < 4.1
    # a "GB" of a datasheet is at most a GiB
    assert 0.99 < chip.usable_bytes / chip.hbm_bytes < 1.075


def test_each_chip_has_a_name_in_the_module():
    named = {value for value in vars(hardware).values() if isinstance(value, hardware.Accelerator)}
    assert named == set(ACCELERATORS.values())
    assert A100_40.name == "A100-40"


@pytest.mark.parametrize(
    "change, message",
    [
        ({"bf16_flops": 0}, "bf16_flops must be a number above 0 .* got 0"),
        ({"link_bytes_per_s": -1.0}, "link_bytes_per_s must be .* got -1.0"),
        ({"hbm_bytes": float("nan")}, "hbm_bytes .* must be .* got nan"),
        ({"reported_bytes": 0}, r"reported_bytes \(in bytes\) must be .* got 0"),
        ({"hbm_bytes": 32}, r"hbm_bytes \(in bytes\) must be .* at least 1000000000 .* got 32"),
        ({"fp8": "yes"}, "fp8 must be of the class bool, such as True, got 'yes'"),
        ({"source": None}, "source must be of the class str, .* got None"),
        ({"name": 100}, "name must be of the class str, such as 'H100', got 100"),
        ({"eight_bit_flops": 0}, "eight_bit_flops must be .* got 0"),
        ({"bf16_flops": "1e14"}, "bf16_flops must be a number above 0 .* got '1e14'"),
    ],
)
def test_a_wrong_figure_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(H100, **change)


def test_a_name_that_is_not_in_the_table():
    for table in (ACCELERATORS, MODELS):
        with pytest.raises(KeyError, match=f"h100 is none of {', '.join(table)}"):
            table["h100"]
        assert table.get("h100") is None and "h100" not in table


@pytest.mark.parametrize("read", [read_json, read_csv])
def test_an_unknown_table_is_refused(read):
    with pytest.raises(ValueError, match="name must be one of accelerators.json, .*got 'chips'"):
        read("chips")


@pytest.mark.parametrize(
    "text, message",
    [
        ("{", "chips.json must be JSON: "),
        ("\xe9", "chips.json must be JSON: 'utf-8' codec"),
        ("[1]", "chips.json must be a JSON object of records, got list"),
        ('{"X": 1}', "chips.json, record X: must be an object with the fields .*'bf16_flops'"),
        ('{"X": {"read": ""}}', r"chips.json, record X: the fields \['bf16_flops', .*are missing"),
        ('{"X": %s}', r"chips.json, record X: the fields \['tflops'\] must be among \['bf16_f"),
    ],
)
def test_a_wrong_record_is_refused(tmp_path, monkeypatch, text, message):
    wrong = json.dumps(TABLE["H100"] | {"tflops": 1})
    (tmp_path / "chips.json").write_text(text.replace("%s", wrong), encoding="latin-1")
    monkeypatch.setattr(facts, "files", lambda package: tmp_path)
    with pytest.raises(ValueError, match=message):
        facts.read_records("chips.json", hardware._accelerator)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"fp8": "yes"}, "X: fp8 must be of the class bool, such as True, got 'yes'"),
        ({"source": None}, "X: source must be of the class str, .* got None"),
        ({"read": 2026}, "X: read must be of the class str, such as '2026-11-29', got 2026"),
        ({"hbm_bytes": "80e9"}, "X: hbm_bytes .* must be a number .* got '80e9'"),
    ],
)
def test_a_wrong_value_in_a_record_is_refused(tmp_path, monkeypatch, change, message):
    (tmp_path / "chips.json").write_text(json.dumps({"X": TABLE["H100"] | change}))
    monkeypatch.setattr(facts, "files", lambda package: tmp_path)
    with pytest.raises(ValueError, match=message):
        facts.read_records("chips.json", hardware._accelerator)
