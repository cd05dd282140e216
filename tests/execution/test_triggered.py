"""Products that trigger the ring: chunks by hand, bounds of the overlap, and when it does not help."""

from dataclasses import replace

import numpy as np
import pytest

from orrery.base.extension_points import knob_array
from orrery.execution.train.hidden import TENSOR
from orrery.execution.train.overlap import Pair
from orrery.execution.triggered import (
    CutProduct,
    Machine,
    in_turns,
    read_chunks,
    ring_s,
    together,
    triggered,
    written_chunks,
)

PRODUCT = CutProduct(num_tokens=8192, num_outputs=4096, num_depth=2048, num_devices=8)
MACHINE = Machine(
    flops_per_s=100e12, memory_bandwidth_bytes_per_s=1e12, link_each_way_bytes_per_s=75e9, link_latency_s=0.0
)


@pytest.mark.parametrize(("devices", "ratio"), [(8, 2.5), (16, 31 / 14), (32, 63 / 30)])
def test_memory_that_adds_saves_reads(devices, ratio):
    reads = [read_chunks(devices, is_triggered=kind) for kind in (False, True)]
    assert reads[0] / reads[1] == ratio
    writes = [written_chunks(devices, is_triggered=kind) for kind in (False, True)]
    assert writes[0] - writes[1] == 2


def test_bytes_of_a_sublayer_are_its_chunks():
    chunk, operands = PRODUCT.chunk_bytes, PRODUCT.operand_bytes
    assert chunk == 2 * 8192 * 4096 / 8
    assert in_turns(PRODUCT, MACHINE).memory_bytes == operands + (16 + 15 + 14) * chunk
    assert triggered(PRODUCT, MACHINE).memory_bytes == operands + (14 + 6 + 14) * chunk


def test_in_turns_adds_up_what_triggered_hides():
    ring, compute = ring_s(PRODUCT, MACHINE), PRODUCT.flops / MACHINE.flops_per_s
    assert ring == pytest.approx(7 * PRODUCT.chunk_bytes / 75e9)
    assert in_turns(PRODUCT, MACHINE).time_s == pytest.approx(compute + 2 * ring)
    assert triggered(PRODUCT, MACHINE).time_s == pytest.approx(max(compute, compute / 8 + ring) + ring)


def test_product_and_ring_wholly_at_once():
    """The longer of both, then the all-gather; a full memory holds both up, with every byte but the all-gather's."""
    ring, compute = ring_s(PRODUCT, MACHINE), PRODUCT.flops / MACHINE.flops_per_s
    found = together(PRODUCT, MACHINE)
    assert found.time_s == pytest.approx(max(compute, ring) + ring)
    assert found.memory_bytes == in_turns(PRODUCT, MACHINE).memory_bytes
    slow = replace(MACHINE, memory_bandwidth_bytes_per_s=20e9)
    moved = PRODUCT.operand_bytes + (16 + 15) * PRODUCT.chunk_bytes
    assert together(PRODUCT, slow).time_s == pytest.approx(moved / 20e9 + ring)


@pytest.mark.parametrize("depth", [64, 512, 2048, 8192, 65536])
@pytest.mark.parametrize("link", [1e9, 75e9, 450e9])
def test_overlap_never_loses_and_never_gains_more_than_half(depth, link):
    product = replace(PRODUCT, num_depth=depth)
    machine = replace(MACHINE, link_each_way_bytes_per_s=link, memory_bandwidth_bytes_per_s=1e15)
    gain = in_turns(product, machine).time_s / triggered(product, machine).time_s
    assert 1.0 <= gain <= 1.5


def test_a_memory_that_is_full_holds_both_up():
    slow = replace(MACHINE, memory_bandwidth_bytes_per_s=20e9)
    run = triggered(PRODUCT, slow)
    at_once = run.memory_bytes - 14 * PRODUCT.chunk_bytes
    assert run.time_s == pytest.approx(at_once / 20e9 + ring_s(PRODUCT, slow))


@pytest.mark.parametrize("depth", [64, 2048, 65536])
@pytest.mark.parametrize("adds", [True, False])
def test_the_flag_of_a_training_step_is_the_same_rule(depth, adds):
    """Where nothing slows products beside collectives, and memory holds nobody up."""
    product, machine = replace(PRODUCT, num_depth=depth), replace(MACHINE, memory_bandwidth_bytes_per_s=1e18)
    ring = ring_s(product, machine)
    pair = Pair(
        compute_s=np.array([product.flops / machine.flops_per_s]),
        network_s=np.array([2.0 * ring]),
        num_collectives=1.0,
        cut_compute_s=lambda cuts: np.zeros(1),
        cut_columns_s=lambda cuts: np.zeros(1),
        cut_network_s=lambda cuts: np.zeros(1),
        backward_weight_s=np.zeros(1),
        contention_ratio=1.0,
    )
    technique = TENSOR.get("tile-fusion")
    flag_s = technique.rule(pair, knob_array(technique, num_stages=8, adds_in_memory=float(adds)))
    assert flag_s[0] == pytest.approx(triggered(product, machine, adds_in_memory=adds).time_s)
