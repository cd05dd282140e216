"""Exchanges of tokens beside products in ``orrery train``: streams, chunks and gradients, each switched off."""

import pytest

import orrery

JOB = {
    "model": "mixtral-8x7b",
    "device": "rtx-a6000",
    "devices": 64,
    "devices_per_node": 8,
    "node_link_bytes_per_s": 25e9,
    "tp": 8,
    "ep": 8,
    "etp": 8,
    "global_batch": 64,
    "micro_batch": 8,
    "seq_len": 1024,
    "sharding": "zero1",
    "recompute": "full",
    "sequence_parallel": True,
    "dispatcher": "all-to-all",
}
PIPELINE = {"expert_overlap": "expert-pipeline"}


def step_s(**more):
    return orrery.train(**(JOB | more)).step_time_s


def knob(text):
    return {**PIPELINE, "knob": [f"expert_overlap.{text}"]}


def test_each_part_of_the_pipeline_costs_time_when_it_is_off():
    """Gathers inside nodes run beside sends between nodes; tokens in chunks; gradients where links idle."""
    slots, serial = {"gradient_overlap": "gradient-slots"}, {"gradient_overlap": "gradient-serial"}
    whole = step_s(**PIPELINE, **slots)
    without = (
        step_s(**knob("has_two_streams=0"), **slots),
        step_s(**knob("num_chunks=1"), **slots),
        step_s(**PIPELINE, **serial),
    )
    assert min(without) > 1.02 * whole
    assert max(without) < step_s(**serial)


def test_one_stream_in_one_chunk_hides_weight_gradients_alone():
    alone = {**PIPELINE, "knob": ["expert_overlap.has_two_streams=0,expert_overlap.num_chunks=1"]}
    plain, found = orrery.train(**JOB), orrery.train(**(JOB | alone))
    hidden_s = plain.parts["expert parallel"] - found.parts["expert parallel"]
    assert 0.0 < hidden_s <= plain.parts["weight gradients"]


@pytest.mark.parametrize(
    "more",
    [
        {"etp": 1, "ep": 8},  # nobody shares an expert
        {"device": "h100-sxm", "devices": 8, "global_batch": 8, "ep": 2, "etp": 4},  # all ranks on one node's links
        {"dispatcher": "all-gather"},  # one collective of all ranks
    ],
)
def test_a_second_stream_needs_links_of_its_own(more):
    job = {"model": "allenai/OLMoE-1B-7B-0924"} | more
    assert step_s(**job, **knob("has_two_streams=0")) == step_s(**job, **knob("has_two_streams=1"))
