"""Variants of `orrery kernel`, worked out by hand: they gain where they should and nowhere else."""

import numpy as np
import pytest
from kernel_answers import rows, times

import orrery
from orrery.base.errors import OrreryError, OutOfRange, ScenarioError
from orrery.catalog.devices import get_device
from orrery.kernels.gemm.rule import explain
from orrery.kernels.ops import Gemm


def with_outliers(shape, random):
    """Standard normal entries, one in a thousand with a normal outlier ten times as large on top."""
    return random.normal(0.0, 1.0, shape) + random.normal(0.0, 10.0, shape) * (random.random(shape) < 0.001)


def test_a_product_by_hand():
    row = rows(op="gemm", device="h100-sxm", m=4096, n=4096, k=4096)["library", "bf16"]
    assert row.flops == 2 * 4096**3
    assert row.bytes == 3 * 2 * 4096**2
    assert row.roofs_s["compute"] == pytest.approx(2 * 4096**3 / 989.4e12, rel=1e-3)
    terms = explain(Gemm(m=4096, n=4096, k=4096, format="bf16", is_cold=False), get_device("h100-sxm"))
    assert row.time_s == float(terms.time_s)
    assert row.details["waves"] == float(terms.num_waves)


def test_cold_operands_come_from_memory():
    message = {"op": "gemm", "device": "h100-sxm", "m": 8, "n": 4096, "k": 4096}
    warm, cold = (rows(**message, cold=is_cold)["library", "bf16"] for is_cold in (False, True))
    assert cold.roofs_s["memory"] == pytest.approx(cold.bytes / get_device("h100-sxm").memory_bandwidth_bytes_per_s)
    assert warm.roofs_s["memory"] < cold.roofs_s["memory"]
    small = rows(**message | {"n": 64, "k": 64})["library", "bf16"]
    assert small.roofs_s["memory"] == 0.0  # all of it lies in the cache


def test_weights_of_fewer_bits_are_faster_where_memory_binds():
    found = [times(op="gemm", device="l40s", m=1, n=8192, k=8192, weights=f"int{b}/128:fp16") for b in range(1, 9)]
    packed = [t["packed"] for t in found]
    assert packed == sorted(packed)
    assert packed[0] < 0.4 * packed[-1]
    for bits in (1, 2, 4, 8):  # widths that are powers of two have nothing to pad
        assert found[bits - 1]["padded"] == pytest.approx(found[bits - 1]["packed"])
    assert found[4]["padded"] == pytest.approx(found[7]["padded"], rel=0.01)  # five bits padded to eight


def test_weights_alone_run_as_engines_run_them():
    message = {"device": "h100-sxm", "op": "gemm", "m": 16, "n": 4096, "k": 4096}
    assert list(rows(**message, weights="fp8", activations="fp8")) == [("library", "fp8")]
    assert list(rows(**message, weights="fp8")) == [("library", "int8_weight_only")]
    assert list(rows(**message, weights="int8", activations="int8")) == [("library", "int8")]
    with pytest.raises(ScenarioError, match="the same for both"):
        orrery.kernel(**message, weights="fp8", activations="int8")


def test_one_bit_passes_by_hand():
    found = rows(op="gemm", device="a100-sxm-80gb", m=2048, n=2048, k=2048, weights="bipolar2", activations="bipolar3")
    row = found["one-bit-fused", "bipolar2 x bipolar3"]
    assert row.details["passes"] == 6
    assert row.roofs_s["compute"] == pytest.approx(6 * 2 * 2048**3 / (8 * 624e12))
    assert found["one-bit-unfused", "bipolar2 x bipolar3"].time_s > row.time_s
    assert {format for variant, format in found if variant == "integer-units"} == {"int4", "int8"}
    with pytest.raises(OutOfRange, match="1-bit"):
        orrery.kernel(
            op="gemm",
            device="h100-sxm",
            m=64,
            n=64,
            k=64,
            weights="bipolar1",
            activations="bipolar1",
            variant="one-bit-fused",
        )


