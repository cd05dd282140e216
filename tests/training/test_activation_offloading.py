"""Activations in the host's memory, by hand: two layers' stay, and copies show where a layer computes for less long."""

from dataclasses import replace

import numpy as np
import pytest

import orrery
from orrery.base.errors import ScenarioError
from orrery.evidence.row import Row
from orrery.evidence.training_row import offloads_activations, read_training_row
from orrery.execution.host_rates import copy_bytes_per_s
from orrery.training.columns import columns_of
from orrery.training.step import step_of

ROW = {
    "model": "meta-llama/Llama-3.1-8B",
    "task": "full_finetune",
    "device": "h100-sxm",
    "num_devices": "1",
    "micro_batch": "1",
    "global_batch": "1",
    "seq_len": "8192",
    "precision": "bf16",
    "recompute": "full",
    "framework": "torchtune",
}


def steps(bytes_per_s, **given):
    job, layout = read_training_row(Row(ROW | given))
    return step_of(replace(job, activation_offload_bytes_per_s=bytes_per_s), columns_of([layout]))


def test_the_inputs_of_two_layers_stay_on_the_device():
    """16-bit inputs of 8,192 x 4,096 for each of 32 layers."""
    stays, leaves = steps(0.0), steps(1e15)
    layer_bytes = 2 * 8192 * 4096
    gone = stays.first.parts["activations"][0] - leaves.first.parts["activations"][0]
    assert gone == pytest.approx(30 * layer_bytes, rel=1e-6)
    assert leaves.parts["activation offloading"][0] == stays.parts["activation offloading"][0] == 0
    assert leaves.time_s[0] == stays.time_s[0]


def test_copies_show_where_they_take_longer_than_a_layer():
    """At a rate at which one layer's input takes a whole second, each way, beside what a layer computes."""
    found = steps(2 * 8192 * 4096)
    forward = found.parts["forward"][0]
    back = sum(found.parts[n][0] for n in ("backward", "weight gradients", "recomputation"))
    alone = steps(1e15)
    in_layers = 2 * 32 - found.parts["activation offloading"][0]
    assert 0 < in_layers < forward + back, "the embedding and the head hide none"
    assert found.time_s[0] - alone.time_s[0] == pytest.approx(found.parts["activation offloading"][0])


def test_no_more_than_one_micro_batch_is_there_where_layers_are_few():
    job, layout = read_training_row(Row(ROW | {"recompute": "none"}))
    one = replace(job, model=replace(job.model, blocks=(replace(job.model.blocks[0], count=1),)))
    held = [
        step_of(replace(one, activation_offload_bytes_per_s=rate), columns_of([layout])).first.parts["activations"][0]
        for rate in (0.0, 1e15)
    ]
    assert held[0] == held[1] > 0


def test_a_link_that_devices_share_is_parted():
    job, _ = read_training_row(Row(ROW))
    device = job.cluster.device
    assert copy_bytes_per_s(device) == 0.82 * device.host.each_way_bytes_per_s
    assert copy_bytes_per_s(device, 4) == copy_bytes_per_s(device) / 4


@pytest.mark.parametrize(
    ("cells", "leaves"),
    [
        ({}, False),
        ({"activation_offloading": "yes"}, True),
        ({"activation_offloading": "no"}, False),
        ({"technique": "+activation offloading"}, True),
    ],
)
def test_rows_say_that_activations_leave(cells, leaves):
    assert offloads_activations(Row(ROW | cells)) == leaves
    job, _ = read_training_row(Row(ROW | cells))
    assert (job.activation_offload_bytes_per_s > 0) == leaves


def test_a_user_asks_for_it():
    given = {
        "model": "llama-3.1-8b",
        "device": "h100-sxm",
        "devices": 8,
        "framework": "fsdp",
        "global_batch": 16,
        "seq_len": 32768,
        "recompute": "full",
        "loss_tokens": 1024,
    }
    stays, leaves = orrery.train(**given), orrery.train(**given, activation_offloading=True)
    layer_bytes = 2 * 32768 * 4096
    assert stays.peak_memory_bytes - leaves.peak_memory_bytes == pytest.approx(30 * layer_bytes, rel=0.01)
    assert any(note.startswith("activation_offloading: the host has room") for note in leaves.notes)
    shared = orrery.train(**given, activation_offloading=True, devices_per_host_link=64)
    assert shared.parts["activation offloading"] > leaves.parts["activation offloading"]
    with pytest.raises(ScenarioError, match="activation_offloading: an offloaded job keeps what its technique says"):
        orrery.train(**given, activation_offloading=True, offload="zero-offload")


def test_layouts_are_answered_side_by_side():
    job, layout = read_training_row(Row(ROW))
    slow = replace(job, activation_offload_bytes_per_s=1e9)
    both = columns_of([layout, replace(layout, recompute="none")])
    found = step_of(slow, both).parts["activation offloading"]
    alone = [step_of(slow, columns_of([x])).parts["activation offloading"][0] for x in (both.layout(0), both.layout(1))]
    assert np.allclose(found, alone)
    assert found[1] > found[0], "a layer that is not made again saves more"
