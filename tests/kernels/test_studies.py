"""Experiments on small processors: by hand, at their limits, and what they refuse."""

import pytest

from orrery.base.errors import OutOfRange, ScenarioError
from orrery.catalog.devices import get_device
from orrery.catalog.own_device import own_device
from orrery.hardware.gates import memory_j_per_bit
from orrery.kernels.gemm.naive_tiles import LARGEST_TILE
from orrery.kernels.lowbit.lanes import VectorCores, product_s
from orrery.kernels.lowbit.systolic import Element, element_circuit
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
    # a load of 3 cycles and loops in software: 2 x 2 + 2 cycles more a turn
    other = by_algorithm(rows("small-core-learning", "cores=1", "num_load_cycles=3", "hardware_loops=0"))
    assert other["knn"][0]["cycles"] == 4096 * (6 + 6)
    assert other["knn"][0]["time_s"] == 4096 * 12 / 175e6
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
    asked = rows("narrow-lanes", *sizes)
    assert [(r["weight_bits"], r["activation_bits"], r["packed"]) for r in asked[::2]] == [
        (16, 16, 0),
        (8, 8, 0),
        (4, 8, 0),
        (4, 4, 1),
        (4, 4, 0),
    ]
    found = {(r["weight_bits"], r["activation_bits"], r["kept_frac"]): r["prompt_s"] for r in asked}
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
    assert [row["kept_frac"] for row in plain] == [1.0] * 5
    assert plain[0]["speedup"] == 1.0


def test_lanes_of_a_device_and_4_bits_with_and_without_packing(tmp_path):
    """A processor of 4 cores at 2.4 GHz whose FP32 rate is two registers of 128 bits a cycle is the default's."""
    path = tmp_path / "mine.toml"
    path.write_text(own_device("raspberry-pi-5-8gb", {"memory_bandwidth_bytes_per_s": "34 GB/s"}))
    device = get_device(path)
    assert (device.num_compute_units, device.compute_clock_hz) == (4, 2.4e9)
    assert device.vector_flops_per_s == 4 * 2.4e9 * 2 * 2 * 128 / 32
    asked = rows("narrow-lanes", "layers=1", device=str(path))
    assert asked == rows("narrow-lanes", "layers=1")
    packed, apart = (r["prompt_s"] for r in asked if r["activation_bits"] == 4 and r["kept_frac"] == 1.0)
    assert 1.9 < apart / packed < 2.1  # twice the products; attention stays, and weights apart are spread
    with pytest.raises(ScenarioError, match="cores: raspberry-pi-5-8gb says it"):
        run_experiment("narrow-lanes", sizes=("cores=8",), device="raspberry-pi-5-8gb")
    with pytest.raises(OutOfRange, match="counted for processors"):
        run_experiment("narrow-lanes", device="h100-sxm")


def test_tuning_never_loses_and_no_time_keeps_what_was_shipped():
    (found,) = rows("browser-tuning", device="rtx-4070")
    assert found["speedup"] >= 1.0
    assert found["tuning_s"] <= 30.0
    (all_of,) = rows("browser-tuning", "budget_s=1e6", device="rtx-4070")
    assert all_of["candidates"] == 3 * LARGEST_TILE, "every side of a tile for each of three shapes"
    assert all_of["tuned_s"] <= found["tuned_s"] <= found["shipped_s"]
    assert all_of["tuning_s"] > 3 * LARGEST_TILE * 0.1, "compiling, and ten runs of each"
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


