"""Techniques together: identities and bounds on drawn scenarios, or a refusal in words; off equals absent."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import orrery
from orrery.base.errors import OrreryError
from orrery.cli.main import run
from orrery.scenario.fields import BY_NAME
from orrery.scenario.train import TrainAnswer

TIMES = "docs/data/worker-times.csv"
TECHNIQUES = (
    {"local_updates": "co2"},
    {"local_updates": "diloco", "local_steps": 20},
    {"partition": "three-level"},
    {"partition": "zero-plus-plus"},
    {"sites": 2, "site_link_bytes_per_s": 1e9},
    {"sites": 2, "site_link_bytes_per_s": 1e9, "sites_train": "experts"},
    {"recovery": "redundant"},
    {"recovery": "neighbour-average", "setback_steps": 5},
    {"detection": "collective"},
    {"checkpoint": "in-memory", "parity_nodes": 1},
    {"checkpoint": "reshape", "reshape_to": "pp=1", "repair_s": 7200},
    {"worker_times": TIMES},
    {"worker_times": TIMES, "straggler_coding": "gradient"},
    {"seq_lengths": "lognormal:500:1"},
    {"seq_lengths": "lognormal:500:1", "sequence_balancing": True},
    {"nic_groups": "a:1:5e10,b:1:2e10", "nic_group_link_bytes_per_s": 2e9},
    {"placement": "searched"},
    {"weight_sampling": "gaussian"},
    {"fabric": "fat-tree", "leaves": 2, "hosts_per_leaf": 1, "planes": 4},
    {"fabric": "leaf-spine", "leaves": 1, "hosts_per_leaf": 2, "spines": 1, "routing": "spray"},
    {"slow_mtbf_s": 1e8, "slow_ratio": 1.4, "slow_notice_s": 3600, "detection": "collective"},
    {"checkpoint": "lazy", "pack_bytes_per_s": 1e9, "checkpoint_file_s": 0.01, "checkpoint_buffer_bytes": 4e9},
    {"checkpoint": "blocking", "checkpoint_interval_s": 600, "storage_bytes_per_s": 1e9},
    {"failure_shape": 0.7},
    {"tensor_overlap": "domino"},
    {"gradient_overlap": "gradient-slots"},
    {"gradient_overlap": "gradient-buckets"},
    {"recompute_layers": 0},
)
OFF = {
    "fabric": None,
    "routing": None,
    "checkpoint_file_s": None,
    "local_updates": "synchronous",
    "recovery": "rollback",
    "detection": "timeout",
    "sequence_balancing": None,
    "sites_train": None,
    "gradient_overlap": "gradient-serial",
}


@st.composite
def jobs(draw):
    job = {
        "model": "llama-3.2-1b",
        "device": "a100-sxm-80gb",
        "devices": 16,
        "tp": draw(st.sampled_from([1, 2])),
        "pp": draw(st.sampled_from([1, 2])),
        "global_batch": draw(st.sampled_from([64, 128])),
        "seq_len": draw(st.sampled_from([1024, 4096])),
        "recompute": draw(st.sampled_from(["none", "full"])),
        "sharding": "none",
    }
    if draw(st.booleans()):
        job |= {"train_tokens": 1e10, "node_mtbf_s": draw(st.sampled_from([1e5, 1e7]))}
    return job


def asked(job, chosen):
    """The settings of a job with some techniques."""
    found = dict(job)
    for index in chosen:
        found |= TECHNIQUES[index]
    if "partition" in found:
        found.pop("sharding")
    return found


CHOSEN = st.lists(st.sampled_from(range(len(TECHNIQUES))), min_size=1, max_size=3, unique=True)


@settings(max_examples=60, deadline=None)
@given(job=jobs(), chosen=CHOSEN)
def test_several_at_once_hold_together_or_are_refused_in_words(job, chosen):
    given_settings = asked(job, chosen)
    refused, answer = "", None
    try:
        answer = orrery.train(**given_settings)
    except OrreryError as refusal:
        refused = str(refusal)
    if answer is None:
        assert len(refused.split()) > 5
        return
    if not isinstance(answer, TrainAnswer):
        assert answer.infeasible.need > answer.infeasible.have
        return
    assert sum(answer.parts.values()) == pytest.approx(answer.step_time_s)
    assert min(answer.parts.values()) >= 0.0
    assert 0.0 < answer.mfu_frac < 1.0
    assert answer.peak_memory_bytes <= answer.job.cluster.device.memory_capacity_bytes
    assert answer.power_w > 0.0
    for table in answer.tables:
        for row in table.rows:
            assert all(math.isfinite(v) for v in row.values() if isinstance(v, float)), (table.kind, row)
    if run := answer.run:
        assert sum(run.parts.values()) == pytest.approx(run.time_s)
        assert run.time_s >= run.num_steps * answer.step_time_s * (1 - 1e-9)


@settings(max_examples=20, deadline=None)
@given(job=jobs(), name=st.sampled_from(sorted(OFF)))
def test_off_is_absent(job, name):
    if name in ("recovery", "detection") and ("node_mtbf_s" not in job or job["pp"] == 1):
        return
    plain, off = orrery.train(**job), orrery.train(**job, **{name: OFF[name]})
    left = [{k: v for k, v in a.to_json().items() if k not in ("settings", "techniques")} for a in (plain, off)]
    assert left[0] == left[1]


@settings(max_examples=25, deadline=None)
@given(job=jobs(), chosen=CHOSEN)
def test_the_settings_of_an_answer_are_its_question(job, chosen):
    try:
        answer = orrery.train(**asked(job, chosen))
    except OrreryError:
        return
    if isinstance(answer, TrainAnswer):
        assert orrery.train(**answer.settings).to_json() == answer.to_json()


FAILING = {"train_tokens": 1e10, "node_mtbf_s": 1e7}


@pytest.mark.parametrize("index", range(len(TECHNIQUES)))
def test_command_file_and_keyword_say_the_same(index, tmp_path, capsys):
    """Every technique alone, typed as flags, written to a scenario file, and given in Python."""
    job = {"model": "llama-3.2-1b", "device": "a100-sxm-80gb", "devices": 16, "global_batch": 64, "seq_len": 1024}
    given_settings = asked(job | {"sharding": "none", "recompute": "full"} | FAILING, [index])
    if "recovery" in given_settings or "reshape_to" in given_settings:
        given_settings["pp"] = 2
    answer = orrery.train(**given_settings)
    flags = [w for name, value in given_settings.items() for w in BY_NAME[name].typed(value)]
    file = tmp_path / "job.toml"
    file.write_text("\n".join(f"{name} = {json.dumps(value)}" for name, value in given_settings.items()))
    for typed in (flags, ["--scenario", str(file)]):
        assert run(["train", *typed, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found == json.loads(json.dumps(answer.to_json()))


BETTER = {"node_link_bytes_per_s": (5e9, 2e11), "node_mtbf_s": (1e6, 1e8), "storage_bytes_per_s": (1e8, 1e10)}


@settings(max_examples=settings.default.max_examples // 8)
@given(job=jobs(), chosen=CHOSEN, name=st.sampled_from(sorted(BETTER)))
def test_a_better_machine_is_no_slower(job, chosen, name):
    """Faster links between nodes, rarer failures, faster storage."""
    job |= {"train_tokens": 1e10, "node_mtbf_s": 1e6}
    try:
        worse, better = (orrery.train(**(asked(job, chosen) | {name: value})) for value in BETTER[name])
    except OrreryError:
        return
    if isinstance(worse, TrainAnswer) and isinstance(better, TrainAnswer):
        assert better.run.time_s <= worse.run.time_s * (1.0 + 1e-6)
