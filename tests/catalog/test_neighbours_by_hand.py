"""Constants of a device of a new generation, by likeness, worked out by hand."""

from dataclasses import replace
from math import exp, log
from pathlib import Path

import pytest

from orrery.base.cost import Spread
from orrery.catalog.devices import FOLDER, get_device
from orrery.catalog.neighbours import average, by_likeness, known_generations, likeness, spreads
from orrery.hardware.calibration import Calibration

H100 = get_device("h100-sxm")
ONE = Spread(low_80_ratio=1.0, high_80_ratio=1.0, low_95_ratio=1.0, high_95_ratio=1.0)


def entry(constants, **more):
    fields = {"op": "gemm", "format": "bf16", "engine": "vllm", "origin": "device", "spread": ONE} | more
    return Calibration(constants=constants, **fields)


def test_a_device_is_like_itself():
    assert likeness(H100, H100, 0.5) == 1.0


def test_likeness_falls_with_the_distance_of_logarithms():
    more_cache = replace(H100, last_level_cache_bytes=H100.last_level_cache_bytes * exp(0.5))
    assert likeness(H100, more_cache, 0.5) == pytest.approx(exp(-0.5))
    assert likeness(more_cache, H100, 0.5) == pytest.approx(exp(-0.5))
    # twice the bandwidth halves the time that the cache lasts and doubles a unit's share
    faster = replace(H100, memory_bandwidth_bytes_per_s=2.0 * H100.memory_bandwidth_bytes_per_s)
    assert likeness(H100, faster, 1.0) == pytest.approx(exp(-(log(2.0) ** 2)))


def test_constants_are_averaged_in_logarithms():
    assert average([{"a": 0.2}, {"a": 0.8}], [1.0, 1.0])["a"] == pytest.approx(0.4)
    assert average([{"a": 0.2}, {"a": 0.8}], [3.0, 1.0])["a"] == pytest.approx(0.2 * 4.0**0.25)


def test_choices_are_voted_on():
    assert average([{"a": 64.0}, {"a": 128.0}, {"a": 64.0}], [1.0, 3.0, 1.0])["a"] == 128.0
    assert average([{"a": 64.0}, {"a": 128.0}, {"a": 64.0}], [2.0, 3.0, 2.0])["a"] == 64.0


def test_what_may_be_zero_is_averaged_as_it_is():
    assert average([{"a": 0.0}, {"a": 0.5}], [1.0, 1.0])["a"] == 0.25


def test_only_what_all_have_in_common_is_averaged():
    assert average([{"a": 0.2, "b": 0.1}, {"a": 0.8}], [1.0, 1.0]).keys() == {"a"}


def test_devices_of_one_generation_share_its_weight():
    entries = {
        "h100-sxm": {("gemm", "bf16", "vllm"): entry({"a": 0.1})},
        "h200-sxm": {("gemm", "bf16", "vllm"): entry({"a": 0.4})},
        "b200": {("gemm", "bf16", "vllm"): entry({"a": 0.8})},
    }
    found = by_likeness(H100, entries, 1e6, ("gemm",))["gemm", "bf16", "vllm"]  # so wide that all are alike
    assert found.constants["a"] == pytest.approx((0.2 * 0.8) ** 0.5)
    assert found.origin == "any"


def test_the_likest_weighs_most():
    entries = {
        "h100-sxm": {("gemm", "bf16", "vllm"): entry({"a": 0.1})},
        "l40s": {("gemm", "bf16", "vllm"): entry({"a": 0.9})},
    }
    near = by_likeness(H100, entries, 0.5, ("gemm",))["gemm", "bf16", "vllm"].constants["a"]
    weight = likeness(H100, get_device("l40s"), 0.5)
    assert near == pytest.approx(0.1 * 9.0 ** (weight / (1.0 + weight)))
    assert near < 0.2


def test_one_generation_alone_and_other_laws_say_nothing():
    alone = {"h100-sxm": {("gemm", "bf16", "vllm"): entry({"a": 0.1})}}
    assert not by_likeness(H100, alone, 0.5, ("gemm",))
    both = alone | {"l40s": {("gemm", "bf16", "vllm"): entry({"a": 0.9}, law="host")}}
    assert not by_likeness(H100, both, 0.5, ("gemm",))
    assert not by_likeness(H100, both, 0.5, ("moe",))


def copy(folder: Path, generation: str) -> Path:
    text = (FOLDER / "h100-sxm.toml").read_text(encoding="utf-8")
    path = folder / f"like-h100-{generation}.toml"
    path.write_text(text.replace('generation = "hopper"', f'generation = "{generation}"'), encoding="utf-8")
    return path


def test_a_file_of_a_new_generation_gets_them_with_intervals_of_generations_left_out(tmp_path):
    _, intervals = spreads()
    found = get_device(copy(tmp_path, "mine")).calibrations["gemm", "bf16", "tensorrt-llm"]
    assert found.spread.high_80_ratio == intervals["gemm"].high_80_ratio
    assert found.residual is None
    assert found.fact is not None
    assert found.fact.at.startswith("constants of measured generations by likeness: ")


def test_a_file_of_a_known_generation_inherits_its_measurements(tmp_path):
    assert "hopper" in known_generations()
    found = get_device(copy(tmp_path, "hopper")).calibrations["gemm", "bf16", "tensorrt-llm"]
    assert found.origin == "generation"


@pytest.mark.parametrize("op", sorted(spreads()[1]))
def test_intervals_hold_what_is_predicted(op):
    one = spreads()[1][op]
    assert one.low_95_ratio <= one.low_80_ratio < 1.0 < one.high_80_ratio <= one.high_95_ratio
