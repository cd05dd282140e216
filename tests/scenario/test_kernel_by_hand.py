"""Bytes, operations and roofs of `orrery kernel`'s ways, counted by hand at small sizes."""

import pytest
from kernel_answers import rows

from orrery.base.errors import OutOfRange, ScenarioError
from orrery.catalog.devices import get_device
from orrery.scenario.fields_kernel import KERNEL_BY_NAME
from orrery.scenario.kernel.products import skew
from orrery.scenario.kernel.sweep import points, read_sweeps

SMALL = {"m": 8, "n": 64, "k": 256}
"""2,048 activations, 16,384 weights and 512 results of 2 bytes; 2 x 131,072 operations."""

FLOPS = 2 * 8 * 64 * 256


def by_variant(**message):
    return {variant: row for (variant, _), row in rows(**message).items()}


def examples(op, *names, **more):
    given = {name: int(KERNEL_BY_NAME[name].example) for name in names}
    return rows(op=op, device="h100-sxm", **given, **more)["library", "bf16"]


@pytest.mark.parametrize(
    ("weights", "packed_bytes", "padded_bytes"),
    [
        ("int4", 16384 * (4 + 16 / 128) / 8, 16384 * (4 + 16 / 128) / 8),  # a group that nobody names is of 128
        ("int3/64", 16384 * (3 + 16 / 64) / 8, 16384 * (4 + 16 / 64) / 8),
        ("ternary", 16384 * (2 + 16 / 128) / 8, 16384 * (2 + 16 / 128) / 8),
    ],
)
def test_weights_of_few_bits_come_with_a_scale_a_group(weights, packed_bytes, padded_bytes):
    found, device = by_variant(op="gemm", device="l40s", weights=weights, **SMALL), get_device("l40s")
    others = 2 * 2048 + 2 * 512
    assert found["packed"].bytes == others + packed_bytes
    assert found["padded"].bytes == found["converted"].bytes == found["serial-loads"].bytes == others + padded_bytes
    assert found["sixteen-bit"].bytes == others + 2 * 16384
    assert [found[name].details["shared_bytes_per_weight"] for name in ("packed", "converted")] == [0, 4]
    for row in found.values():
        assert row.flops == FLOPS
        assert row.roofs_s["compute"] == pytest.approx(FLOPS / 362e12)
        assert row.roofs_s["memory"] == pytest.approx(row.bytes / device.memory_bandwidth_bytes_per_s)


def test_bits_of_one_bit_passes():
    """Two bits a weight, three an activation: 16,384 x 2 / 8 and 2,048 x 3 / 8 bytes; six partial results of 4 bytes go
    out and come back."""
    message = {"op": "gemm", "device": "a100-sxm-80gb", "weights": "bipolar2", "activations": "bipolar3", **SMALL}
    found = rows(**message)
    ways = {name: found[name, "bipolar2 x bipolar3"] for name in ("one-bit-fused", "one-bit-unfused")}
    assert ways["one-bit-fused"].bytes == 4096 + 768 + 1024
    assert ways["one-bit-unfused"].bytes == 4096 + 768 + 1024 + 6 * 512 * 2 * 4
    padded = {bits: found["integer-units", f"int{bits}"] for bits in (4, 8)}
    for bits, row in padded.items():
        assert row.bytes == (2048 + 16384) * bits / 8 + 1024
        assert row.roofs_s["compute"] == pytest.approx(FLOPS / (624e12 * 8 / bits))
    for row in (*ways.values(), *padded.values()):
        assert row.flops == FLOPS
        assert row.roofs_s["memory"] == pytest.approx(row.bytes / 2.039e12)


def test_bytes_of_two_widths():
    """One of four blocks of 128 channels keeps eight bits: five bits an activation on average; weights of 4 1/8 bits.
    Of 64 channels there is one block, with a scale for 64."""
    message = {"op": "gemm", "device": "a100-sxm-80gb", "activations": "int4+int8", "m": 8, "n": 64}
    row = by_variant(**message, k=512, wide_frac=0.25)["even"]
    assert (row.details["wide_blocks"], row.details["blocks"]) == (1, 4)
    assert row.bytes == 8 * 512 * 5 / 8 + 64 * 512 * 4.125 / 8 + 1024
    assert row.flops == 2 * FLOPS
    assert row.roofs_s["compute"] == pytest.approx(2 * FLOPS * (0.75 / 1248e12 + 0.25 / 624e12))
    assert row.roofs_s["memory"] == pytest.approx(row.bytes / 2.039e12)
    short = by_variant(**message, k=64)["even"]
    assert (short.details["wide_blocks"], short.details["blocks"]) == (0, 1)
    assert short.bytes == 8 * 64 / 2 + 64 * 64 * 4.25 / 8 + 1024


