"""Facts of devices by hand: what a user's file may say of a machine, and what a machine says of itself."""

from math import log2

import pytest

from orrery.base.errors import FactError
from orrery.catalog.device_file import PLAUSIBLE, read_device, speed_drift_ratio
from orrery.catalog.device_names import plain
from orrery.catalog.devices import FOLDER, describe, device_names, get_device, template

WHOLE = frozenset(
    {"turing", "volta", "ampere", "ada", "hopper", "blackwell-consumer", "pascal", "maxwell", "xe-hpg", "xe2", "xe-hpc"}
    | {"cdna1", "cdna2", "cdna3", "cdna4", "gcn", "rdna2", "rdna3", "rdna4"}
    | {f"apple-m{n}" for n in range(1, 6)}
)
"""Generations whose units do a power of two of operations in a cycle, and whose sheets say peaks to three digits."""

OWN_CLOCK = {
    "hopper": "fp32",  # the sheet's vector peak is at the boost clock, matrix peaks are at that under load
    "rtx-pro-6000-server": "fp32",  # likewise
    "arc-b580": "fp16 bf16 int8",  # matrix peaks at the highest clock, which the sheet's vector peak does not reach
    "gb10": "fp16 bf16 fp8 int8 fp4 nvfp4",  # said as one rounded petaflop of sparse four-bit products
    "h20": "tf32 fp16 bf16 fp8 int8",  # limited by license, not by its units
    "p4": "int8",  # 22 TOPS, to two digits
}
"""Peaks that a maker says of another clock or another machine, by device or generation."""

ROUNDED = 0.015
"""Half of the last of three digits, and clocks to the nearest 10 MHz."""


def of_a_cycle(device):
    """Operations of a unit in a cycle, by format, of the peaks that follow from units and clock."""
    apart = {*OWN_CLOCK.get(device.name, "").split(), *OWN_CLOCK.get(device.generation, "").split()}
    each = device.num_compute_units * device.compute_clock_hz
    return {rate: peak / each for rate, peak in device.dense_flops_per_s.items() if rate not in apart}


def test_peaks_are_units_times_clock_times_a_power_of_two():
    """A sparse rate or a wrong count of units that a sheet misleads to is caught where it is no power of two."""
    found = [get_device(name) for name in device_names()]
    checked = [device for device in found if device.generation in WHOLE]
    assert len(checked) > 100
    wrong = {
        (device.name, rate): ratio
        for device in checked
        for rate, ratio in of_a_cycle(device).items()
        if abs(ratio / 2 ** round(log2(ratio)) - 1) > ROUNDED
    }
    assert wrong == {}


SLOWER = {
    "b300": {"int8"},  # eight-bit integers were given up for four-bit floats
    "gb300": {"int8"},
    "rubin": {"int8"},
    "mi455x": {"int8"},
    **{f"v100-{kind}-{size}gb": {"int8"} for kind in ("pcie", "sxm") for size in (16, 32)},  # on vector units alone
    "galaxy-s24-ultra": {"bf16"},
    "jetson-nano": {"bf16"},
}
"""Formats that a machine computes more slowly than wider ones."""


def test_narrower_products_are_no_slower():
    """fp32 <= tf32 <= 16 bits <= 8 bits <= 4 bits on the matrix units of one machine."""
    order = (("fp32",), ("tf32",), ("fp16", "bf16"), ("fp8", "int8"), ("fp4", "nvfp4"))
    wrong = []
    for name in device_names():
        peaks = get_device(name).dense_flops_per_s
        widest = 0.0
        for rates in order:
            there = [rate for rate in rates if rate in peaks and rate not in SLOWER.get(name, ())]
            wrong += [(name, rate) for rate in there if peaks[rate] < widest * (1 - ROUNDED)]
            widest = max([widest, *(peaks[rate] for rate in there)])
    assert wrong == []


SLIPS = {"_bytes": 1e9, "_bytes_per_s": 1e9, "_hz": 1e6, "_flops_per_s": 1e12, "_w": 1e3, "_s": 1e6}
"""A unit that a number may be in by a slip, over the one that it is in: GB, GB/s, MHz, TFLOP/s, kW, microseconds."""


