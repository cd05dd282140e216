"""Chains on a spatial device: what streaming saves, where it stalls, and when a switch between both is better."""

import pytest

from orrery.base.errors import OutOfRange
from orrery.catalog.models import get_model
from orrery.execution.dataflow.chain import Machine, Task, in_turn_s, streamed_s, switched_s, traffic_bytes
from orrery.execution.dataflow.layer import layer_tasks

FAR = Machine(flops_per_s=1e12, memory_bytes_per_s=1e9, buffer_bytes=0.0)
CHAIN = tuple(Task(name=n, flops=1e9, input_bytes=1e6, output_bytes=1e6) for n in "abcd")


def test_in_turn_without_a_buffer_moves_every_tensor_twice():
    assert in_turn_s(CHAIN, FAR) == pytest.approx(4 * 2e-3)
    assert traffic_bytes(CHAIN, (1, 1, 1, 1), FAR) == 8e6
    assert traffic_bytes(CHAIN, (4,), FAR) == 2e6


def test_streaming_moves_the_ends_only_and_pays_for_filling():
    assert streamed_s(CHAIN, FAR, pieces=4) == pytest.approx(4e-3 * 1.75)
    assert streamed_s(CHAIN, FAR, pieces=10**9) == pytest.approx(4e-3)


def test_a_buffer_saves_what_fits():
    roomy = Machine(flops_per_s=1e12, memory_bytes_per_s=1e9, buffer_bytes=1e6)
    assert in_turn_s(CHAIN, roomy) == pytest.approx(2 * 1e-3 + 2 * 1e-3)
    tight = Machine(flops_per_s=1e12, memory_bytes_per_s=1e9, buffer_bytes=1e6 - 1)
    assert in_turn_s(CHAIN, tight) == pytest.approx(8e-3)


def test_a_task_that_needs_all_leaves_the_others_idle():
    fast = Machine(flops_per_s=1e12, memory_bytes_per_s=1e15, buffer_bytes=1e9)
    stalled = (*CHAIN[:2], Task(name="c", flops=1e9, input_bytes=1e6, output_bytes=1e6, needs_all=True), CHAIN[3])
    many = 10**9
    assert streamed_s(stalled, fast, many) == pytest.approx(2 * streamed_s(CHAIN, fast, many))
    time_s, groups = switched_s(stalled, fast, many)
    assert time_s == pytest.approx(4e-3)
    assert sum(groups) == 4


def test_what_waits_and_does_not_fit_goes_out_and_in_again():
    stalled = (*CHAIN[:2], Task(name="c", flops=1e9, input_bytes=1e6, output_bytes=1e6, needs_all=True), CHAIN[3])
    assert traffic_bytes(stalled, (4,), FAR) == traffic_bytes(stalled, (2, 2), FAR) == 4e6
    assert streamed_s(stalled, FAR, pieces=10**9) == pytest.approx(8e-3)  # two shares of the device, 4e9 operations


def test_switching_is_never_worse_than_either():
    machine = Machine(flops_per_s=1e12, memory_bytes_per_s=2e9, buffer_bytes=5e5, start_s=1e-6)
    mixed = (
        Task(name="a", flops=2e9, input_bytes=1e5, output_bytes=1e7),
        Task(name="b", flops=2e9, input_bytes=1e7, output_bytes=1e5),
        Task(name="c", flops=4e9, input_bytes=1e5, output_bytes=1e5, needs_all=True),
    )
    time_s, groups = switched_s(mixed, machine, pieces=1000)
    assert groups[0] == 2  # the wide tensor is streamed away
    assert time_s < streamed_s(mixed, machine, pieces=1000)
    assert time_s < in_turn_s(mixed, machine)


def test_a_start_costs_each_group():
    slow = Machine(flops_per_s=1e30, memory_bytes_per_s=1e30, buffer_bytes=0.0, start_s=1.0)
    assert in_turn_s(CHAIN, slow) == pytest.approx(4.0)
    assert streamed_s(CHAIN, slow) == pytest.approx(1.0)


def test_a_layer_has_its_weights_and_work():
    model = get_model("llama-2-7b")
    block = model.blocks[0]
    tasks = layer_tasks(block, model.hidden_size, 1, 1024, ranks=8)
    weights = sum(x.in_features * x.out_features for x in block.linears)
    cache = 2 * 4 * 1024 * 128 * 2
    assert sum(t.weight_bytes for t in tasks) == pytest.approx(2 * weights / 8 + cache)
    flops = sum(t.flops for t in tasks if t.name in ("qkv", "out", "gate_up", "down"))
    assert flops == pytest.approx(2 * weights / 8)
    assert [t.name for t in tasks][:4] == ["norm 1", "qkv", "scores", "softmax"]


def test_what_is_no_chain_is_refused():
    mixtral = get_model("mixtral-8x7b")
    with pytest.raises(OutOfRange, match="dense"):
        layer_tasks(mixtral.blocks[0], mixtral.hidden_size, 1, 1)
    with pytest.raises(OutOfRange, match="chain has 4"):
        traffic_bytes(CHAIN, (3,), FAR)
    with pytest.raises(OutOfRange, match="rates above 0"):
        Machine(flops_per_s=0.0, memory_bytes_per_s=1.0, buffer_bytes=0.0)
