"""Seconds of a network's layers, each worked out from the kernels that it stands on."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from orrery import kernels
from orrery.catalog.devices import get_device
from orrery.execution.edge.cuts import Cut
from orrery.execution.edge.placement import Ends, with_bottlenecks
from orrery.execution.edge.times import LayerCosts, Numbers, layer_costs, layer_times_s, unit_times_s
from orrery.kernels.elementwise import integer_only
from orrery.kernels.ops import AttentionPrefill, Elementwise, Gemm
from orrery.models.networks import Convolution, Network, RowWise, SelfAttention, Unit

DEVICE = get_device("h100-sxm")
WIDE = Convolution(positions=3136, inputs=64, outputs=128, taps=9)
LINEAR = Convolution(positions=1, inputs=512, outputs=1000)
DEPTHWISE = Convolution(positions=3136, inputs=96, outputs=96, taps=9, groups=96)
HEAVY = Convolution(positions=400_000, inputs=1024, outputs=1024, taps=4096, groups=1024)
ATTENTION = SelfAttention(tokens=197, num_heads=6, num_kv_heads=3, head_size=64, is_causal=False)
COLUMNS = ("time_s", "flops", "moved_bytes", "compute_s", "memory_s", "launch_s")


def costs(layer, batch=2, format="fp16", **more):
    found = layer_costs([layer], DEVICE, Numbers(format=format, **more), batch)
    return [float(getattr(found, column)[0]) for column in COLUMNS]


def of(timing):
    return [
        float(np.sum(getattr(timing, c))) for c in ("time_s", "flops", "bytes", "compute_s", "memory_s", "overhead_s")
    ]


def test_a_convolution_reads_its_input_once():
    """Nine taps read each of 2 x 3136 x 64 inputs; of the product's m x k x 2 bytes eight ninths are not moved."""
    time_s, flops, moved, compute_s, memory_s, launch_s = of(
        kernels.predict(Gemm(m=6272, n=128, k=576, format="fp16", quantises_input=False), DEVICE)
    )
    once = moved - 6272 * 64 * 8 * 2
    once_s = memory_s * once / moved
    roof_ratio = max(compute_s, once_s) / max(compute_s, memory_s)
    want = [launch_s + (time_s - launch_s) * roof_ratio, flops, once, compute_s, once_s, launch_s]
    assert costs(WIDE) == pytest.approx(want, rel=1e-12)
    assert flops == 2 * 2 * WIDE.num_macs
    assert once == 2 * (6272 * 64 + 576 * 128 + 6272 * 128)


def test_a_fully_connected_layer_is_its_product():
    found = kernels.predict(Gemm(m=2, n=1000, k=512, format="fp16", quantises_input=False), DEVICE)
    assert costs(LINEAR) == pytest.approx(of(found), rel=1e-12)


@pytest.mark.parametrize(("layer", "is_computing"), [(DEPTHWISE, False), (HEAVY, True)])
def test_a_convolution_in_groups_streams_or_computes_on_vector_units(layer, is_computing):
    op = Elementwise(kind="norm", tokens=2 * layer.positions, width=layer.outputs, format="fp16")
    time_s, _, moved, _, memory_s, launch_s = of(kernels.predict(op, DEVICE))
    compute_s = 2 * 2 * layer.num_macs / DEVICE.vector_flops_per_s
    assert (compute_s > time_s) == is_computing
    want = [max(time_s, compute_s), 4 * layer.num_macs, moved, compute_s, memory_s, launch_s]
    assert costs(layer) == pytest.approx(want, rel=1e-12)


def test_attention_is_one_kernel_over_all_tokens():
    op = AttentionPrefill(
        batch=2,
        query_tokens=197,
        context_tokens=197,
        num_heads=6,
        num_kv_heads=3,
        head_size=64,
        format="fp16",
        kv_format="fp16",
        is_causal=False,
    )
    assert costs(ATTENTION) == pytest.approx(of(kernels.predict(op, DEVICE)), rel=1e-12)


def test_norms_are_kernels_and_gelus_run_with_their_products():
    norm = Elementwise(kind="norm", tokens=2 * 197, width=384, format="fp16")
    row = RowWise(kind="layer_norm", tokens=197, width=384)
    assert costs(row) == pytest.approx(of(kernels.predict(norm, DEVICE)), rel=1e-12)
    assert costs(replace(row, kind="gelu")) == [0] * 6


def test_narrow_products_round_what_enters_and_kernels_between_stay_wide():
    """Eight bits in products; attention, norms and grouped convolutions in 16."""
    found = kernels.predict(Gemm(m=2, n=1000, k=512, format="int8", quantises_input=True), DEVICE)
    assert costs(LINEAR, format="int8") == pytest.approx(of(found), rel=1e-12)
    row = RowWise(kind="layer_norm", tokens=197, width=384)
    for layer in (ATTENTION, DEPTHWISE, row):
        assert costs(layer, format="int8") == costs(layer)
    once = costs(WIDE, format="int8")[2]
    whole = kernels.predict(Gemm(m=6272, n=128, k=576, format="int8", quantises_input=True), DEVICE)
    assert once == pytest.approx(float(whole.bytes) - 6272 * 64 * 8 * 1)