def test_every_device_is_plausible_and_a_slip_of_a_unit_is_not():
    """A number in a larger unit is too small for its bounds; caches of megabytes and idle watts may pass."""
    passes = {"last_level_cache_bytes", "idle_power_w", "power_limit_w", "memory_capacity_bytes"}
    for name in device_names():
        device = get_device(name)
        for fact, (least, most) in PLAUSIBLE.items():
            value = getattr(device, fact, None)
            if value is None:
                continue
            assert least <= value <= most or value == 0, (name, fact)
            slip = next((ratio for unit, ratio in SLIPS.items() if fact.endswith(unit)), 0.0)
            if slip and fact not in passes and not fact.endswith("latency_s"):
                assert value / slip < least, (name, fact)


def device_text(fact, value):
    lines = template().splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith(f"{fact} ="))
    lines[place] = f'{fact} = {{ value = {value}, from = "sheet", at = "x" }}'
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("fact", "fine", "wrong", "says"),
    [
        ("num_compute_units", "1", "0", "between 1 and 1e"),
        ("num_compute_units", "1000000", "1000001", "between"),
        ("num_compute_units", "2", "1.5", "whole number"),
        ("power_limit_w", '"1 W"', '"0.9 W"', "between 1 and 100000"),
        ("power_limit_w", '"100000 W"', '"100001 W"', "between"),
        ("dense_bf16_flops_per_s", '"1e19 FLOP/s"', '"1.1e19 FLOP/s"', "between"),
        ("scaleup_topology", '"ring"', '"star"', "none of switch, mesh"),
        ("scaleup_name", '"x"', '""', "word in quotes"),
        ("scaleup_has_reduction", "true", '"yes"', "true or false"),
    ],
)
def test_a_users_device_has_plausible_facts(tmp_path, fact, fine, wrong, says):
    path = tmp_path / "mine.toml"
    path.write_text(device_text(fact, fine), encoding="utf-8")
    assert read_device(path).name == "mine"
    path = tmp_path / "yours.toml"
    path.write_text(device_text(fact, wrong), encoding="utf-8")
    with pytest.raises(FactError, match=says):
        read_device(path)


def test_a_device_is_made_of_its_facts(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(template(), encoding="utf-8")
    mine, model = read_device(path), get_device("h100-sxm")
    for name in ("memory_capacity_bytes", "num_compute_units", "devices_per_node", "host_time_ratio", "idle_power_w"):
        assert getattr(mine, name) == pytest.approx(getattr(model, name), rel=1e-5)
    assert (mine.scaleup.num_devices, mine.scaleout.num_devices) == (model.scaleup.num_devices, 0)
    assert (mine.host.topology, mine.host.has_reduction) == ("bus", False)
    assert mine.dense_flops_per_s == pytest.approx(dict(model.dense_flops_per_s), rel=1e-5)
    assert mine.unrest_ratio == 1.0
    without = "\n".join(line for line in template().splitlines() if not line.startswith("host_power_w"))
    path = tmp_path / "half.toml"
    path.write_text(without, encoding="utf-8")
    half = read_device(path)
    assert half.host_power_w == half.power_limit_w / 2
    held = without.replace(f'"{model.host.name}"', '"unified memory"')
    path = tmp_path / "held.toml"
    path.write_text(held, encoding="utf-8")
    assert read_device(path).host_power_w == 0.0


@pytest.mark.parametrize("ratio", [1.0, 1, 2.5])
def test_a_machine_whose_speed_moved_says_how_far(ratio):
    assert speed_drift_ratio("f", {"conditions": {"widen_ratio": ratio}}) == ratio
    assert speed_drift_ratio("f", {}) == 1.0


@pytest.mark.parametrize("ratio", [0.99, True, "2", float("inf")])
def test_a_machine_whose_speed_shrank_is_refused(ratio):
    with pytest.raises(FactError, match="ratio of 1 or more"):
        speed_drift_ratio("f", {"conditions": {"widen_ratio": ratio}})


def test_names_without_makers():
    assert plain("NVIDIA H100-SXM5") == "h100sxm5"
    assert plain("nvidia tesla V100+") == "v100plus"
    assert plain("Instinct") == "instinct"


def test_a_device_tells_every_fact_and_what_others_say():
    rows = describe(get_device("h100-sxm"))
    assert len(rows) >= len(get_device("h100-sxm").facts)
    assert FOLDER.is_dir()