def test_lanes_of_a_processor():
    """Four cores at 2.4 GHz: 153.6 GFLOP/s are 16 multiply-adds a cycle, registers of 256 bits in each core."""
    four = by_variant(op="gemm", device="raspberry-pi-5-8gb", weights="int4", activations="int8", **SMALL)
    assert four["lanes"].bytes == 16384 / 2 + 2048 + 1024
    assert four["lanes"].roofs_s["compute"] == pytest.approx(FLOPS / 2 / 16 / (4 * 2.4e9))
    assert four["lanes-dot"].roofs_s["compute"] == pytest.approx(FLOPS / 2 / 32 / (4 * 2.4e9))
    assert four["lanes"].roofs_s["memory"] == pytest.approx(11264 / 17.1e9)
    window = {"pixels": 8, "outputs": 64, "taps": 4, "inputs": 64}  # 256 products an output
    found = by_variant(op="conv", device="raspberry-pi-5-8gb", **window)
    assert found["lanes"].bytes == 16384 + 2048 + 1024
    floats = found["float-lanes"]
    assert (floats.flops, floats.bytes) == (FLOPS, 4 * (2048 + 16384 + 512))
    assert floats.roofs_s["compute"] == pytest.approx(FLOPS / 153.6e9)
    assert floats.time_s == floats.roofs_s["memory"] == pytest.approx(75776 / 17.1e9)


def test_two_devices_add_up_a_product():
    """Two chunks of 1 MiB: operands and results are two of each; in turns the ring reads three and writes two more, and
    the all-gather moves two. Each device sends one chunk in either half."""
    chunk, device = 2**20, get_device("mi300x")
    found = by_variant(op="gemm-reduce-scatter", device="mi300x", m=1024, n=1024, k=512, devices=2)
    moved = {"in-turns": 2 + 2 + 5 + 2, "triggered": 2 + 2 + 2, "triggered-without-memory": 2 + 5 + 2, "ideal": 11}
    for name, chunks in moved.items():
        row = found[name]
        assert row.bytes == chunks * chunk
        assert row.flops == 2 * 1024 * 1024 * 512
        assert row.details["sent_bytes"] == 2 * chunk
        assert row.roofs_s["compute"] == pytest.approx(row.flops / 1307.4e12)
        assert row.roofs_s["memory"] == pytest.approx(row.bytes / device.memory_bandwidth_bytes_per_s)
        assert row.roofs_s["network"] == pytest.approx(2 * chunk / device.scaleup.each_way_bytes_per_s)
    with pytest.raises(OutOfRange, match="one device has nothing to add up"):
        rows(op="gemm-reduce-scatter", device="mi300x", m=1024, n=1024, k=512, devices=1, variant="ideal")


def test_examples_of_sizes_make_whole_operators():
    """The sizes that help and refusals show, put together: 8 products of 4,096 cubed; 4,096 tokens to 8 experts of
    three matrices over 8 ranks; each of 2,048 queries sees the 4,096 keys of its window."""
    for op, count in (("gemm", "batch"), ("grouped-gemm", "groups")):
        row = examples(op, "m", "n", "k", count)
        assert (row.flops, row.bytes) == (8 * 2 * 4096**3, 8 * 3 * 2 * 4096**2)
    routed = ("tokens", "hidden_size", "ffn_size", "num_experts", "experts_per_token", "tp", "ep")
    assert examples("moe", *routed).flops == 4096 * 8 / 8 * 3 * 2 * 4096 * 1536
    heads = ("num_heads", "num_kv_heads", "head_size", "value_head_size")
    row = examples("attention", "query_tokens", "context_tokens", "window_tokens", "batch", *heads)
    assert row.flops == 8 * 32 * 2 * (128 + 128) * 2048 * 4096
    keys = 4096 + 2047  # of the first query's window to the last
    assert row.bytes == 8 * 2 * (2 * 2048 * 32 * 128 + 2 * keys * 8 * 128)