def test_integer_only_layers_read_and_write_codes():
    """Products write a byte; attention is scores, a softmax of their rows, and values, for 2 x 6 heads."""
    found = kernels.predict(Gemm(m=2, n=1000, k=512, format="int8", quantises_input=False, result_bytes=1.0), DEVICE)
    assert costs(LINEAR, format="int8", is_integer_only=True) == pytest.approx(of(found), rel=1e-12)
    for kind in ("layer_norm", "gelu"):
        row = RowWise(kind=kind, tokens=197, width=384)
        want = of(integer_only.predict(kind, 2 * 197, 384, DEVICE))
        assert costs(row, format="int8", is_integer_only=True) == pytest.approx(want, rel=1e-12)
    whole = {"format": "int8", "quantises_input": False, "result_bytes": 1.0, "batch": 12}
    parts = (
        kernels.predict(Gemm(m=197, n=197, k=64, **whole), DEVICE),
        integer_only.predict("softmax", 12 * 197, 197, DEVICE),
        kernels.predict(Gemm(m=197, n=64, k=197, **whole), DEVICE),
    )
    want = np.sum([of(part) for part in parts], axis=0)
    assert costs(ATTENTION, format="int8", is_integer_only=True) == pytest.approx(want.tolist(), rel=1e-12)


def test_layers_of_all_kinds_keep_their_order_and_units_add_theirs():
    layers = [ATTENTION, WIDE, DEPTHWISE, LINEAR]
    alone = [costs(layer, 1)[0] for layer in layers]
    assert layer_times_s(layers, DEVICE, "fp16") == pytest.approx(alone, rel=1e-12)
    bounds = [0, 1, 3, 4]
    units = tuple(
        Unit(name=f"{a}", layers=tuple(layers[a:b]), num_results=8, num_channels=2) for a, b in pairwise(bounds)
    )
    found = unit_times_s(Network(name="n", units=units, num_elements=3), DEVICE, "fp16")
    assert found == pytest.approx([alone[0], alone[1] + alone[2], alone[3]], rel=1e-12)


def bound_by(*rows):
    """Of layers with a time, a compute roof, a memory roof and a launch each."""
    time_s, compute_s, memory_s, launch_s = np.array(rows, float).T
    zero = np.zeros_like(time_s)
    return LayerCosts(
        time_s=time_s, flops=zero, moved_bytes=zero, compute_s=compute_s, memory_s=memory_s, launch_s=launch_s
    ).bound_by


def test_what_most_of_the_time_is_limited_by():
    """A launch of half a layer's time does not bind it; equal roofs count as compute."""
    assert bound_by((4, 2, 2, 2)) == "compute"
    assert bound_by((4, 1, 2, 2)) == "memory"
    assert bound_by((4, 9, 2, 2.1)) == "launch"
    assert bound_by((4, 2, 1, 0), (5, 1, 2, 0), (4, 9, 9, 3)) == "memory"
    assert bound_by((4, 2, 1, 0), (5, 1, 2, 3), (2, 1, 0, 0)) == "compute"


def test_a_bottleneck_pays_its_encoder_for_what_passes_and_sends_its_channels():
    """16 positions of 8 channels are squeezed to 2: 32 elements of 6 bits are 24 bytes."""
    units = tuple(Unit(name=n, layers=(LINEAR,), num_results=128, num_channels=8) for n in "abc")
    cuts = [
        Cut(name=n, head_s=h, tail_s=t, sent_bytes=99.0, passed_frac=p)
        for n, h, t, p in (
            ("server", 0.0, 4.0, 1.0),
            ("a", 1.0, 3.0, 0.5),
            ("b", 2.0, 2.0, 0.25),
            ("device", 5.0, 0.0, 1.0),
        )
    ]
    ends = Ends(device=DEVICE, server=get_device("a100-sxm-80gb"), format="fp16", sent_bytes=2.0)
    network = Network(name="n", units=units, num_elements=3)
    found = with_bottlenecks(tuple(cuts), network, ends, [(1, 2)], 6.0)
    assert [c.name for c in found] == ["server", "a", "b", "b:2", "device"]
    narrow, wide = (Convolution(positions=16, inputs=a, outputs=b) for a, b in ((8, 2), (2, 8)))
    squeezed = found[3]
    assert squeezed.head_s == pytest.approx(2 + 0.25 * layer_times_s([narrow], ends.device, "fp16")[0], rel=1e-12)
    assert squeezed.tail_s == pytest.approx(2 + layer_times_s([wide], ends.server, "fp16")[0], rel=1e-12)
    assert (squeezed.sent_bytes, squeezed.passed_frac) == (24, 0.25)
