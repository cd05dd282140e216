"""Facts of devices by hand: what a user's file may say of a machine, and what a machine says of itself."""

import pytest

from orrery.base.errors import FactError
from orrery.catalog.device_file import OPTIONAL, PLAUSIBLE, PLAUSIBLE_PEAK, read_device, speed_drift_ratio
from orrery.catalog.device_names import plain
from orrery.catalog.devices import FOLDER, describe, get_device, template


def test_numbers_beyond_every_machine_are_refused():
    """Least and greatest of what any machine has: a slip of a unit lies outside."""
    assert PLAUSIBLE == {
        "memory_capacity_bytes": (1e8, 1e13),
        "memory_bandwidth_bytes_per_s": (1e9, 1e17),
        "vector_flops_per_s": (1e9, 1e17),
        "num_compute_units": (1, 1e6),
        "compute_clock_hz": (1e8, 1e10),
        "last_level_cache_bytes": (1e4, 1e11),
        "power_limit_w": (1, 1e5),
        "idle_power_w": (0.01, 1e4),
        "num_devices_per_node": (1, 1e4),
        "num_scaleup_devices": (1, 1e6),
        "scaleup_each_way_bytes_per_s": (1e6, 1e14),
        "scaleout_each_way_bytes_per_s": (1e6, 1e14),
        "host_each_way_bytes_per_s": (1e6, 1e14),
        "scaleup_latency_s": (1e-9, 0.1),
        "scaleout_latency_s": (1e-9, 0.1),
        "host_latency_s": (1e-9, 0.1),
    }
    assert OPTIONAL == {
        "host_power_w": (0.0, 10_000.0),
        "host_time_ratio": (0.1, 100.0),
        "battery_j": (1.0, 1e9),
        "sustained_power_w": (0.01, 1e5),
        "thermal_time_constant_s": (0.1, 1e5),
        "num_lookup_tables": (1e3, 1e9),
        "num_multiplier_blocks": (1.0, 1e7),
        "near_memory_flops_per_s": (1e9, 1e19),
        "near_memory_bandwidth_bytes_per_s": (1e9, 1e17),
    }
    assert PLAUSIBLE_PEAK == (1e8, 1e19)


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