def test_uneven_tiles_cost_time_only_where_there_are_two_widths():
    message = {"op": "gemm", "device": "a100-sxm-80gb", "m": 128, "n": 4096, "k": 4096, "activations": "int4+int8"}
    mixed, alike = times(**message, wide_frac=0.3), times(**message, wide_frac=0.0)
    assert mixed["even"] < mixed["in-step"]
    assert alike["even"] == pytest.approx(alike["in-step"])
    assert alike["even"] <= mixed["even"]


def test_overlap_takes_the_slower_and_turns_take_the_sum():
    message = {
        "op": "attention",
        "device": "h100-sxm",
        "query_tokens": 16896,
        "num_heads": 1,
        "format": "fp16",
        "not_causal": True,
        "head_size": 128,
    }
    found = rows(**message)
    turns, overlap = found["serial", "fp16"], found["ping-pong", "fp16"]
    d = turns.details
    assert d["waves"] == 1.0  # 132 blocks of 128 queries on 132 processors
    assert turns.time_s == pytest.approx(d["products_s"] + d["exponentials_s"] + d["vector_s"])
    o = overlap.details
    assert overlap.time_s == pytest.approx(max(o["products_s"], o["exponentials_s"] + o["vector_s"]))
    scores = 16896.0**2
    device = get_device("h100-sxm")
    rate = max(16 * 132 * device.compute_clock_hz, device.vector_flops_per_s / 16)
    assert d["exponentials_s"] == pytest.approx(scores / rate)
    assert o["products_s"] == pytest.approx(4 * 128 * scores / 989.4e12, rel=1e-3)
    assert d["products_s"] == pytest.approx(o["products_s"] / 0.629)
    assert turns.interval is None
    assert overlap.interval is None


def test_two_passes_gain_outside_the_cache_and_lose_inside():
    cache = get_device("h100-sxm").last_level_cache_bytes
    outside = times(op="softmax", device="h100-sxm", tokens=1, width=int(cache))  # 8 bytes an element
    assert outside["two-pass"] < outside["recompute"] < outside["reload"]
    inside = times(op="softmax", device="h100-sxm", tokens=4096, width=4096)
    assert inside["two-pass"] >= inside["recompute"] >= inside["reload"]
    row = rows(op="softmax", device="h100-sxm", tokens=1, width=int(cache))["two-pass", "fp32"]
    assert row.bytes == pytest.approx(3 * 4 * int(cache))


def test_sorts_by_hand():
    keys = 10**8
    found = rows(op="sort", device="a100-sxm-40gb", keys=keys)
    one, cub = (found[name, "32-bit keys"] for name in ("onesweep", "cub"))
    assert (one.details["crossings"], cub.details["crossings"]) == (9, 15)  # 1 + 4 x 2; 5 x 3
    assert cub.bytes == 15 * 4 * keys
    assert one.bytes == pytest.approx(keys * (9 * 4 + 4 * 2 * 256 / 5376 * 4))
    assert one.time_s < cub.time_s
    rates = {
        d: rows(op="sort", device=d, keys=keys)["onesweep", "32-bit keys"].details["keys_per_s"]
        for d in ("a100-sxm-40gb", "a100-sxm-80gb")
    }
    assert rates["a100-sxm-80gb"] > rates["a100-sxm-40gb"]


def test_row_by_row_reads_least_of_sparse_matrices():
    found = {v: r for (v, _), r in rows(op="spgemm", device="h100-sxm", log2_rows=10).items()}
    assert found["by-rows"].bytes < found["outer"].bytes < found["inner"].bytes
    assert len({row.flops for row in found.values()}) == 1


def test_a_cell_that_stays_gains_less_from_long_batches_and_slow_meetings():
    message = {"op": "rnn", "device": "h100-sxm", "hidden_size": 768, "num_heads": 3, "seq_len": 1024}

    def gain(**more):
        found = times(**message, **more)
        return found["launched"] / found["persistent"]

    assert gain(batch=1) > gain(batch=65536) > 0.9
    assert gain(batch=1, meeting_s=3e-6) < gain(batch=1, meeting_s=1e-6)
    with pytest.raises(OutOfRange, match="does not stay"):
        orrery.kernel(op="rnn", device="h100-sxm", hidden_size=8192, seq_len=8, variant="persistent")


