"""Settings of a training job that change what a framework or a technique does: attention, loss in chunks, knobs."""

import pytest

import orrery
from orrery.base.errors import ScenarioError

JOB = {"model": "llama-3.2-1b", "device": "a100-sxm-80gb", "devices": 4, "global_batch": 16, "seq_len": 2048}
TP = JOB | {"tp": 4, "framework": "megatron-lm"}
OFFLOAD = {
    "model": "llama-3.2-1b",
    "device": "l40s",
    "devices": 1,
    "global_batch": 8,
    "seq_len": 2048,
    "micro_batch": 8,
}


def test_unfused_attention_writes_its_scores():
    """32 heads x 2048 x 2048 scores of 2 bytes in each of 16 layers are more to keep."""
    fused, plain = (orrery.train(**JOB, micro_batch=1, recompute="none", fused_attention=f) for f in (True, False))
    more = plain.ranks[0].parts["activations"] - fused.ranks[0].parts["activations"]
    assert more >= 16 * 32 * 2048 * 2048 * 2 * 0.99
    assert plain.step_time_s > fused.step_time_s
    assert orrery.train(**JOB, micro_batch=1, recompute="none").step_time_s == fused.step_time_s  # as the framework


def test_a_loss_in_chunks_holds_fewer_logits():
    """Four sequences at once: a chunk of one sequence holds a quarter of the logits; all of them is the plain step."""
    whole, quarter, all_of_them = (orrery.train(**JOB, micro_batch=4, loss_tokens=n) for n in (None, 2048, 4 * 2048))
    assert quarter.ranks[-1].parts["logits"] == pytest.approx(whole.ranks[-1].parts["logits"] / 4)
    assert all_of_them.step_time_s == whole.step_time_s
    assert all_of_them.peak_memory_bytes == whole.peak_memory_bytes
    assert quarter.step_time_s >= whole.step_time_s * (1 - 1e-12)


def test_a_knob_is_the_techniques_own():
    plain = orrery.train(**OFFLOAD, offload="zero-offload")
    same = orrery.train(**OFFLOAD, offload="zero-offload", knob="offload.is_delayed=false")
    late = orrery.train(**OFFLOAD, offload="zero-offload", knob="offload.is_delayed=true")
    assert same.step_time_s == plain.step_time_s > late.step_time_s
    pageable = orrery.train(**OFFLOAD, offload="zero-offload", knob="offload.is_pinned=no")
    assert pageable.step_time_s > plain.step_time_s


def test_states_lie_where_a_knob_says():
    drives, host = (
        orrery.train(
            **OFFLOAD, offload="zero-infinity", knob=[f"offload.{what}={place}" for what in ("parameters", "states")]
        )
        for place in ("nvme", "host")
    )
    assert drives.held.nvme_bytes > 0 == host.held.nvme_bytes
    assert host.held.host_bytes > drives.held.host_bytes


def test_devices_behind_one_switch_share_its_link():
    alone, shared = (orrery.train(**OFFLOAD, offload="zero-infinity", devices_per_host_link=n) for n in (1, 4))
    assert shared.tiers.host_link_each_way_bytes_per_s == alone.tiers.host_link_each_way_bytes_per_s / 4
    assert shared.lanes["to_gpu"] == pytest.approx(4 * alone.lanes["to_gpu"])


def test_a_measured_update_is_taken_where_it_is_slower_than_memory():
    fast, slow = (orrery.train(**OFFLOAD, offload="zero-offload", host_updates_per_s=rate) for rate in (1e12, 1e8))
    assert slow.lanes["cpu"] == pytest.approx(1.236e9 / 1e8, rel=2e-3)  # parameters over updates a second
    assert fast.step_time_s == orrery.train(**OFFLOAD, offload="zero-offload").step_time_s < slow.step_time_s


def test_one_slice_of_each_is_the_serial_step():
    serial = orrery.train(**TP, tensor_overlap="serial")
    whole = ["tensor_overlap.row_slices=1", "tensor_overlap.column_slices=1"]
    one = orrery.train(**TP, tensor_overlap="domino", knob=whole)
    assert one.step_time_s == pytest.approx(serial.step_time_s, rel=0.03)
    assert one.step_time_s <= serial.step_time_s


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"knob": "offload.is_delayed=true"}, "is read with offload"),
        ({"knob": "tensor_overlap.row_slices=2"}, "is read with tensor_overlap"),
        ({"knob": "policy.chunk_tokens=512"}, "is of serving"),
        ({"knob": "nothing.at=1"}, "is no knob"),
        ({"offload": "zero-offload", "knob": "offload.is_late=true"}, "has no knob 'is_late'"),
        ({"offload": "zero-offload", "knob": "offload.is_delayed=maybe"}, "write true or false"),
        ({"offload": "zero-offload", "knob": "offload.recomputes=true"}, "write recompute = full or none"),
        ({"offload": "zero-infinity", "knob": "offload.states=tape"}, "write one of gpu, host, nvme"),
        ({"tensor_overlap": "domino", "knob": "tensor_overlap.row_slices=0"}, "write 1 to 64"),
        ({"devices_per_host_link": 2}, "nothing leaves the device"),
    ],
)
def test_knobs_that_make_no_sense_are_refused(settings, says):
    with pytest.raises(ScenarioError, match=says):
        orrery.train(**TP, **settings)


def test_serving_refuses_knobs_of_training():
    with pytest.raises(ScenarioError, match="is of orrery train"):
        orrery.estimate(model="llama-3.2-1b", device="l40s", input_tokens=10, output_tokens=10, knob="offload.stride=2")


def test_slices_are_compared_and_the_ones_asked_for_are_taken():
    answer = orrery.train(**TP, tensor_overlap="domino")
    rows = {(r["row_slices"], r["column_slices"]): r["step_s"] for r in answer.table("slices")}
    assert rows[2, 1] == answer.step_time_s  # the technique's own choice
    assert rows[1, 1] == pytest.approx(max(rows.values()), rel=1e-12)
    best = min(rows, key=rows.__getitem__)
    knobs = [f"tensor_overlap.row_slices={best[0]}", f"tensor_overlap.column_slices={best[1]}"]
    assert orrery.train(**TP, tensor_overlap="domino", knob=knobs).step_time_s == min(rows.values())
    alone = orrery.train(**JOB, tensor_overlap="domino")
    assert any("tensor_overlap = domino: no effect" in note for note in alone.notes)
    assert not alone.tables
