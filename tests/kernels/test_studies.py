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


def test_refusals_say_what_to_write():
    for name, sizes, words in (
        ("small-core-training", ("network=vgg",), "write resnet8, ds-cnn or layer"),
        ("small-core-training", ("cores=0",), "cores"),
        ("small-core-training", ("clock_hz=0",), "clock_hz"),
        ("small-core-learning", ("num_float_cycles=0",), "num_float_cycles"),
        ("narrow-lanes", ("drop_frac=1",), "write 0 to below 1"),
        ("narrow-lanes", ("clock_hz=0",), "above 0"),
        ("browser-tuning", (), "write --device"),
    ):
        with pytest.raises(ScenarioError, match=words):
            rows(name, *sizes)
