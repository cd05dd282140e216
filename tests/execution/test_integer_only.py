"""Networks in integers: products that write codes, counted kernels between them, and where nothing is gained."""

import numpy as np
import pytest

import orrery
from orrery import kernels
from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.execution.edge.times import Numbers, layer_costs
from orrery.kernels.elementwise import integer_only
from orrery.kernels.ops import Elementwise, Gemm
from orrery.models.image_networks import network_of
from orrery.models.networks import Convolution, RowWise, SelfAttention

DEVICE = get_device("rtx-2080-ti")
CODES, MIXED = Numbers(format="int8", is_integer_only=True), Numbers(format="int8")
SETTINGS = {"model": "vit-s-16", "device": "rtx-2080-ti", "batch": 8}


def one(layer, numbers, batch=1):
    costs = layer_costs([layer], DEVICE, numbers, batch)
    return costs.time_s[0], costs.flops[0], costs.moved_bytes[0]


def test_a_product_writes_codes_and_a_mixed_one_writes_sixteen_bits():
    layer = Convolution(positions=1024, inputs=256, outputs=512)
    read = 1024 * 256 + 256 * 512  # codes of one byte
    assert one(layer, CODES)[2] == read + 1024 * 512
    plain = kernels.predict(Gemm(m=1024, n=512, k=256, format="int8"), DEVICE)
    assert one(layer, MIXED)[0] == pytest.approx(float(np.squeeze(plain.time_s)))
    assert one(layer, CODES)[0] < one(layer, MIXED)[0]


@pytest.mark.parametrize(("kind", "least", "most"), [("softmax", 15, 40), ("layer_norm", 5, 20), ("gelu", 20, 60)])
def test_instructions_are_counted(kind, least, most):
    assert least < integer_only.instructions(kind) < most


def test_a_norm_reads_sixteen_bits_and_writes_a_code():
    time_s, flops, moved = one(RowWise(kind="layer_norm", tokens=4096, width=1024), CODES)
    elements = 4096 * 1024
    assert moved == 3 * elements
    assert flops == pytest.approx(2 * integer_only.instructions("layer_norm") * elements)
    assert time_s >= max(moved / DEVICE.memory_bandwidth_bytes_per_s, flops / DEVICE.vector_flops_per_s)


def test_a_norm_of_floats_is_the_element_wise_kernel_and_their_gelu_is_free():
    norm, gelu = (RowWise(kind=kind, tokens=64, width=256) for kind in ("layer_norm", "gelu"))
    plain = kernels.predict(Elementwise(kind="norm", tokens=64, width=256, format="fp16"), DEVICE)
    assert one(norm, MIXED)[0] == one(norm, Numbers(format="fp16"))[0] == float(np.squeeze(plain.time_s))
    assert one(gelu, MIXED) == one(gelu, Numbers(format="fp32")) == (0, 0, 0)
    time_s, flops, moved = one(gelu, CODES)
    assert (time_s, moved) == (flops / DEVICE.vector_flops_per_s, 0)


def test_attention_in_integers_is_two_products_and_a_softmax():
    layer = SelfAttention(tokens=64, num_heads=2, num_kv_heads=2, head_size=32, is_causal=False)
    softmax = integer_only.predict("softmax", 4 * 64, 64, DEVICE)  # two pictures, two heads
    products = [
        kernels.predict(Gemm(m=64, n=n, k=k, batch=4, format="int8", quantises_input=False, result_bytes=1.0), DEVICE)
        for n, k in ((64, 32), (32, 64))
    ]
    time_s, flops, moved = one(layer, CODES, 2)
    parts = (*products, softmax)
    assert time_s == pytest.approx(sum(float(np.squeeze(p.time_s)) for p in parts))
    assert moved == pytest.approx(sum(float(np.squeeze(p.bytes)) for p in parts))
    assert flops == 2 * 2 * layer.num_macs + float(softmax.flops)


def test_integers_gain_on_wide_layers_and_nothing_where_launches_bind():
    def ratio(batch):
        runs = [orrery.estimate(**SETTINGS | {"batch": batch, "weights": w}) for w in ("fp16", "int8")]
        return runs[0].latency_s / runs[1].latency_s

    whole = [orrery.estimate(**SETTINGS, weights="int8", integer_only=flag) for flag in (False, True)]
    assert orrery.estimate(**SETTINGS, weights="int8").latency_s == whole[0].latency_s  # off is the default
    assert whole[1].activation_bytes == whole[0].activation_bytes / 2  # codes between products
    assert ratio(1) < ratio(32) < 4.0


def test_small_vision_transformers_have_the_published_sizes():
    for name, millions in (("vit-ti-16", 5.7), ("vit-s-16", 22), ("vit-b-16", 86)):
        assert network_of(name).num_weights == pytest.approx(millions * 1e6, rel=0.03)


def test_refusals():
    for change, words in (
        ({"weights": "fp16", "integer_only": True}, 'write weights = "int8"'),
        ({"weights": "mxfp4"}, "write fp32, fp16, bf16, int8"),
        ({"weights": "int8", "device": "p100-pcie-16gb"}, "multiplies no int8"),
        ({"model": "llama-3.1-8b", "integer_only": True, "batch": None}, "is no image network"),
    ):
        settings = {k: v for k, v in {**SETTINGS, **change}.items() if v is not None}
        with pytest.raises(ScenarioError, match=words):
            orrery.estimate(**settings)