def test_a_token_of_the_memory_as_it_is_sold_by_hand():
    """GPT-2 medium: 24 layers 1024 wide, 16 heads, 512 tokens of context, eight channels of sixteen banks: 128.

    A row of 1024 elements of two bytes fills a row of the memory: 64 columns of 1 ns and 24 ns to open and close. Rows
    of outputs per bank are 24 (query, key, value), 8 (out) and 32 (up); down has 8 of four rows each; the words 393.
    Scores are 16 heads x 512 rows of 64 elements, so 64 a bank of 4 columns, four whole rows; values are 8 a bank of 32
    columns, four whole rows again. Vectors go in at 32 GB/s (each head's to its own channel), results out at 256 GB/s.
    """
    (row,) = rows("memory-banks", "shapes=24x1024")
    ns = 24 * 88 + 8 * 88 + 32 * 88 + 8 * 4 * 88 + (64 * 4 + 4 * 24) + (8 * 32 + 4 * 24)  # in the banks
    ns += (3 * 2048 + 4 * 2048) / 32 + 16 * (128 + 1024) / 32 / 8  # in
    ns += 2 * (3072 + 1024 + 4096 + 1024 + 16 * 512 + 1024) / 256  # out
    ns += 24 + 2 * 1024 * 2 / 256  # key and value put down
    ns += (10 * 16 * 512 + 8 * 2 * 1024 + 15 * 4096) / 384  # beside the memory
    words_ns = 393 * 88 + 2048 / 32 + 2 * 50257 / 256
    assert row["token_s"] == pytest.approx((24 * ns + words_ns) * 1e-9, rel=1e-9)
    # read: 12 x 1024^2 weights a layer, keys and values, the words; 1.8 nJ for each 2 KiB, 12 pJ a byte
    elements = 24 * (12 * 1024**2 + 2 * 512 * 1024) + 50257 * 1024
    crossing = 24 * 2 * (8 * (3 + 4) * 1024 + 16 * (64 + 512) + 3072 + 1024 + 4096 + 1024 + 16 * 512 + 1024)
    crossing += 2 * (8 * 1024 + 50257)
    read_j = 2 * elements * 12e-12 + 2 * elements / 2048 * 1.8e-9 + crossing * 44e-12 + 0.3 * row["token_s"]
    multiplied = ("read_j_per_bytes=0", "open_j=0", "pin_j_per_bytes=0", "standby_w=0")
    (alone,) = rows("memory-banks", "shapes=24x1024", *multiplied)
    assert alone["token_s"] == row["token_s"]
    assert row["token_j"] == pytest.approx(read_j + alone["token_j"], rel=1e-9)
    assert 1e-12 < alone["token_j"] / elements < 4e-12, "a product of 16 bits and a sum of 32: 1 to 4 pJ"


def test_what_a_device_s_memory_would_take_at_least():
    """Two layers of 12 x 4 x 4 weights and 3 words of 4, at two bytes each."""
    sizes = ("shapes=2x4", "num_head=4", "num_vocabulary=3", "num_channels=1")
    (row,) = rows("memory-banks", *sizes, device="t4")
    least_s = 2 * (2 * 12 * 16 + 3 * 4) / get_device("t4").memory_bandwidth_bytes_per_s
    assert row["device_least_s"] == pytest.approx(least_s)
    assert row["speedup_at_most"] == pytest.approx(least_s / row["token_s"])


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


def test_looking_up_beside_multiplying_by_hand():
    one, two = rows("lookup-units", "tile=1x2x2", "multiply_tile=1x1x4", "weight_bits=1,2")[::2]
    # 4 products a cycle of either unit, so on one-bit weights the gains are the silicon's and the energy's alone
    assert one["products_per_cycle"] == 4.0
    assert one["density_ratio"] == pytest.approx(one["multiply_area_m2"] / one["area_m2"])
    # weights of two bits take two cycles
    assert two["products_per_cycle"] == 2.0
    assert (two["density_ratio"], two["energy_ratio"]) == (one["density_ratio"] / 2, one["energy_ratio"] / 2)
    # a table of one input shares nothing; whole numbers are multiplied on less silicon, so looking up gains less
    narrow = rows("lookup-units", "tile=1x1x1", "multiply_tile=1x1x1", "multiplied=int8")[0]
    wide = rows("lookup-units", "tile=1x1x1", "multiply_tile=1x1x1")[0]
    assert narrow["tile"] == "1x1x1"
    assert narrow["multiply_area_m2"] < wide["multiply_area_m2"]
    assert narrow["density_ratio"] < wide["density_ratio"]


def test_the_second_tile_takes_the_least_silicon_of_as_many_products():
    written, least = rows("lookup-units", "tile=8x16x4", "weight_bits=1")
    assert (written["tile"], least["tile"]) == ("8x16x4", "2x64x4")
    assert least["area_m2"] < written["area_m2"]
    assert least["products_per_cycle"] == written["products_per_cycle"] == 512