def test_a_chain_without_launches_keeps_a_ratio_of_bytes():
    message = {"op": "chain", "device": "rtx-4090", "ops": 4, "pixels": 50_000_000, "batch": 1}
    free = times(**message, launch_s=0.0)
    assert free["apart"] / free["both"] == pytest.approx(4.0)
    assert free["apart"] == pytest.approx(free["horizontal"])
    small = rows(op="chain", device="rtx-4090", ops=100, pixels=7200, batch=50)["both", "fp32"]
    shortest = small.details["shortest_for_1000x_ops"]
    for ops, is_enough in ((shortest, True), (shortest - 1, False)):
        t = times(op="chain", device="rtx-4090", ops=ops, pixels=7200, batch=50)
        assert (t["apart"] / t["both"] >= 1000) == is_enough


def test_chains_of_equal_products_gain_nothing_from_switching():
    found = times(op="chain", device="sn40l", chain="512x512x512x512")
    assert found["switching"] <= min(found["sequential"], found["dataflow"]) * (1 + 1e-12)
    bound_by_compute = rows(op="chain", device="alveo-u280", chain="512x512x512x512")
    ways = {variant: row.time_s for (variant, _), row in bound_by_compute.items()}
    assert ways["switching"] == pytest.approx(min(ways["sequential"], ways["dataflow"]))
    with pytest.raises(OutOfRange, match="dataflow"):
        orrery.kernel(op="chain", device="h100-sxm", chain="512x512x512")
    with pytest.raises(ScenarioError, match="512x768"):
        orrery.kernel(op="chain", device="sn40l", chain="512xx512")


def test_a_chain_on_a_small_board_spills_less_when_it_switches(tmp_path):
    chain = "50176x27x64x!576x128"
    found = {v: r for (v, _), r in rows(op="chain", device="alveo-u280", chain=chain).items()}
    assert found["switching"].time_s <= min(found["sequential"].time_s, found["dataflow"].time_s)
    assert found["switching"].bytes < found["sequential"].bytes
    assert {v: row.details["stalls"] for v, row in found.items()} == {"sequential": 0, "dataflow": 1, "switching": 0}
    first, second = 2.0 * 50176 * 64, 2.0 * 50176 * 576  # what passes between tasks in 16 bits; 41 MB stay on chip
    assert found["sequential"].details["spilled_bytes"] == 2 * (first + second)
    assert found["switching"].details["spilled_bytes"] == 2 * second
    (tmp_path / "chain.txt").write_text(chain)
    retained = rows(op="chain", device="alveo-u280", chain=str(tmp_path / "chain.txt"))["switching", "16-bit"]
    assert retained.time_s == found["switching"].time_s


def test_a_fused_perceptron_loses_its_gain_past_on_chip_memory():
    message = {"op": "fused-mlp", "device": "h100-pcie", "depth": 5, "batch": 2**20}
    narrow, wide = (rows(**message, width=width) for width in (64, 512))
    gains = [found["layer-by-layer", "bf16"].time_s / found["fused", "bf16"].time_s for found in (narrow, wide)]
    assert gains[0] > 2 * gains[1]
    fits = narrow["fused", "bf16"]
    assert fits.bytes == 2**20 * (2 * 2 * 64 + 5 * 2 * 64**2 / 128)
    assert "does not fit" in wide["fused", "bf16"].because
    for found in (narrow, wide):
        assert found["roof", "bf16"].time_s <= min(row.time_s for row in found.values())


def test_a_fused_perceptron_waits_for_reads_of_its_weights_on_chip():
    message = {"op": "fused-mlp", "device": "h100-pcie", "width": 64, "depth": 12, "batch": 2**20}
    free = rows(**message)["fused", "bf16"]
    held, apart = (rows(**message, on_chip_flops_per_s=1e14)[name, "bf16"] for name in ("fused", "layer-by-layer"))
    assert held.time_s == held.flops / 1e14 > free.time_s
    assert held.bound_by == "on-chip reads"
    assert rows(**message, on_chip_flops_per_s=1e18)["fused", "bf16"].time_s == free.time_s
    assert apart.time_s == rows(**message)["layer-by-layer", "bf16"].time_s
    assert "on_chip_flops_per_s changes nothing" in apart.because
    assert "on_chip_flops_per_s changes nothing" not in held.because


