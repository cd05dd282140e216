"""``--local-updates`` and ``--sites``: rounds by hand, what comes back without them, and where the gain goes."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import orrery
from orrery.base.errors import ScenarioError
from orrery.cli.main import run

JOB = {
    "model": "llama-3.2-1b",
    "device": "a100-sxm-80gb",
    "devices": 16,
    "global_batch": 64,
    "micro_batch": 4,
    "seq_len": 2048,
    "framework": "pytorch",
    "recompute": "full",
    "sharding": "none",
}
SLOW = {"node_link_bytes_per_s": 1e10}


def rows(answer, kind):
    return answer.to_json()["techniques"][kind]


def test_co2_is_the_longer_of_its_steps_and_the_exchange():
    answer = orrery.train(**JOB, **SLOW, local_updates="co2", local_steps=1)
    (one,) = rows(answer, "round")
    own_s = one["own_steps_s"]
    plain = orrery.train(**JOB, **SLOW)
    alone_s = plain.step_time_s - plain.parts["gradient reduction"] - plain.parts["parameter gathering"]
    assert own_s == pytest.approx(alone_s)
    exchange_s = orrery.train(**JOB, **SLOW, local_updates="local-sgd", local_steps=1).step_time_s - own_s
    ratio = plain.job.framework.contention_ratio
    assert exchange_s > own_s  # nothing hides all of it
    assert one["round_s"] == pytest.approx(own_s + exchange_s - own_s + (ratio - 1.0) * own_s)
    steps = math.ceil(exchange_s / own_s)
    assert one["least_local_steps"] == steps
    hidden = orrery.train(**JOB, **SLOW, local_updates="co2", local_steps=steps)
    assert hidden.step_time_s * steps == pytest.approx(steps * own_s + (ratio - 1.0) * exchange_s)


def test_the_bytes_by_hand():
    answer = orrery.train(**JOB, **SLOW, local_updates="co2")
    (one,) = rows(answer, "round")
    weights = orrery.train(**JOB).ranks[0].parts["weights"]
    parameters = weights / (answer.job.recipe.weights_bytes or answer.job.framework.weights_bytes)
    assert one["sent_bytes"] == pytest.approx(4.0 * parameters)
    assert one["kept_besides_bytes"] == pytest.approx(3 * 4.0 * parameters)
    assert answer.peak_memory_bytes == pytest.approx(orrery.train(**JOB).peak_memory_bytes + 12.0 * parameters)
    assert one["rounds_stale"] == 1


def test_off_is_absent_to_the_bit():
    plain, off = (
        orrery.train(**JOB, **SLOW).to_json(),
        orrery.train(**JOB, **SLOW, local_updates="synchronous").to_json(),
    )
    assert {k: v for k, v in plain.items() if k != "settings"} == {k: v for k, v in off.items() if k != "settings"}
    assert "techniques" not in plain


def test_the_gain_goes_with_an_endless_link():
    def gain(rate, **ways):
        plain = orrery.train(**JOB, node_link_bytes_per_s=rate).step_time_s
        return plain / orrery.train(**JOB, node_link_bytes_per_s=rate, **ways).step_time_s

    slow, fast = (gain(rate, local_updates="co2") for rate in (5e9, 1e15))
    assert slow > 1.5
    assert fast == pytest.approx(1.0, abs=0.08)


def test_fewer_bits_and_fewer_replicas_send_less():
    whole = orrery.train(**JOB, **SLOW, local_updates="local-sgd", local_steps=1)
    narrow = orrery.train(**JOB, **SLOW, local_updates="local-sgd", local_steps=1, exchange_bits=8)
    assert rows(narrow, "round")[0]["sent_bytes"] == pytest.approx(rows(whole, "round")[0]["sent_bytes"] / 4)
    assert narrow.step_time_s < whole.step_time_s
    part = orrery.train(**JOB, **SLOW, local_updates="local-sgd", local_steps=1, participation_frac=0.5)
    all_of_them = orrery.train(**JOB, **SLOW, local_updates="local-sgd", local_steps=1, participation_frac=1.0)
    assert part.step_time_s < all_of_them.step_time_s == whole.step_time_s


def test_gossip_does_not_grow_with_replicas():
    def step_s(devices):
        job = JOB | {"devices": devices, "global_batch": 4 * devices}
        return orrery.train(**job, **SLOW, local_updates="gossip").step_time_s

    assert step_s(64) == pytest.approx(step_s(16), rel=1e-6)


def test_sites_are_islands_with_their_part_of_the_link():
    sites = orrery.train(**JOB, sites=2, site_link_bytes_per_s=8e9)
    islands = orrery.train(**JOB, island_devices=8, island_link_bytes_per_s=1e9)
    assert sites.step_time_s == islands.step_time_s
    assert sites.parts == islands.parts


def test_experts_of_sites_are_as_fast_as_one_site_alone():
    job = {**JOB, "sites": 2, "sites_train": "experts"}
    slow, slower = (orrery.train(**job, site_link_bytes_per_s=rate) for rate in (1e9, 1e7))
    assert slow.step_time_s == slower.step_time_s
    one_site = orrery.train(**{**JOB, "devices": 8, "global_batch": 32})
    assert slow.step_time_s == pytest.approx(one_site.step_time_s, rel=0.02)
    together, alone = rows(slower, "exchange")
    assert together["step_s"] == orrery.train(**JOB, sites=2, site_link_bytes_per_s=1e7).step_time_s
    assert together["step_s"] > 50 * alone["step_s"]


@settings(max_examples=20, deadline=None)
@given(
    name=st.sampled_from(["co2", "diloco", "local-sgd", "gossip"]),
    tau=st.integers(1, 200),
    rate=st.floats(1e8, 1e13),
    devices=st.sampled_from([2, 8, 16, 32]),
    bits=st.sampled_from([None, 4, 8, 16]),
)
def test_parts_add_up_and_no_round_is_faster_than_its_own_steps(name, tau, rate, devices, bits):
    job = JOB | {"devices": devices, "global_batch": 8 * devices}
    extra = {"local_steps": tau, "exchange_bits": bits}
    answer = orrery.train(**job, node_link_bytes_per_s=rate, local_updates=name, **extra)
    assert sum(answer.parts.values()) == pytest.approx(answer.step_time_s)
    assert min(answer.parts.values()) >= 0.0
    (one,) = rows(answer, "round")
    assert answer.step_time_s * one["steps"] == pytest.approx(one["round_s"])
    assert one["round_s"] >= one["own_steps_s"] * (1 - 1e-12)
    plain = orrery.train(**job, node_link_bytes_per_s=rate)
    assert answer.peak_memory_bytes >= plain.peak_memory_bytes
    assert 0.0 < answer.mfu_frac < 1.0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"local_steps": 4}, "local_steps: means nothing without local_updates"),
        ({"local_updates": "diloc"}, "write 'diloco'"),
        ({"local_updates": "co2", "local_neighbours": 2}, "local_neighbours: co2 has no such setting"),
        ({"local_updates": "co2", "sharding": "zero1"}, "without sharding"),
        ({"sites": 2}, "site_link_bytes_per_s: is missing"),
        ({"sites_train": "experts"}, "sites: is missing"),
        ({"sites": 3, "site_link_bytes_per_s": 1e9}, "sites: 3 do not divide 16 devices; write 2."),
        (
            {"sites": 2, "site_link_bytes_per_s": 1e9, "sites_train": "experts", "local_updates": "co2"},
            "experts of different sites exchange nothing",
        ),
        ({"offload": "zero-offload", "local_updates": "co2"}, "not computed with states off the device"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(given, message):
    job = {k: v for k, v in JOB.items() if "offload" not in given or k not in ("recompute", "sharding")}
    with pytest.raises(ScenarioError, match=message.replace("(", r"\(")):
        orrery.train(**{**job, **given})


def test_command_file_and_keyword_say_the_same(tmp_path, capsys):
    answer = orrery.train(**JOB, **SLOW, local_updates="co2", local_steps=3).to_json()
    flags = [w for k, v in (JOB | SLOW).items() for w in ("--" + k.replace("_", "-"), str(v))]
    assert run(["train", *flags, "--local-updates", "co2", "--local-steps", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["step_time_s"] == answer["step_time_s"]
    assert found["techniques"] == answer["techniques"]
    file = tmp_path / "job.toml"
    lines = [f"{k} = {json.dumps(v)}" for k, v in (JOB | SLOW | {"local_updates": "co2", "local_steps": 3}).items()]
    file.write_text("\n".join(lines))
    assert run(["train", "--scenario", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["techniques"] == answer["techniques"]


def test_one_replica_has_nobody_to_meet():
    answer = orrery.train(**{**JOB, "devices": 1, "global_batch": 8}, local_updates="local-sgd")
    assert any("dp is 1" in note for note in answer.notes)
