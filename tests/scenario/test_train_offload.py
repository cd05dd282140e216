"""Training with states off the device: parts add up, tiers hold what they must, and refusals say what to write."""

import json
from dataclasses import replace

import pytest

import orrery
from orrery.base.errors import OrreryError
from orrery.execution.offload import OFFLOADS
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.schema import read_scenario
from orrery.scenario.train_offload_ask import prepare
from orrery.scenario.train_offload_work import MAX_PLAYED, played

NAMES = sorted(OFFLOADS.techniques)
JOB = {"model": "llama-3.2-1b", "device": "a100-sxm-80gb", "devices": 4, "global_batch": 32, "seq_len": 2048}
BIG = JOB | {"model": "llama-3.1-8b", "devices": 1, "global_batch": 4}


@pytest.mark.parametrize("name", NAMES)
def test_an_answer_adds_up_and_has_the_keys_of_training(name):
    out = orrery.train(**JOB, offload=name, train_tokens=1e9).to_json()
    json.dumps(out, allow_nan=False)
    plain = orrery.train(**JOB, sharding="zero3").to_json()
    assert set(plain) - set(out) <= {"memory"}
    assert min(out["parts"].values()) >= 0
    assert sum(out["parts"].values()) == pytest.approx(out["step_time_s"], rel=1e-12)
    assert out["tokens_per_s_per_device"] == pytest.approx(32 * 2048 / out["step_time_s"] / 4)
    assert 0 < out["mfu_frac"] <= out["hfu_frac"] < 1
    assert out["energy_j_per_step"] == pytest.approx(4 * out["power_w"] * out["step_time_s"])
    for tier in out["tiers"].values():
        assert 0 <= tier["held_bytes"] <= tier["have_bytes"]
    assert out["tiers"]["device"]["held_bytes"] == out["peak_memory_bytes"] > 0
    assert max(out["lanes"].values()) <= out["step_time_s"] * (1 + 1e-9)
    assert out["run"]["time_s"] == pytest.approx(out["run"]["num_steps"] * out["step_time_s"])


def test_states_lie_where_the_technique_says():
    found = {n: orrery.train(**JOB, offload=n) for n in ("all-on-device", "zero-offload", "zero-infinity")}
    parameters = prepare(read_scenario({**JOB, "offload": "zero-offload"})).pieces.work.num_parameters
    assert parameters == pytest.approx(1.236e9, rel=2e-3)  # published size of the model
    assert found["zero-offload"].held.host_bytes == pytest.approx(parameters / 4 * 14)
    assert found["zero-infinity"].held.nvme_bytes == pytest.approx(parameters / 4 * (2 + 12 + 4))
    assert found["all-on-device"].held.host_bytes == found["zero-offload"].held.nvme_bytes == 0
    saved = found["all-on-device"].held.gpu_bytes - found["zero-offload"].held.gpu_bytes
    assert 0.8 * 14 * parameters < saved <= 14 * parameters  # two layers' gradients stay


def test_what_one_lane_delays_is_that_lane():
    slow = orrery.train(**BIG, offload="zero-offload", host_memory_bytes_per_s=1e10)
    fast = orrery.train(**BIG, offload="zero-offload", host_memory_bytes_per_s=1e13)
    waits = "waiting for the host's update"
    assert slow.bound_by == "host"
    assert slow.step_time_s - fast.step_time_s == pytest.approx(slow.parts[waits] - fast.parts[waits], rel=0.02)
    for name in ("forward", "backward", "weight gradients", "recomputation"):
        assert slow.parts[name] == pytest.approx(fast.parts[name], rel=1e-9)
    work = prepare(read_scenario({**BIG, "offload": "zero-offload"})).pieces.work
    least = work.num_parameters * work.update_bytes / (0.76 * 1e10)  # every state once through the host's memory
    assert slow.step_time_s > least


def test_drives_hold_back_what_reads_them_and_nothing_else():
    rates = {"nvme_read_bytes_per_s": 1e9, "nvme_write_bytes_per_s": 1e9}
    slow = orrery.train(**BIG, offload="zero-infinity", **rates)
    assert slow.bound_by == "drives"
    fast = orrery.train(**BIG, offload="zero-infinity")  # 7 and 3.8 GB/s
    assert slow.parts["waiting for drives"] > 3.8 * fast.parts["waiting for drives"]
    assert orrery.train(**BIG, offload="zero-offload", **rates).parts["waiting for drives"] == 0


def test_further_micro_batches_take_what_the_last_one_played_adds():
    ready = prepare(read_scenario({**BIG, "offload": "zero-infinity"}))
    work = replace(ready.pieces.work, num_micro_batches=3 * MAX_PLAYED)
    whole = ready.rule(work, ready.memory.tiers)  # every micro-batch played out
    short = played(ready.rule, work, ready.memory.tiers)
    assert short.step_s == pytest.approx(whole.step_s, rel=1e-3)
    assert short.busy_s["gpu"] == pytest.approx(whole.busy_s["gpu"])


