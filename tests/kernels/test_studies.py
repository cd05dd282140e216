"""Experiments on small processors: by hand, at their limits, and what they refuse."""

import pytest

from orrery.base.errors import ScenarioError
from orrery.kernels.lowbit.lanes import VectorCores, product_s
from orrery.scenario.experiment import run_experiment


def rows(name, *sizes, **more):
    return run_experiment(name, sizes=sizes, **more).rows


def test_a_learner_by_hand():
    # 1,000 turns of 3 native floats and 3 others on one core, a unit to itself, no banks: 6 cycles each
    (one, four), *_ = by_algorithm(
        rows("small-core-learning", "elements=1000", "cores=1,4", "float_units=2", "banks=0", "num_barrier_cycles=50")
    ).values()
    assert one["cycles"] == 6000
    # two units for four cores: a float every second cycle, so 9 a turn; 250 turns, 8 merges for each core, a barrier
    assert four["cycles"] == 250 * 9 + 8 * 4 * 9 + 50
    assert four["speedup"] == 6000 / four["cycles"]
    # emulated: 40 cycles a float whatever the units; a tree has none and takes as long as before
    soft = by_algorithm(rows("small-core-learning", "cores=1", "float_units=0", "num_float_cycles=40"))
    hard = by_algorithm(rows("small-core-learning", "cores=1"))
    assert soft["knn"][0]["cycles"] == 4096 * (3 * 40 + 3)
    assert soft["forest"][0]["cycles"] == hard["forest"][0]["cycles"]


def by_algorithm(found):
    return {
        name: [row for row in found if row["algorithm"] == name]
        for name in dict.fromkeys(r["algorithm"] for r in found)
    }


def test_lanes_gain_at_most_their_number_and_cores_help():
    wide, narrow = rows("small-core-training", "cores=8", "lanes=1,2")
    assert 1.0 == wide["speedup"] < narrow["speedup"] <= 2.0
    assert narrow["step_s"] == narrow["cycles"] / 450e6
    alone, *others = [row for row in rows("small-core-training", "cores=1,2,8") if row["lanes"] == 1]
    assert alone["cycles"] > others[0]["cycles"] > others[1]["cycles"] > alone["cycles"] / 8.0
    # one convolution of 64 x 64 channels on 8 x 8 pixels with nine taps: three passes of as many products
    layer = rows("small-core-training", "network=layer", "cores=8", "lanes=1")[0]
    assert layer["macs_per_cycle"] * layer["cycles"] == pytest.approx(3 * 64 * 9 * 64 * 64)


def test_a_prompt_in_lanes_by_hand():
    sizes = ("hidden=64", "ffn=128", "layers=2", "heads=2", "tokens=10", "drop_frac=0.5", "dropped_after=1")
    found = {
        (r["weight_bits"], r["activation_bits"], r["kept_frac"]): r["prompt_s"] for r in rows("narrow-lanes", *sizes)
    }
    cores = VectorCores(
        num_cores=4, clock_hz=2.4e9, register_bits=128, num_units=2, has_dot_products=True, memory_bytes_per_s=34e9
    )

    def layer(tokens):
        products = 4 * product_s(tokens, 64, 64, 4, 8, cores) + 2 * product_s(tokens, 128, 64, 4, 8, cores)
        return products + product_s(tokens, 64, 128, 4, 8, cores) + 4 * product_s(tokens, tokens, 32, 16, 16, cores)

    assert found[4, 8, 1.0] == pytest.approx(2 * layer(10))
    assert found[4, 8, 0.5] == pytest.approx(layer(10) + layer(5))
    # nothing dropped: one row for each pair of widths, and 16 bits are as fast as themselves
    plain = rows("narrow-lanes", *sizes[:-2], "drop_frac=0")
    assert [row["kept_frac"] for row in plain] == [1.0] * 4
    assert plain[0]["speedup"] == 1.0


def test_tuning_never_loses_and_no_time_keeps_what_was_shipped():
    (found,) = rows("browser-tuning", device="rtx-4070")
    assert found["speedup"] >= 1.0
    assert found["tuning_s"] <= 30.0
    (none,) = rows("browser-tuning", "budget_s=0.01", device="rtx-4070")
    assert (none["speedup"], none["candidates"], none["tiles"]) == (1.0, 0, "8 8 8")


def test_a_token_in_the_banks_by_hand():
    # one layer of 4 features and one head, 2 words, 2 tokens of context, one bank that reads 2 elements a second
    # without opening rows; pins and companion cost nothing
    (row,) = rows(
        "memory-banks",
        *("shapes=1x4", "num_head=4", "num_vocabulary=2", "context_tokens=2", "num_channels=1", "num_banks=1"),
        *("column_bytes=4", "column_s=1", "open_s=0", "close_s=0", "channel_bytes_per_s=1e30", "standby_w=0"),
        *("companion_flops_per_s=1e30", "open_j=0", "read_j_per_bytes=1", "pin_j_per_bytes=0"),
    )
    # columns: query, key and value 12 x 2, out 4 x 2, up 16 x 2, down 4 x 8, scores 2 x 2, values 4 x 1, head 2 x 2
    assert row["token_s"] == pytest.approx(24 + 8 + 32 + 32 + 4 + 4 + 4)
    # bytes read: 2 for each of 48 + 16 + 64 + 64 weights, 8 + 8 cached, 8 of the head
    assert row["token_j"] == pytest.approx(2 * (48 + 16 + 64 + 64 + 16 + 8), rel=1e-6)


def test_few_banks_lose_to_the_memory_s_pins():
    few, many = rows("memory-banks", "shapes=24x1024", "num_channels=1,16", device="t4")
    assert few["token_s"] > many["token_s"] > few["token_s"] / 16
    (one,) = rows("memory-banks", "shapes=24x1024", "num_channels=1", "num_banks=1", device="t4")
    assert one["speedup_at_most"] < 1.0 < many["speedup_at_most"]


def test_a_server_of_images_by_hand():
    host, there = rows("image-server", "image_px=1000000", "num_core_pixels_per_s=1e8", "num_cores=4", device="l4")
    assert (host["unpacking_s"], there["unpacking_s"]) == (0.01, 0.001)
    for row in (host, there):
        assert row["latency_s"] == pytest.approx(row["unpacking_s"] + row["copying_s"] + row["network_s"])
        assert row["overhead_frac"] == pytest.approx(1 - row["network_s"] / row["latency_s"])
    # four cores unpack 400 images a second, which is less than the network makes
    assert host["images_per_s"] == pytest.approx(400.0)
    # tiny images cost next to nothing, and endless cores leave the network alone
    small, _ = rows("image-server", "image_px=1", "num_cores=10000", device="l4")
    assert small["lost_frac"] == pytest.approx(0.0, abs=1e-9)


def test_refusals_say_what_to_write():
    for name, sizes, words in (
        ("small-core-training", ("network=vgg",), "write resnet8, ds-cnn or layer"),
        ("small-core-training", ("cores=0",), "cores"),
        ("small-core-training", ("clock_hz=0",), "clock_hz"),
        ("small-core-learning", ("num_float_cycles=0",), "num_float_cycles"),
        ("narrow-lanes", ("drop_frac=1",), "write 0 to below 1"),
        ("narrow-lanes", ("clock_hz=0",), "above 0"),
        ("browser-tuning", (), "write --device"),
        ("image-server", (), "write --device"),
        ("memory-banks", ("shapes=12",), "write LAYERSxWIDTH"),
        ("memory-banks", ("element_bytes=0",), "above 0"),
    ):
        with pytest.raises(ScenarioError, match=words):
            rows(name, *sizes)