def test_arrays_on_one_silicon_by_hand():
    sizes = ("shapes=64x64x2,128x64x1", "tokens=10", "side=64", "clock_hz=1000", "weight_bits=4")
    first, group, shift = rows("scaled-arrays", *sizes)
    # one pass of each product, two of the wider: 10 tokens, and 126 cycles to fill and drain
    assert (first["element"], first["side"], first["cycles"]) == ("element-scaled", 64, (2 + 2) * (10 + 126))
    assert first["time_s"] == pytest.approx(0.544)
    assert (first["speedup"], first["energy_ratio"]) == (1.0, 1.0)
    assert first["energy_j"] == pytest.approx(first["compute_j"] + first["on_chip_j"] + first["off_chip_j"])
    assert 64 < group["side"] <= shift["side"]
    for row in (group, shift):
        assert row["speedup"] == first["cycles"] / row["cycles"]
        assert row["energy_ratio"] == first["energy_j"] / row["energy_j"]
        assert row["off_chip_j"] == first["off_chip_j"]
    # activations of 8 bits, weights of 4 and results of 16 cross the memory's pins once; the first shape twice
    bits = 2 * (10 * 64 * 8 + 64 * 64 * 4 + 10 * 64 * 16) + (10 * 64 * 8 + 128 * 64 * 4 + 10 * 128 * 16)
    assert first["off_chip_j"] == pytest.approx(bits * memory_j_per_bit("dram"))
    # beside the array activations are read once a pass, sums of 32 bits go out and in once
    bits = 2 * (10 * 64 * 8 + 64 * 64 * 4 + 2 * 10 * 64 * 32) + (2 * 10 * 64 * 8 + 128 * 64 * 4 + 2 * 10 * 128 * 32)
    assert first["on_chip_j"] == pytest.approx(bits * memory_j_per_bit("cache_8_kib"))
    each = element_circuit(Element.ELEMENT_SCALED, 4, 8).energy_j
    assert first["compute_j"] == pytest.approx(10 * 64 * (2 * 64 + 128) * each)


BOARD = ("memory_bytes_per_s=100", "flops_per_s=1e9", "board_w=4", "reached_frac=0.5", "crossing_frac=0.25")
COUNTS = ("num_weights=100", "pruned_frac=0.4", "cache_elements_per_token=1", "activation_bytes=20")
LENGTHS = ("input_tokens=10", "output_tokens=4", "weight_bits=8", "place_bits=4")


def test_streamed_weights_by_hand():
    dense, thin = rows("streamed-weights", *BOARD, *COUNTS, *LENGTHS, "kept_frac=1,0.5")
    # 100 bytes at 50 a second, and a cache of 12 tokens at 25; the prompt reads the weights alone
    assert dense["prefill_s"] == pytest.approx(2.0)
    assert dense["token_s"] == pytest.approx(2.0 + 12 / 25)
    assert dense["tokens_per_s"] == pytest.approx(4 / (2.0 + 3 * 2.48))
    assert dense["tokens_per_j"] == dense["tokens_per_s"] / 4
    assert dense["moved_bytes"] == 112.0
    assert dense["reached_frac"] == pytest.approx(112 / 2.48 / 100)
    # 20 of 40 entries left, at 8 + 4 bits: 30 bytes
    assert thin["moved_bytes"] == pytest.approx(60 + 30 + 12)
    assert thin["token_s"] == pytest.approx(90 / 50 + 12 / 25)


def test_pruning_no_layer_or_nothing_of_one_changes_nothing():
    plain = rows("streamed-weights", *BOARD, *COUNTS, *LENGTHS, "kept_frac=1")
    none = rows("streamed-weights", *BOARD, *COUNTS, *LENGTHS, "pruned_frac=0", "kept_frac=1,0.1")
    assert [row["token_s"] for row in none] == [plain[0]["token_s"]] * 2


def test_multipliers_that_skip_no_zeros_bind_a_batch():
    slow = (*BOARD[:1], "flops_per_s=100", *BOARD[2:], *COUNTS, *LENGTHS, "kept_frac=0.5", "batch=2")
    (skips,) = rows("streamed-weights", *slow)
    (all_of,) = rows("streamed-weights", *slow, "skips_zeros=0")
    # 20 prompt tokens: 2 x 80 or 2 x 100 operations each, 100 a second
    assert (skips["prefill_s"], all_of["prefill_s"]) == (pytest.approx(32.0), pytest.approx(40.0))
    # activations of both sequences leave the chip: 2 x 20 bytes at 25 a second more
    (kept,) = rows("streamed-weights", *BOARD, *COUNTS, *LENGTHS, "kept_frac=1", "batch=2")
    (spilled,) = rows("streamed-weights", *BOARD, *COUNTS, *LENGTHS, "kept_frac=1", "batch=2", "keeps_activations=0")
    assert spilled["token_s"] - kept["token_s"] == pytest.approx(40 / 25)
    # a step of two reads both caches, and what it reads is at most what long reads reach
    assert kept["moved_bytes"] == 100 + 2 * 12
    assert kept["reached_frac"] < 0.5