def test_chunks_of_a_product_with_its_sum_and_the_ideal():
    message = {"op": "gemm-reduce-scatter", "device": "mi300x", "m": 8192, "n": 8192, "k": 1024}
    found = {name: row for (name, _), row in rows(**message, devices=8).items()}
    counted = {n: (r.details["chunks_read"], r.details["chunks_written"]) for n, r in found.items()}
    assert counted == {
        "in-turns": (15, 16),
        "triggered": (6, 14),
        "triggered-without-memory": (14, 15),
        "ideal": (15, 16),
    }
    assert found["ideal"].time_s <= found["triggered"].time_s <= found["in-turns"].time_s


def test_a_permutation_needs_a_fabric_of_leaves():
    message = {"op": "permutation", "device": "h100-sxm", "message_bytes": 1e6, "leaves": 4, "hosts_per_leaf": 3}
    for fabric in ({}, {"fabric": "host-bus"}):
        with pytest.raises(ScenarioError, match="write one of leaf-spine, fat-tree"):
            rows(**message, spines=2, **fabric)
    whole, cut, even = (rows(**message, fabric="leaf-spine", spines=2, flow_parts=n, draws=9) for n in (1, 2, 0))
    assert whole["singlepath", "bytes"].time_s > cut["singlepath", "bytes"].time_s
    assert cut["singlepath", "bytes"].time_s == even["singlepath", "bytes"].time_s == even["spray", "bytes"].time_s
    assert whole["ecmp", "bytes"].time_s == even["ecmp", "bytes"].time_s


FABRIC = {"device": "h100-sxm", "message_bytes": 1e8, "fabric": "leaf-spine", "leaves": 4, "hosts_per_leaf": 4}


@pytest.mark.parametrize("op", ["all-reduce", "all-to-all", "all-gather", "reduce-scatter"])
def test_hashed_flows_are_worse_and_one_spine_makes_all_routings_equal(op):
    many, one = times(op=op, **FABRIC, spines=4), times(op=op, **FABRIC, spines=1)
    assert many["spray"] <= many["singlepath"] * (1 + 1e-9)
    assert many["singlepath"] <= many["ecmp"]
    assert many["ecmp"] > many["spray"]
    assert one["ecmp"] == pytest.approx(one["spray"]) == pytest.approx(one["singlepath"])
    assert times(op=op, **(FABRIC | {"fabric": "fat-tree"})) == many


def test_an_all_to_all_over_a_fabric_by_hand():
    row = rows(op="all-to-all", **FABRIC, spines=2)["spray", "bytes"]
    link = get_device("h100-sxm").scaleout
    busiest = 4 * 12 / 2 * 1e8 / 16  # 4 hosts to 12 of other leaves over 2 spines
    assert row.details["busiest_link_bytes"] == pytest.approx(busiest)
    assert row.time_s == pytest.approx(link.latency_s + max(busiest, 15 * 1e8 / 16) / link.each_way_bytes_per_s)


def test_the_fastest_algorithm_is_the_least_of_all():
    found = times(op="all-reduce", device="h100-sxm", devices=8, message_bytes="64MiB")
    assert found["fastest"] == pytest.approx(min(found.values()))
    assert len(found) > 2


def test_a_triggered_ring_moves_fewer_bytes_and_one_device_has_nothing_to_add():
    message = {"op": "gemm-reduce-scatter", "device": "h100-sxm", "m": 8192, "n": 4096, "k": 512}
    found = {v: r for (v, _), r in rows(**message, devices=8).items()}
    assert found["triggered"].bytes < found["triggered-without-memory"].bytes < found["in-turns"].bytes
    assert found["triggered"].time_s <= found["in-turns"].time_s
    with pytest.raises(OutOfRange, match="one device"):
        orrery.kernel(**message, devices=1)


