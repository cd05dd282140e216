"""Recommendation by orrery estimate: published sizes, gathering by hand, limits and refusals."""

import json
from dataclasses import replace

import pytest

import orrery
from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.catalog.recommendation import get_recommendation
from orrery.scenario.recommendation import gather


def test_sizes_as_the_benchmark_states_them():
    model = get_recommendation("DLRM-DCNv2")
    assert (model.num_tables, sum(model.lookups)) == (26, 214)
    # 204 million rows of 128; 27 vectors side by side enter three cross layers of rank 512
    assert sum(model.rows) * 128 == pytest.approx(26.1e9, rel=0.01)
    assert model.met_width == 27 * 128
    macs = sum(x.num_macs for x in model.products())
    bottom, cross = 13 * 512 + 512 * 256 + 256 * 128, 3 * 2 * 3456 * 512
    top = 3456 * 1024 + 1024 * 1024 + 1024 * 512 + 512 * 256 + 256
    assert macs == bottom + cross + top
    # the older model multiplies every pair of 27 vectors: 351 products and the dense vector enter the top
    older = get_recommendation("dlrm")
    assert older.met_width == 128 + 351


def test_gathering_by_hand():
    # rows of 256 bytes are whole lines on both; 214 are read and 26 sums written for each of 1,000 samples
    model = get_recommendation("dlrm-dcnv2")
    for name in ("h100-sxm", "gaudi2"):
        found = gather(model, get_device(name), "fp16", 1000)
        assert (found.moved_bytes, found.useful_frac) == (1000 * 256 * (214 + 26), 1.0)
        assert found.time_s > found.moved_bytes / get_device(name).memory_bandwidth_bytes_per_s


def test_vectors_that_meet_while_they_are_gathered():
    # 479 words of each sample enter the top: the dense vector and 351 products, instead of 26 vectors of 128
    model, device = get_recommendation("dlrm"), get_device("a100-sxm-80gb")
    apart, met = (gather(model, device, "int8", 1000, is_met=is_met) for is_met in (False, True))
    assert apart.moved_bytes - met.moved_bytes == 1000 * (26 * 128 - 479)
    ask = {"model": "dlrm", "device": "a100-sxm-80gb", "weights": "int8", "batch": 65536}
    fused, eager = (orrery.estimate(**ask, engine=name) for name in ("tensorrt", "pytorch"))
    assert fused.gathered.moved_bytes / 65536 == pytest.approx(met.moved_bytes / 1000)
    assert fused.latency_s < eager.latency_s
    assert orrery.estimate(**{**ask, "batch": 1}, engine="pytorch").bound_by == "host"


def test_parts_add_up_and_batches_pay():
    small, large = (orrery.estimate(model="dlrm-dcnv2", device="h100-sxm", batch=b) for b in (64, 8192))
    assert large.latency_s == pytest.approx(large.gathered.time_s + large.products.time_s.sum())
    assert large.samples_per_s > small.samples_per_s
    found = large.to_json()
    assert found["energy_j_per_sample"] == pytest.approx(found["power_w"] / found["samples_per_s"])
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize(
    ("name", "operators"),
    [
        ("dlrm", 9 + 7),  # three products below, one of pairs, five on top; a ReLU after each dense one but the last
        ("dlrm-dcnv2", 14 + 7),  # two products for each of three cross layers, in place of that of pairs
    ],
)
def test_the_host_launches_every_operator_and_the_gathering(name, operators):
    found = orrery.estimate(model=name, device="a100-sxm-80gb", engine="pytorch", batch=1)
    assert found.host_s == pytest.approx((operators + 1) * found.runtime.operator_s)
    assert found.latency_s == found.host_s
    assert orrery.estimate(model=name, device="a100-sxm-80gb", engine="tensorrt", batch=1).host_s == 0.0


def test_power_and_dollars_by_hand():
    found = orrery.estimate(model="dlrm", device="a100-sxm-80gb", weights="fp16", usd_per_hour=3.6, electricity=0.0)
    assert found.usd_per_million_samples == pytest.approx(1e6 * 0.001 / found.samples_per_s)
    assert found.samples_per_s == pytest.approx(2048 / found.latency_s)
    assert found.weight_bytes == 2.0 * found.model.num_parameters


def test_the_longest_part_binds():
    found = orrery.estimate(model="dlrm", device="a100-sxm-80gb")
    busy_s = float(found.products.time_s.sum())
    for gather_s, host_s, bound_by in (
        (1.1 * busy_s, 0.0, "gather"),
        (0.9 * busy_s, 0.0, found.products.bound_by),
        (0.9 * busy_s, 3.0 * busy_s, "host"),
        (1.1 * busy_s, 2.0 * busy_s, "gather"),
    ):
        changed = replace(found, gathered=replace(found.gathered, time_s=gather_s), host_s=host_s)
        assert changed.bound_by == bound_by
        assert changed.latency_s == pytest.approx(max(gather_s + busy_s, host_s))


def test_tables_that_do_not_fit_say_so():
    found = orrery.estimate(model="dlrm-dcnv2", device="l4")
    assert found.infeasible.need > found.infeasible.have


def test_refusals_say_what_to_write():
    for change, words in (
        ({"device": None}, "device: missing"),
        ({"weights": "int4"}, "write fp32, fp16, bf16"),
        ({"input_tokens": 5}, "not of recommendation"),
        ({"devices": 2}, "one device"),
        ({"engine": "foo"}, "engine: .*Known: pytorch, tensorrt"),
        ({"device": "gaudi2", "weights": "int8"}, "multiplies no int8"),
        ({"device": "mi300x"}, "known of NVIDIA's GPUs and of Gaudi"),
    ):
        settings = {k: v for k, v in {"model": "dlrm", "device": "h100-sxm", **change}.items() if v is not None}
        with pytest.raises(ScenarioError, match=words):
            orrery.estimate(**settings)