def test_a_board_is_the_device_or_what_the_sizes_say():
    (device,) = rows("streamed-weights", "weight_bits=8", "kept_frac=1", device="alveo-u280")
    same = ("memory_bytes_per_s=460e9", "flops_per_s=5.41e12", "board_w=225")
    (said,) = rows("streamed-weights", "weight_bits=8", "kept_frac=1", *same)
    assert device["token_s"] == said["token_s"]
    assert device["tokens_per_j"] == pytest.approx(said["tokens_per_j"])
    (faster,) = rows("streamed-weights", "weight_bits=8", "kept_frac=1", *same[:1], device="h100-sxm")
    assert faster["token_s"] == said["token_s"]


def test_bits_that_track_operands_by_hand():
    # 2 warps of 3 counters of 5 bits, 4 stall bits and a flag; a scoreboard has 7 registers of 1 bit, and of 1 + 2
    sizes = ("warps=2", "registers=7", "counters=3", "counter_bits=5", "stall_bits=4", "readers=0,3", "processors=8")
    counters, plain, counted = rows("operand-tracking", *sizes, "file_registers=10")
    assert [row["processor_bits"] for row in (counters, plain, counted)] == [2 * 20, 2 * 7, 2 * 7 * 3]
    assert (counters["over_counters"], plain["over_counters"], counted["over_counters"]) == (1.0, 0.35, 1.05)
    assert counters["of_register_file_frac"] == 40 / 320
    assert counters["device_bytes"] == 40
    # warps need bits of their own either way: the ratio does not hang on how many there are
    many = rows("operand-tracking", "warps=4", *sizes[1:])
    assert many[2]["processor_bits"] == 2 * counted["processor_bits"]
    assert many[2]["over_counters"] == counted["over_counters"]
    # without counters, what is left are the stall bits and the flag
    bare = rows("operand-tracking", *sizes[:2], "counters=0", *sizes[3:])
    assert bare[0]["processor_bits"] == 2 * 5


def test_refusals_say_what_to_write():
    for name, sizes, words in (
        ("small-core-training", ("network=vgg",), "write resnet8, ds-cnn or layer"),
        ("small-core-training", ("cores=0",), "cores"),
        ("small-core-training", ("clock_hz=0",), "clock_hz"),
        ("small-core-learning", ("num_float_cycles=0",), "num_float_cycles"),
        ("small-core-learning", ("elements=1000000001",), "write 1 to 1,000,000,000"),
        ("small-core-learning", ("num_load_cycles=0",), "num_load_cycles"),
        ("small-core-learning", ("clock_hz=1e12",), "clock_hz"),
        ("narrow-lanes", ("drop_frac=1",), "write 0 to below 1"),
        ("narrow-lanes", ("clock_hz=0",), "above 0"),
        ("browser-tuning", (), "write --device"),
        ("image-server", (), "write --device"),
        ("memory-banks", ("shapes=12",), "write LAYERSxWIDTH"),
        ("memory-banks", ("element_bytes=0",), "above 0"),
        ("operand-tracking", ("warps=0",), "from 1 to 1024"),
        ("operand-tracking", ("registers=0",), "write 1 to 4,096"),
        ("operand-tracking", ("readers=-1",), "from 0"),
        ("lookup-units", ("tile=2x64",), "write tokens x outputs x inputs"),
        ("lookup-units", ("tile=2x64x17",), "inputs up to 16"),
        ("lookup-units", ("tile=2x64xfour",), "write tokens x outputs x inputs"),
        ("lookup-units", ("tile=2x64x\u0664",), "write tokens x outputs x inputs"),  # no digit of the first 128 letters
        ("lookup-units", ("tile=2x64x000004",), "write tokens x outputs x inputs"),
        ("lookup-units", ("tile=2x64x4x1",), "write tokens x outputs x inputs"),
        ("lookup-units", ("entries=int4",), "write fp16 or int8"),
        ("lookup-units", ("weight_bits=0",), "from 1 to 16"),
        ("scaled-arrays", ("shapes=64x64",), "write OUTPUTSxINPUTSxCOUNT"),
        ("scaled-arrays", ("clock_hz=0",), "above 0"),
        ("scaled-arrays", ("side=0",), "write 1 to 4,096"),
        ("streamed-weights", (), "write --device alveo-u280"),
        ("streamed-weights", (*BOARD, "board_w=-1"), "write --device"),
        ("streamed-weights", (*BOARD, "pruned_frac=2"), "from 0 to 1"),
        ("streamed-weights", (*BOARD, "num_weights=0"), "above 0"),
        ("streamed-weights", (*BOARD, "place_bits=-1"), "write 0 or more"),
        ("streamed-weights", (*BOARD, "reached_frac=1.5"), "up to 1"),
        ("streamed-weights", (*BOARD, "crossing_frac=0.6"), "no larger"),
    ):
        with pytest.raises(ScenarioError, match=words):
            rows(name, *sizes)