def test_fewer_bits_of_weights_are_served_faster():
    message = {"model": "llama-3.1-8b", "device": "l40s", "input_tokens": 256, "output_tokens": 64, "concurrency": 4}
    words = [*(f"int{bits}/128:fp16" for bits in range(1, 9)), "bf16"]
    found = [orrery.estimate(**message, weights=word).to_json()["tpot_s"] for word in words]
    assert found == sorted(found)
    assert found[0] < 0.5 * found[-1]
    assert found[3] == orrery.estimate(**message, weights="int4").to_json()["tpot_s"]


def test_rows_wait_on_chip_or_in_memory_by_the_size_of_the_buffer():
    message = {
        "op": "attention",
        "query_tokens": 65536,
        "num_heads": 12,
        "head_size": 64,
        "batch": 4,
        "not_causal": True,
    }
    small, large = ({v: r for (v, _), r in rows(device=d, **message).items()} for d in ("fusemax", "flat-cloud"))
    row_bytes = 2 * 65536 * 256  # 32 MiB: fits one buffer, not the other of half the size
    scores = 48 * 65536.0**2
    assert large["three-pass"].details["row_buffer_bytes"] == row_bytes
    assert large["three-pass"].details["spilled_bytes"] == 0
    assert small["three-pass"].details["spilled_bytes"] == 4 * 2 * scores
    assert small["two-pass"].details["spilled_bytes"] == 2 * 2 * scores
    for found in (small, large):
        assert found["one-pass"].time_s < 0.2 * found["three-pass"].time_s
        # exponentials on the lanes: three operations a score for four, and nearly all of the gain is gone
        lanes = found["one-pass-lanes"]
        assert lanes.time_s == pytest.approx(3 * scores / 256 / 940e6)
        assert lanes.time_s > 5 * found["one-pass"].time_s
    with pytest.raises(ScenarioError, match="not-causal"):
        orrery.kernel(device="fusemax", **(message | {"not_causal": False}))


def test_the_users_tensors_say_how_many_blocks_are_wide(tmp_path):
    x = np.random.default_rng(0).normal(size=(64, 1024)).astype(np.float32)
    x[:, [3, 700]] *= 50  # two channels, sorted into one block of eight
    np.save(tmp_path / "x.npy", x)
    message = {"op": "gemm", "device": "a100-sxm-80gb", "m": 64, "n": 1024, "k": 1024, "activations": "int4+int8"}
    row = rows(**message, tensors=str(tmp_path / "x.npy"))["even", "int4 x int4+int8"]
    assert (row.details["wide_blocks"], row.details["blocks"]) == (1, 8)
    assert row.time_s == times(**message, wide_frac=1 / 8)["even"]
    with pytest.raises(ScenarioError, match="leave one"):
        orrery.kernel(**message, tensors=str(tmp_path / "x.npy"), wide_frac=0.5)


def test_eight_bit_attention_loses_less_with_scales_a_block_and_a_rotation(tmp_path):
    random = np.random.default_rng(0)
    q, k, v = (with_outliers((1, 1024, 64), random) for _ in range(3))
    np.savez(tmp_path / "qkv.npz", q=q, k=k, v=v)
    message = {"op": "attention", "device": "h100-sxm", "query_tokens": 256, "num_heads": 1, "head_size": 64}
    found = rows(**message, format="fp16,fp8", tensors=str(tmp_path / "qkv.npz"))
    errors = found["ping-pong", "fp8"].details
    assert 0 < errors["rmse_scale_a_block_rotated"] < 0.7 * errors["rmse_scale_a_tensor"]
    assert "rmse_scale_a_tensor" not in found["ping-pong", "fp16"].details
    np.savez(tmp_path / "qk.npz", q=q, k=k)
    with pytest.raises(ScenarioError, match="lacks v"):
        orrery.kernel(**message, format="fp8", tensors=str(tmp_path / "qk.npz"))


