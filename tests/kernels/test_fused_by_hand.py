"""Several kernels in one on a device of round numbers: perceptrons, chains and recurrences, term by term."""

from types import SimpleNamespace

import pytest

from orrery.base.errors import OutOfRange
from orrery.catalog.devices import get_device
from orrery.hardware.roofs import Roofs, shared_s
from orrery.kernels.fused.chain import Chain, chain_s, kernel_s, shortest_for
from orrery.kernels.fused.on_chip import shared_bytes
from orrery.kernels.fused.perceptron import Perceptron, Phase, fused_s, spilled_s, unfused_s
from orrery.kernels.fused.recurrence import Costs, Recurrence, kept_bytes, persistent_s, stepped_s, widest_head

NETWORK = Perceptron(num_width=16, num_matrices=3)
ROOFS = Roofs(flops_per_s=1e4, bytes_per_s=1e3)
PHASES = (Phase.INFERENCE, Phase.FORWARD, Phase.TRAINING)
DEVICE = SimpleNamespace(
    num_compute_units=2,
    memory_bandwidth_bytes_per_s=1e3,
    vector_flops_per_s=2e3,
    last_level_cache_bytes=1000.0,
    dense_flops_per_s={"bf16": 1e4},
)


def test_operations_and_bytes_of_a_row():
    """3 matrices of 16 x 16 are 1536 FLOPs; training makes three products of each."""
    assert [NETWORK.flops(phase) for phase in PHASES] == [1536, 1536, 3 * 1536]
    matrix, row = 2 * 256, 2 * 16
    assert [NETWORK.fused_bytes(phase, 20, 8) for phase in PHASES] == [  # 8, 8 and 4 rows
        20 * 2 * row + 3 * 3 * matrix,
        20 * (2 + 3) * row + 3 * 3 * matrix,
        20 * (2 + 15) * row + 2 * 3 * 3 * matrix,
    ]
    assert [NETWORK.unfused_bytes(phase, 20) for phase in PHASES[::2]] == [
        3 * (20 * 4 * row + matrix),
        3 * (20 * 11 * row + 3 * matrix),
    ]
    assert [NETWORK.unfused_launches(phase) for phase in PHASES[::2]] == [2 * 3, 5 * 3]
    assert [NETWORK.num_products(phase) for phase in PHASES] == [3, 3, 9]
    assert [NETWORK.spilled_bytes(phase, 20) for phase in PHASES] == [
        products * (20 * 2 * row + matrix) for products in (3, 3, 9)
    ]
    assert NETWORK.matrix_bytes == 512


@pytest.mark.parametrize(("phase", "products"), [(Phase.INFERENCE, 1), (Phase.TRAINING, 3)])
def test_times_are_roofs_or_launches(phase, products):
    """100 rows take their FLOPs at 10,000 a second or their bytes at 1,000; with launches of 1000 s those bind."""
    rows = 100
    flops_s = rows * NETWORK.flops(phase) / 1e4
    assert fused_s(NETWORK, phase, rows, 8, ROOFS, 0.0) == max(flops_s, NETWORK.fused_bytes(phase, rows, 8) / 1e3)
    assert unfused_s(NETWORK, phase, rows, ROOFS, 0.0) == max(flops_s, NETWORK.unfused_bytes(phase, rows) / 1e3)
    assert spilled_s(NETWORK, phase, rows, ROOFS, 0.0) == max(flops_s, NETWORK.spilled_bytes(phase, rows) / 1e3)
    assert fused_s(NETWORK, phase, rows, 8, ROOFS, 1e3) == (1e3 if products == 1 else 4e3)
    assert unfused_s(NETWORK, phase, rows, ROOFS, 1e3) == (6e3 if products == 1 else 15e3)
    assert spilled_s(NETWORK, phase, rows, ROOFS, 1e3) == products * 3e3


def test_a_kernel_fills_the_device_with_2048_threads_a_processor():
    assert kernel_s(4096, 500.0, 4000.0, DEVICE, 7.0) == 7 + 2
    assert kernel_s(8192, 500.0, 4000.0, DEVICE, 7.0) == 7 + 2
    assert kernel_s(1024, 500.0, 200.0, DEVICE, 7.0) == 7 + 4 * 0.5


@pytest.mark.parametrize(
    ("is_vertical", "is_horizontal", "kernels", "elements", "functions"),
    [
        (False, False, 15, 4096, 1),
        (True, False, 5, 4096, 3),
        (False, True, 3, 5 * 4096, 1),
        (True, True, 1, 5 * 4096, 3),
    ],
)
def test_chains_apart_and_fused(is_vertical, is_horizontal, kernels, elements, functions):
    """3 functions of 2 FLOPs over 5 arrays of 4096 words of 4 bytes."""
    chain = Chain(num_functions=3, num_arrays=5, num_elements=4096)
    moved_s, flops_s = 2 * elements * 4 / 1e3, elements * functions * 2 / 2e3
    found = chain_s(chain, DEVICE, 7.0, is_vertical=is_vertical, is_horizontal=is_horizontal)
    assert found == pytest.approx(kernels * (7 + max(moved_s, flops_s)))