def test_launches_of_a_recurrent_layer():
    """Ten tokens of two sequences: 14 eager operators of 5 us each, two kernels of 2.4 us, or a meeting of 1.5 us.
    Three heads of 256 features have four gates: 3 x 4 x 256 x 256 weights, which the cache keeps."""
    sizes = {"hidden_size": 768, "num_heads": 3, "seq_len": 10, "batch": 2}
    found, weights = by_variant(op="rnn", device="h100-sxm", **sizes), 3 * 4 * 256**2
    for name, waits_s in (("launched", 10 * 14 * 5e-6), ("alternating", 10 * 2 * 2.4e-6), ("persistent", 10 * 1.5e-6)):
        row = found[name]
        assert (row.bytes, row.flops) == (2 * weights, 10 * 2 * 2 * weights)
        assert waits_s < row.time_s < waits_s + 5e-6
        assert row.bound_by == ("meetings" if name == "persistent" else "launches")
        assert row.roofs_s["memory"] == pytest.approx(row.bytes / 3.36e12, rel=0.01)
        assert row.roofs_s["compute"] == pytest.approx(row.flops / 989.4e12, rel=0.001)
    assert (found["launched"].details["kernels"], found["alternating"].details["kernels"]) == (140, 20)
    stays = found["persistent"]
    low_s, high_s = (stays.details[f"with_meetings_of_{us}_us_s"] for us in (1, 3))
    assert high_s - low_s == pytest.approx(10 * 2e-6)
    assert stays.time_s - low_s == pytest.approx(10 * 0.5e-6)
    wide = by_variant(op="rnn", device="h100-sxm", hidden_size=4096, seq_len=10, batch=2, variant="alternating")
    assert wide["alternating"].bytes == 10 * 2 * 4 * 4096**2  # 134 MB leave the cache with every token


def test_kernels_of_a_chain():
    """Four functions of three arrays of 1,000 elements, 4 bytes in and 4 out: alone 12 kernels, an array's or a
    function's joined 3 and 4, all in one."""
    found = by_variant(op="chain", device="rtx-4090", ops=4, pixels=1000, batch=3)
    counted = {"apart": (12, 4), "vertical": (3, 1), "horizontal": (4, 4), "both": (1, 1)}
    for name, (kernels, passes) in counted.items():
        row = found[name]
        assert row.details["kernels"] == kernels
        assert row.bytes == passes * 3000 * 8
        assert row.flops == found["apart"].flops
        assert kernels * 5e-6 < row.time_s
        assert row.bound_by == "launches"
        assert row.roofs_s["memory"] == pytest.approx(row.bytes / 1.01e12, rel=0.01)
    assert found["apart"].details.keys() == {"kernels"}


def test_a_perceptrons_bytes():
    """A row of 64 in 16 bits in and out, five matrices of 8 KiB that 128 rows share, or all 1,024 (the roof); apart,
    each of ten kernels reads and writes a row, and every other one a matrix. Of 8 rows by four matrices that fit no
    processor all ways read the 134 MB of them once."""
    found = by_variant(op="fused-mlp", device="h100-pcie", width=64, depth=5, batch=1024)
    for row in found.values():
        assert row.flops == 1024 * 5 * 2 * 64**2
        assert row.roofs_s["memory"] == pytest.approx(row.bytes / 2e12, rel=0.01)
        assert row.details["flops_per_byte"] == row.flops / row.bytes
    assert found["roof"].bytes == 1024 * 2 * 128 + 5 * 8192
    assert found["fused"].bytes == 1024 * 2 * 128 + 8 * 5 * 8192
    assert found["fused"].time_s == 5e-6
    assert found["layer-by-layer"].bytes == 10 * 1024 * 2 * 128 + 5 * 8192
    assert found["layer-by-layer"].time_s == 10 * 5e-6
    wide = by_variant(op="fused-mlp", device="h100-pcie", width=4096, depth=4, batch=8)
    rows_of = {"roof": 2, "fused": 4 * 2, "layer-by-layer": 4 * 4}
    for name, rows_moved in rows_of.items():
        assert wide[name].bytes == 4 * 2 * 4096**2 + rows_moved * 8 * 2 * 4096
        assert wide[name].time_s == wide[name].roofs_s["memory"] >= wide["roof"].time_s