def test_convolutions_bound_by_memory_gain_less_from_eight_bits():
    device = "raspberry-pi-4-8gb"
    wide, thin = (
        times(op="conv", device=device, pixels=pixels, inputs=size, outputs=size, taps=taps)
        for pixels, size, taps in ((196, 256, 9), (12544, 4, 1))
    )
    gains = [found["float-lanes"] / found["lanes-dot"] for found in (wide, thin)]
    assert gains[0] > gains[1] > 1


def test_an_instruction_by_hand():
    found = {v: r for (v, _), r in rows(op="instruction", device="h100-sxm", n=64).items()}
    # 64 x 64 x 16 multiply-adds at 2048 a cycle; sparse: (64 x 16 + 64 x 32) x 2 bytes at 128 a cycle
    assert found["shared"].details["cycles"] == pytest.approx(32, rel=1e-3)
    assert found["sparse-shared"].details["cycles"] == 48
    assert found["sparse-registers"].details["peak_frac"] == pytest.approx(1.0, rel=1e-3)
    with pytest.raises(OutOfRange, match="hopper"):
        orrery.kernel(op="instruction", device="a100-sxm-80gb", n=64, variant="shared")


def test_instructions_of_a_warp_by_hand():
    """64 x 64 x 16 multiply-adds are 32 of 16 x 8 x 16; at 1024 a cycle on Ampere 64 cycles, and 0.996 of the peak."""
    (row,) = rows(op="instruction", device="a100-sxm-80gb", n=64).values()
    assert row.variant == "warp"
    assert (row.details["num_instructions"], row.details["latency_cycles"]) == (32, 24.6)
    assert row.details["cycles"] == pytest.approx(64 / 0.996, rel=2e-3)
    hopper = {v: r for (v, _), r in rows(op="instruction", device="h100-sxm", n=256).items()}
    assert hopper["shared"].time_s / hopper["warp"].time_s == pytest.approx(0.629, rel=1e-3)
    with pytest.raises(OutOfRange, match="multiples of 16x8x16"):
        orrery.kernel(op="instruction", device="a100-sxm-80gb", n=64, m=8)
    with pytest.raises(OutOfRange, match="mi300x is cdna3: cycles of instructions"):
        orrery.kernel(op="instruction", device="mi300x", n=64, variant="warp")


def test_blocks_that_exchange_by_hand():
    """Hopper: 180 cycles, or a store and a load of 478.8 each; 1863 bytes a cycle over 114 processors in pairs."""
    found = {v: r for (v, _), r in rows(op="block-exchange", device="h100-pcie", message_bytes=1634).items()}
    assert found["cluster-of-2"].details["cycles"] == pytest.approx(180 + 1634 * 114 / 1863)
    assert found["cluster-of-4"].time_s > found["cluster-of-2"].time_s
    assert found["memory"].details["cycles"] == pytest.approx(2 * 478.8 + 2 * 1634 * 114 / 3942.4)
    clock_hz = get_device("h100-pcie").compute_clock_hz
    assert found["memory"].time_s == pytest.approx(found["memory"].details["cycles"] / clock_hz)


def test_clusters_gain_by_latency_and_less_the_more_is_sent():
    def gain(size):
        found = {v: r for (v, _), r in rows(op="block-exchange", device="h100-sxm", message_bytes=size).items()}
        return found["memory"].time_s / found["cluster-of-2"].time_s

    assert gain(4) == pytest.approx(2 * 478.8 / 180, rel=0.01)
    assert gain(4) > gain(4096) > gain(2**30) == pytest.approx(2 * 1863 / 3942.4, rel=1e-3)
    assert gain(2**30) < 1.0, "bytes go through the cache faster than between processors"


def test_only_hopper_has_clusters():
    found = rows(op="block-exchange", device="a100-sxm-80gb", message_bytes=64)
    assert [variant for variant, _ in found] == ["memory"]
    with pytest.raises(OutOfRange, match="ampere: other_processor_cycles was not measured"):
        orrery.kernel(op="block-exchange", device="a100-sxm-80gb", message_bytes=64, variant="cluster-of-2")


