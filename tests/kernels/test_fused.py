"""Kernels in one: perceptrons, chains and recurrences against what can be counted by hand."""

from dataclasses import replace

import pytest

from orrery.catalog.devices import get_device
from orrery.hardware.roofs import Roofs
from orrery.kernels.fused.chain import RESIDENT_THREADS, Chain, chain_s, kernel_s
from orrery.kernels.fused.perceptron import Perceptron, Phase, fused_s, unfused_s
from orrery.kernels.fused.recurrence import (
    REGISTER_BYTES,
    SHARED_BYTES,
    TILE,
    Costs,
    Recurrence,
    persistent_s,
    stepped_s,
    widest_head,
)

NARROW = Perceptron(num_width=64, num_matrices=5)
ROOFS, LAUNCH_S = Roofs(flops_per_s=838e12, bytes_per_s=2e12), 5e-6
RTX = get_device("rtx-4090")
H100 = get_device("h100-sxm")
LSTM = Recurrence(num_gates=4, num_heads=3, num_head_features=256)


def test_a_fused_row_crosses_memory_twice_and_shares_the_weights():
    """128 bytes in, 128 out, and five matrices of 8 KiB for as many rows as load them together, or for fewer."""
    weights = 5 * 8192
    assert NARROW.fused_bytes(Phase.INFERENCE, 1024, 512) == 1024 * 256 + 2 * weights
    assert NARROW.fused_bytes(Phase.INFERENCE, 1024, 128) == 1024 * 256 + 8 * weights
    assert NARROW.fused_bytes(Phase.FORWARD, 1024, 512) == 1024 * 128 * 7 + 2 * weights
    assert NARROW.fused_bytes(Phase.INFERENCE, 8, 128) == 8 * 256 + weights
    assert NARROW.fused_bytes(Phase.INFERENCE, 129, 128) == 129 * 256 + 2 * weights


def test_unfused_bytes_grow_with_every_layer_and_fused_ones_hardly():
    deep, rows = replace(NARROW, num_matrices=50), 4096
    unfused = [network.unfused_bytes(Phase.INFERENCE, rows) for network in (deep, NARROW)]
    assert unfused[0] == 10 * unfused[1] == 50 * (4096 * 4 * 128 + 8192)
    fused = [network.fused_bytes(Phase.INFERENCE, rows, 4096) for network in (deep, NARROW)]
    assert fused[0] < 2 * fused[1]


@pytest.mark.parametrize("phase", [Phase.INFERENCE, Phase.TRAINING])
@pytest.mark.parametrize("rows", [1, 8, 1000])
def test_no_way_moves_less_than_one_load_of_everything(phase, rows):
    least = NARROW.fused_bytes(phase, rows, rows)
    assert least <= NARROW.fused_bytes(phase, rows, 128)
    assert least <= NARROW.unfused_bytes(phase, rows)
    assert NARROW.fused_bytes(Phase.INFERENCE, rows, rows) <= NARROW.spilled_bytes(phase, rows)


@pytest.mark.parametrize("phase", [Phase.INFERENCE, Phase.TRAINING])
def test_fusing_gains_launches_on_few_rows_and_bytes_on_many(phase):
    few = unfused_s(NARROW, phase, 1, ROOFS, LAUNCH_S) / fused_s(NARROW, phase, 1, 512, ROOFS, LAUNCH_S)
    launches = NARROW.unfused_launches(phase) / (1 if phase is Phase.INFERENCE else 6)
    assert few == pytest.approx(launches)
    rows = 1 << 22
    many = unfused_s(NARROW, phase, rows, ROOFS, LAUNCH_S) / fused_s(NARROW, phase, rows, 512, ROOFS, LAUNCH_S)
    assert many == pytest.approx(NARROW.unfused_bytes(phase, rows) / NARROW.fused_bytes(phase, rows, 512))


def test_reads_on_chip_bound_a_deep_network():
    deep = replace(NARROW, num_matrices=200)
    tight = replace(ROOFS, flops_per_s=393e12)
    rows = 1 << 20
    assert fused_s(deep, Phase.INFERENCE, rows, 4096, tight, LAUNCH_S) == pytest.approx(
        rows * deep.flops(Phase.INFERENCE) / 393e12
    )


def test_a_kernel_is_a_launch_and_its_bytes_once_the_device_is_full():
    full = RESIDENT_THREADS * RTX.num_compute_units
    streamed = 8.0 * full / RTX.memory_bandwidth_bytes_per_s
    assert kernel_s(full, 8.0 * full, full, RTX, 5e-6) == pytest.approx(5e-6 + streamed)
    assert kernel_s(full / 4, 2.0 * full, full / 4, RTX, 0.0) == pytest.approx(streamed)  # a quarter, four times slower


def test_two_functions_on_a_large_array_gain_two():
    chain = Chain(num_functions=2, num_arrays=1, num_elements=10_000_000)
    apart = chain_s(chain, RTX, 0.0, is_vertical=False, is_horizontal=False)
    assert apart / chain_s(chain, RTX, 0.0, is_vertical=True, is_horizontal=False) == pytest.approx(2.0)
    assert apart == pytest.approx(chain_s(chain, RTX, 0.0, is_vertical=False, is_horizontal=True))


def test_small_arrays_gain_their_launches_across_the_batch():
    chain = Chain(num_functions=1, num_arrays=20, num_elements=100)
    apart = chain_s(chain, RTX, 5e-6, is_vertical=True, is_horizontal=False)
    assert apart / chain_s(chain, RTX, 5e-6, is_vertical=True, is_horizontal=True) == pytest.approx(20, rel=0.01)


def test_a_long_chain_in_one_kernel_is_bound_by_arithmetic():
    chain = Chain(num_functions=10_000, num_arrays=1, num_elements=1_000_000)
    fused = chain_s(chain, RTX, 0.0, is_vertical=True, is_horizontal=True)
    assert fused == pytest.approx(2.0 * 10_000 * 1_000_000 / RTX.vector_flops_per_s)


def test_the_widest_head_fits_and_the_next_does_not():
    for processors in (1, 16, 132):
        width = widest_head(4, processors, register_frac=0.5)
        room = 0.5 * REGISTER_BYTES + SHARED_BYTES
        held = [-(-4 * w // (TILE * processors)) * TILE * w * 2.0 for w in (width, width + TILE)]
        assert held[0] <= room < held[1]


def test_sums_of_gradients_and_powers_of_two_narrow_a_head():
    assert widest_head(4, 1, register_frac=0.5) == 208
    assert widest_head(4, 1, register_frac=0.5, gradient_bytes=4.0) == 112
    assert widest_head(4, 1, register_frac=0.5, gradient_bytes=4.0, is_power_of_two=True) == 64


def test_a_kernel_that_stays_pays_a_launch_once_and_a_meeting_each_step():
    costs = Costs(launch_s=2e-6, meeting_s=1e-6)
    one, two = (persistent_s(LSTM, 8, n, H100, costs) for n in (1000, 2000))
    assert two - one == pytest.approx(1000 * 1e-6, rel=0.05)
    read_s = LSTM.num_heads * LSTM.head_bytes / H100.memory_bandwidth_bytes_per_s
    assert stepped_s(LSTM, 8, 1000, 14, H100, 5e-6) == pytest.approx(1000 * 14 * 5e-6 + read_s)


def test_weights_beyond_the_cache_are_read_each_step():
    wide = replace(LSTM, num_heads=1, num_head_features=4096)  # 134 MB
    step = stepped_s(wide, 8, 1, 1, H100, 1e-9)
    assert step > wide.head_bytes / H100.memory_bandwidth_bytes_per_s
