"""Image networks by orrery estimate: one reading of windows by hand, limits and refusals."""

import json

import numpy as np
import pytest

import orrery
from orrery import kernels
from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.execution.edge.times import Numbers, layer_costs
from orrery.kernels.ops import Gemm
from orrery.models.image_networks import network_of
from orrery.models.networks import Convolution


def test_windows_are_read_once():
    # 3 x 3 on 56 x 56 pixels of 64 channels: the product would read 9 x 64 words a pixel, the convolution reads 64
    device, layer = get_device("l4"), Convolution(positions=56**2, inputs=64, outputs=64, taps=9)
    costs = layer_costs([layer], device, Numbers(format="fp16"), 32)
    rows = 32 * 56**2
    product = kernels.predict(Gemm(m=rows, n=64, k=576, format="fp16", quantises_input=False), device)
    assert costs.moved_bytes[0] == pytest.approx(float(np.squeeze(product.bytes)) - 8 * rows * 64 * 2)
    assert costs.flops[0] == 2.0 * rows * 576 * 64
    assert costs.time_s[0] < float(np.squeeze(product.time_s))
    assert costs.time_s[0] >= max(costs.compute_s[0], costs.memory_s[0])
    # a pointwise layer is its product
    flat = Convolution(positions=56**2, inputs=64, outputs=64)
    same = kernels.predict(Gemm(m=rows, n=64, k=64, format="fp16", quantises_input=False), device)
    assert layer_costs([flat], device, Numbers(format="fp16"), 32).time_s[0] == float(np.squeeze(same.time_s))


def test_a_batch_adds_up_and_pays():
    one, many = (orrery.estimate(model="resnet-50", device="l4", batch=b) for b in (1, 64))
    assert one.latency_s < many.latency_s < 64 * one.latency_s
    assert many.images_per_s == pytest.approx(64 / many.latency_s)
    assert many.costs.flops.sum() == pytest.approx(2.0 * 64 * network_of("resnet-50").num_macs)
    found = many.to_json()
    assert found["energy_j_per_image"] == pytest.approx(found["power_w"] / found["images_per_s"])
    assert found["usd_per_thousand_images"] > 0.0
    json.dumps(found, allow_nan=False)
    # no picture is faster than the device's roof of arithmetic
    least_s = many.costs.flops.sum() / get_device("l4").dense_flops_per_s["fp16"]
    assert many.latency_s > least_s


def test_an_eager_framework_runs_every_pass_and_launches_it():
    ask = {"model": "resnet-50", "device": "l4"}
    fused, eager = (orrery.estimate(**ask, batch=32, engine=name) for name in ("tensorrt", "pytorch"))
    assert (fused.host_s, fused.latency_s) == (0.0, pytest.approx(float(fused.costs.time_s.sum())))
    assert eager.latency_s > 1.3 * fused.latency_s
    # 54 products, 53 norms, 49 activations and 16 additions, launched one after another whatever the batch
    one = orrery.estimate(**ask, engine="torch")
    assert one.bound_by == "host"
    assert one.latency_s == one.host_s == eager.host_s == pytest.approx(172 * one.runtime.operator_s)
    interval = eager.to_json()["intervals"]["images_per_s"]
    assert interval["low_80"] < eager.images_per_s < interval["high_80"]


def test_integer_codes_pass_where_the_runtime_keeps_them():
    half, codes = (orrery.estimate(model="resnet-50", device="l4", batch=32, weights=w) for w in ("fp16", "int8"))
    assert codes.numbers.is_integer_only
    assert codes.costs.moved_bytes.sum() == pytest.approx(half.costs.moved_bytes.sum() / 2.0, rel=0.02)
    # a transformer's softmax and norms take floats, and an eager framework's everything
    for model, engine in (("vit-b-16", "tensorrt"), ("resnet-50", "pytorch")):
        asked = orrery.estimate(model=model, device="l4", weights="int8", engine=engine)
        assert not asked.numbers.is_integer_only


def test_a_batch_that_does_not_fit_says_so():
    found = orrery.estimate(model="vgg-16", device="jetson-nano", batch=1000)
    assert found.infeasible.need > found.infeasible.have


def test_refusals_say_what_to_write():
    for change, words in (
        ({"device": None}, "device: missing"),
        ({"weights": "int4"}, "write fp32, fp16, bf16"),
        ({"input_tokens": 5}, "input_tokens: not of pictures"),
        ({"devices": 2}, "runs on one device"),
        ({"engine": "foo"}, "engine: .*Known: pytorch, tensorrt"),
        ({"engine": "pytorch", "weights": "int8", "integer_only": True}, "PyTorch, eager puts floats between"),
    ):
        settings = {k: v for k, v in {"model": "vit-b-16", "device": "l4", **change}.items() if v is not None}
        with pytest.raises(ScenarioError, match=words):
            orrery.estimate(**settings)


def test_spellings_of_a_network_are_one():
    one, other = (orrery.estimate(model=name, device="l4") for name in ("resnet-50", "ResNet50"))
    assert (one.network.name, one.latency_s) == (other.network.name, other.latency_s)