def test_short_vectors_cost_whole_lines():
    (short,) = rows(op="gather", device="gaudi2", tokens=1000, width=32).values()
    assert short.details["useful_frac"] == 0.25
    assert short.bytes == 1000 * (256 + 64)
    (wide,) = rows(op="gather", device="gaudi2", tokens=1000, width=128).values()
    assert wide.details["useful_frac"] == 1.0


def test_registers_hold_more_products_of_fewer_bits():
    message = {"op": "gemm", "device": "raspberry-pi-5-8gb", "m": 256, "n": 1024, "k": 1024}
    four = times(**message, weights="int4", activations="int4")
    eight = times(**message, weights="int8", activations="int8")
    mixed = times(**message, weights="int4", activations="int8")
    assert four["lanes"] < eight["lanes"] < mixed["lanes"]  # spreading costs where products bind
    assert eight["lanes-dot"] < eight["lanes"]


def test_the_textbook_product_is_slower_than_the_library():
    found = times(op="gemm", device="rtx-4090", m=2048, n=2048, k=2048, format="fp32")
    assert found["library"] < min(found[f"tiled-{side}"] for side in (8, 16, 32))


def test_a_slow_host_loses_small_batches_and_not_large_ones():
    message = {"op": "launch-queue", "device": "gh200-96gb", "model": "bert-base-uncased"}
    small, large = (times(**message, batch=batch, query_tokens=tokens) for batch, tokens in ((1, 64), (64, 512)))
    assert small["grace"] > small["epyc"] > small["xeon"]
    assert large["grace"] == pytest.approx(large["xeon"], rel=0.01)
    row = rows(**message, batch=1, query_tokens=64)["grace", "bf16"]
    assert row.bound_by == "host"
    assert row.details["kernels"] == 12 * 13
    turns = {d: rows(**(message | {"device": d}))["xeon", "bf16"].details["turn_batch"] for d in ("l4", "gh200-96gb")}
    assert turns["l4"] <= turns["gh200-96gb"]


BUS = {
    "op": "all-reduce",
    "device": "a100-pcie-40gb",
    "message_bytes": 1e8,
    "fabric": "host-bus",
    "devices_per_node": 8,
    "bus_bytes_per_s": 24e9,
    "port_bytes_per_s": 40e9,
    "devices_per_port": 2,
    "card_bytes_per_s": 25e9,
    "peer_bytes_per_s": 8e9,
    "card_message_s": 1e-5,
}


def test_sums_over_a_hosts_bus_by_hand():
    """Two of a port share 40 GB/s both ways: 10 GB/s. In the ring 16 devices send 15/8 of the buffer, past the card at
    8 GB/s: 4.27 GB/s, and 30 messages follow each other; through the host two, there and back."""
    found = {variant: row for (variant, _), row in rows(**BUS, devices=16).items()}
    host, ring = found["through-host"], found["ring-over-bus"]
    assert host.time_s == pytest.approx(1e8 / 10e9 + 2 * 1e-5)
    assert ring.time_s == pytest.approx(1e8 * 15 / 8 / 8e9 + 30 * 1e-5)
    assert host.details["set_by"] == "root port"
    assert ring.details["set_by"] == "peer to peer"
    assert host.details["bandwidth_bytes_per_s"] == pytest.approx(1e8 / host.time_s)


def test_a_machine_alone_and_many_more_of_them():
    """Through the host the pace stays; a ring's messages grow with the devices."""
    few, many = times(**BUS, devices=16), times(**BUS, devices=1024)
    assert many["ring-over-bus"] / many["through-host"] > 1.5 * few["ring-over-bus"] / few["through-host"]
    alone = times(**BUS, devices=8)
    assert alone["through-host"] == pytest.approx(1e8 / 10e9)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"op": "all-gather"}, "host-bus is of all-reduce"),
        ({"spines": 4}, "has none"),
        ({"devices": 12}, "no whole machines of 8"),
        ({"devices": None}, "--devices 16"),
        ({"fabric": None}, "--fabric host-bus too"),
    ],
)
def test_a_hosts_bus_refuses_what_it_has_not(settings, words):
    asked = {name: value for name, value in ({**BUS, "devices": 16} | settings).items() if value is not None}
    with pytest.raises(OrreryError, match=words):
        rows(**asked)
