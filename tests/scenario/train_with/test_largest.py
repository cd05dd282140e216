"""``--find-largest``: the size that fits, with each tier left out."""

import pytest

import orrery
from orrery.base.errors import ScenarioError

JOB = {
    "model": "llama-3.2-1b",
    "device": "l40s",
    "devices": 1,
    "global_batch": 4,
    "seq_len": 2048,
    "host_memory_bytes": 2e11,
    "nvme_bytes": 2e12,
}


def rows(answer):
    return {row["tiers"]: row for row in answer.to_json()["techniques"]["largest"]}


def test_drives_by_hand():
    found = rows(orrery.train(**JOB, offload="zero-infinity", find_largest=True))
    size = found["all tiers"]["num_parameters"]
    # 2 bytes of parameter, 12 of states and 4 of an FP32 gradient on the drives
    assert size == pytest.approx(2e12 / 18, rel=0.06)
    assert found["all tiers"]["limit"] == "NVMe drives"
    assert found["without drives"]["num_parameters"] < size
    assert found["device alone"]["num_parameters"] < found["without drives"]["num_parameters"]


def test_the_host_by_hand():
    found = rows(orrery.train(**JOB, offload="zero-offload", find_largest=True))
    assert found["all tiers"]["num_parameters"] == found["without drives"]["num_parameters"]
    assert found["without host memory"]["num_parameters"] == 0
    assert found["all tiers"]["num_parameters"] <= 2e11 / 14 * 1.03


def test_more_room_never_trains_less_and_nothing_else_changes():
    few, many = (
        rows(orrery.train(**JOB | {"nvme_bytes": size}, offload="zero-infinity", find_largest=True))["all tiers"]
        for size in (1e12, 4e12)
    )
    assert few["num_parameters"] < many["num_parameters"]
    plain = orrery.train(**JOB, offload="zero-infinity").to_json()
    asked = orrery.train(**JOB, offload="zero-infinity", find_largest=True).to_json()
    assert "techniques" not in plain
    for side in (plain, asked):
        side.pop("settings")
    asked.pop("techniques")
    assert asked == plain


def test_a_model_that_does_not_fit_is_told_what_would():
    answer = orrery.train(**JOB | {"model": "llama-3.1-70b"}, offload="zero-offload", find_largest=True)
    assert answer.infeasible
    assert rows(answer)["all tiers"]["num_parameters"] > 1e9


def test_without_a_technique_it_is_refused_in_words():
    job = {k: v for k, v in JOB.items() if not k.endswith("_bytes")}
    with pytest.raises(ScenarioError, match="find_largest: is of techniques of offloading"):
        orrery.train(**job, find_largest=True)