def test_turns_read_keys_once_and_queries_too():
    """Two sequences of 512 keys in two heads of 64, and 256 queries in four: 262,144 bytes of keys, values, queries and
    results each."""
    sizes = {"query_tokens": 256, "context_tokens": 512, "num_heads": 4, "num_kv_heads": 2, "head_size": 64, "batch": 2}
    whole = by_variant(op="attention", device="h100-sxm", not_causal=True, **sizes)
    masked = by_variant(op="attention", device="h100-sxm", **sizes)
    pairs = 256 * 256 + 256 * 257 / 2
    for name in ("serial", "ping-pong"):
        assert whole[name].bytes == masked[name].bytes == 4 * 262144
        assert whole[name].flops == 2 * 4 * 4 * 64 * 256 * 512
        # whole blocks of the mask's corner may be counted: half of a corner of 256 more at most
        assert 2 * 4 * 4 * 64 * pairs <= masked[name].flops <= 2 * 4 * 4 * 64 * (pairs + 256 * 256 / 2)
        busy = whole[name].flops / 989.4e12 / whole[name].time_s
        assert whole[name].details["busy_frac"] == pytest.approx(busy, rel=0.001)


@pytest.mark.parametrize(
    ("written", "exponent"),
    [("balanced", 0.0), ("random", -1.0), ("uniform", -1.0), ("Random", -1.0), ("power_law_1.2", 1.2)],
)
def test_laws_of_routing(written, exponent):
    assert skew(written) == exponent


@pytest.mark.parametrize("written", ["power_law_", "power_law_steep", "zipf"])
def test_other_laws_of_routing_are_refused(written):
    with pytest.raises(ScenarioError, match="balanced, random"):
        skew(written)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"fabric": "leaf-spine"}, "write --leaves and --hosts-per-leaf"),
        ({"fabric": "leaf-spine", "leaves": 2}, "write --leaves and --hosts-per-leaf"),
        ({"fabric": "leaf-spine", "leaves": 2, "hosts_per_leaf": 4}, "write --spines too"),
        ({"fabric": "leaf-spine", "leaves": 2, "hosts_per_leaf": 4, "spines": 2, "devices": 9}, "join 8, not 9"),
        ({"fabric": "fat-tree", "leaves": 2, "hosts_per_leaf": 4, "spines": 2}, "as many as hosts below a leaf"),
        ({"spines": 2, "devices": 8}, "spines: belongs to a fabric"),
        ({"routing": "ecmp", "devices": 8}, "routing: belongs to a fabric"),
        ({}, "write how many take part"),
    ],
)
def test_fabrics_need_their_sizes(settings, words):
    with pytest.raises(ScenarioError, match=words):
        rows(op="all-to-all", device="h100-sxm", message_bytes=1e6, **settings)


def test_a_fabric_of_as_many_devices_is_taken():
    sizes = {"leaves": 2, "hosts_per_leaf": 4, "spines": 2, "message_bytes": 1e6, "routing": "planned"}
    row = rows(op="all-to-all", device="h100-sxm", fabric="leaf-spine", devices=8, **sizes)["singlepath", "bytes"]
    assert (row.details["hosts"], row.details["oversubscription"]) == (8, 2.0)
    assert row.roofs_s["network"] == pytest.approx(7e6 / 8 / get_device("h100-sxm").scaleout.each_way_bytes_per_s)


SIZES = ("m", "window_tokens", "message_bytes")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("m=1,4,4, 2", (1, 4, 2)),
        ("m=1:4:+1", (1, 2, 3, 4)),
        ("m=1:64:x4", (1, 4, 16, 64)),
        ("m=1:63:*4", (1, 4, 16)),
        ("m=1:100:3", (1, 10, 100)),
        ("m=3:3:2", (3,)),
        ("window_tokens=0:8:+4", (0, 4, 8)),
        ("message-bytes=1k:4k:x2", (1000, 2000, 4000)),
    ],
)
def test_values_of_a_sweep(text, values):
    (found,) = read_sweeps([text], SIZES).values()
    assert found == pytest.approx(values)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("m=1:4:+0", "a step above 0"),
        ("m=1:4:+-1", "a step above 0"),
        ("m=1:4:x1", "a first value above 0 and a ratio above 1"),
        ("window_tokens=0:8:x2", "a first value above 0 and a ratio above 1"),
        ("window_tokens=0:8:3", "how many values there are"),
        ("m=1:4:1", "how many values there are"),
        ("m=1:4:2.5", "how many values there are"),
        ("m=4:1:+1", "below its first"),
        ("m=0,1", "a whole number from 1"),
        ("m=1.5", "a whole number from 1"),
    ],
)
def test_sweeps_that_make_no_sense(text, words):
    with pytest.raises(ScenarioError, match=words):
        read_sweeps([text], SIZES)


def test_points_of_two_sweeps():
    swept = read_sweeps(["m=1,2", "window_tokens=0,8"], SIZES)
    assert points(swept) == [{"m": m, "window_tokens": w} for m in (1, 2) for w in (0, 8)]
    assert points({}) == [{}]