def test_the_shortest_chain_that_gains_enough():
    """An element moves 8 bytes in 8 ms and computes 1 ms a function: n functions gain n up to 8."""
    chain = Chain(num_functions=1, num_arrays=1, num_elements=4096)
    assert [shortest_for(gain, chain, DEVICE, 0.0) for gain in (1.0, 2.0, 5.0, 8.0)] == [1, 2, 5, 8]
    assert shortest_for(8.1, chain, DEVICE, 0.0) == 0
    assert shortest_for(2.0, chain, DEVICE, 0.0, most=2) == 2
    assert shortest_for(2.0, chain, DEVICE, 0.0, most=1) == 0


LAYER = Recurrence(num_gates=4, num_heads=3, num_head_features=8)


def test_matrices_and_products_of_a_recurrence():
    assert LAYER.head_bytes == 4 * 64 * 2
    assert LAYER.step_flops(5) == 2 * 5 * 3 * 4 * 64
    padded_s = 2 * 16 * 3 * 4 * 64 / 1e4  # 5 sequences fill a tile of 16
    costs = Costs(launch_s=2.0, meeting_s=0.5)
    assert persistent_s(LAYER, 5, 10, DEVICE, costs) == pytest.approx(2 + 1536 / 1e3 + 10 * (padded_s + 0.5))
    assert persistent_s(LAYER, 17, 10, DEVICE, costs) == pytest.approx(2 + 1536 / 1e3 + 10 * (2 * padded_s + 0.5))


def test_steps_read_what_no_cache_holds():
    """1536 bytes do not fit 1000, and are read for every token; where they do, once."""
    padded_s = 2 * 16 * 3 * 4 * 64 / 1e4
    assert stepped_s(LAYER, 5, 10, 2, DEVICE, 0.0) == pytest.approx(10 * (1.536 + padded_s))
    held = SimpleNamespace(**vars(DEVICE) | {"last_level_cache_bytes": 1536.0})
    assert stepped_s(LAYER, 5, 10, 2, held, 0.0) == pytest.approx(1.536 + 10 * padded_s)
    assert stepped_s(LAYER, 5, 10, 2, held, 50.0) == pytest.approx(1.536 + 10 * 2 * 50)


def test_what_a_processor_keeps():
    """65,536 registers of 4 bytes and 227 KiB of a block; FP32 sums beside 16-bit elements leave a third."""
    assert kept_bytes(0.0, 2.0, 0.5) == 0.5 * 262144 + 227 * 1024
    assert kept_bytes(4.0, 2.0, 0.5) == pytest.approx((0.5 * 262144 + 227 * 1024) / 3)
    assert kept_bytes(4.0, 2.0, 1.0, 1024.0) == pytest.approx(263168 / 3)


def test_the_widest_head_by_hand():
    """One gate on one processor in 1 byte: w^2 bytes of 1024 leave 32; on four, columns are dealt out by sixteens."""
    alone = {"register_frac": 0.0, "element_bytes": 1.0, "shared_bytes": 1024.0}
    assert widest_head(1, 1, **alone) == 32
    assert widest_head(1, 4, **alone) == 64  # 4 tiles of 16 columns, one each: 16 x 64
    assert widest_head(2, 1, **alone) == 16  # 2 x 16 columns of 16; 32 would take 2048
    assert widest_head(1, 3, **alone) == 48
    assert widest_head(1, 3, is_power_of_two=True, **alone) == 32


@pytest.mark.parametrize(
    ("name", "kib"),
    [
        ("v100-sxm-32gb", 96),
        ("t4", 64),
        ("rtx-4090", 99),
        ("h100-sxm", 227),
        ("b200", 227),
        ("a100-sxm-80gb", 163),
        ("rtx-3090", 99),
        ("rtx-5090", 99),
        ("mi100", 64),
        ("mi250x", 64),
        ("mi300x", 64),
        ("mi355x", 160),
        ("p100", 48),
    ],
)
def test_memory_beside_a_processor(name, kib):
    assert shared_bytes(get_device(name)) == kib * 1024


def test_memory_that_no_guide_states_is_refused():
    with pytest.raises(OutOfRange, match="known are ampere, pascal"):
        shared_bytes(get_device("tpu-v5e"))


def test_two_processors_share_what_can_be_cut():
    """2 s here and 3 s there finish together after 1.2 s."""
    there = Roofs(flops_per_s=1e3, bytes_per_s=1e4)
    assert ROOFS.time_s(2e4, 1e3) == 2
    assert there.time_s(3e3, 1e3) == 3
    assert shared_s(ROOFS, there, 6e3, 2e3) == pytest.approx(2 * 6 / 8)
    assert shared_s(ROOFS, there, 0.0, 0.0) == 0
    assert ROOFS.ridge_flops_per_byte == 10