def test_the_passes_are_those_of_training_on_the_device():
    job = JOB | {"framework": "deepspeed", "recompute": "none"}
    plain, off = orrery.train(**job, sharding="none"), orrery.train(**job, offload="zero-offload")
    for name in ("forward", "backward", "weight gradients"):
        assert off.parts[name] == pytest.approx(plain.parts[name], rel=1e-9)
    assert off.parts["recomputation"] == 0
    assert off.mfu_frac * off.step_time_s == pytest.approx(plain.mfu_frac * plain.step_time_s)
    full = orrery.train(**(job | {"recompute": "full"}), offload="zero-offload")
    again = orrery.train(**(job | {"recompute": "full"}), sharding="none").parts["recomputation"]
    assert full.parts["recomputation"] == pytest.approx(again, rel=0.02)
    assert full.held.gpu_bytes < off.held.gpu_bytes


LACKS = [
    ({"host_memory_bytes": 1e10}, "host memory", "host_memory_bytes"),
    ({"offload": "zero-infinity", "nvme_bytes": 1e9}, "NVMe", "nvme_bytes"),
    ({"micro_batch": 4, "seq_len": 16384, "recompute": "none"}, "device", "recompute = full"),
    ({"offload": "all-on-device"}, "device", "--offload zero-offload"),
]


@pytest.mark.parametrize(("change", "where", "message"), LACKS, ids=[w for _, w, _ in LACKS[:3]] + ["all"])
def test_what_does_not_fit_names_a_change_that_does(change, where, message):
    inputs = BIG | {"offload": "zero-offload"} | change
    answer = orrery.train(**inputs)
    assert isinstance(answer, InfeasibleAnswer)
    infeasible = answer.infeasible
    assert infeasible.need > infeasible.have
    assert where in infeasible.what
    assert message in infeasible.smallest_change
    words = infeasible.smallest_change.removesuffix(" fits.").replace("--offload ", "offload = ").split(", ")
    changed = dict(word.split(" = ") for word in words)
    if "offload" in changed:
        inputs.pop("recompute", None)
    assert not isinstance(orrery.train(**(inputs | changed)), InfeasibleAnswer)


def test_a_plain_job_that_nothing_near_fits_hears_of_offloading():
    answer = orrery.train(**(BIG | {"device": "rtx-4090"}))
    assert isinstance(answer, InfeasibleAnswer)
    assert "--offload" in answer.infeasible.smallest_change
    name = answer.infeasible.smallest_change.removesuffix(" fits.").removeprefix("--offload ")
    assert not isinstance(orrery.train(**(BIG | {"device": "rtx-4090"}), offload=name), InfeasibleAnswer)


def test_adapters_train_adapters():
    wide = orrery.train(**BIG, offload="adapters-only")
    narrow = orrery.train(**BIG, offload="adapters-only", task="qlora", adapter_rank=64)
    assert narrow.peak_memory_bytes < 0.7 * wide.peak_memory_bytes
    assert narrow.parts["update"] > wide.parts["update"]  # four bits are widened at every visit
    assert any(n.startswith("task: lora") for n in wide.notes)


WRONG = [
    ({"offload": "zero-offlaod"}, "zero-offload"),
    ({"offload": "zero-offload", "pp": 2}, "leave pp out"),
    ({"offload": "zero-offload", "cp": 2}, "leave cp out"),
    ({"offload": "zero-infinity", "sharding": "zero3"}, "leave sharding out"),
    ({"offload": "zero-offload", "recompute": "selective"}, "full or none"),
    ({"offload": "zero-infinity", "recompute": "full"}, "leave it out"),
    ({"offload": "zero-offload", "precision": "fp8"}, "bf16"),
    ({"offload": "zero-offload", "task": "lora"}, "adapters-only"),
    ({"offload": "adapters-only", "task": "pretrain"}, "lora or qlora"),
    ({"offload": "zero-offload", "tp": 3}, "multiple of 3"),
    ({"offload": "zero-offload", "tp": 4, "dp": 4}, "devices"),
    ({"offload": "zero-offload", "micro_batch": 3}, "global_batch"),
    ({"offload": "zero-offload", "host_memory_bytes": -1}, "host_memory_bytes"),
    ({"offload": "zero-offload", "nvme_read_bytes_per_s": 0}, "above 0"),
    ({"nvme_bytes": 1e12}, "--offload"),
]


@pytest.mark.parametrize(("change", "message"), WRONG, ids=[str(c) for c, _ in WRONG])
def test_wrong_input_names_what_and_a_way_out(change, message):
    with pytest.raises(OrreryError, match="(?s)" + message):
        orrery.train(**(JOB | change))
