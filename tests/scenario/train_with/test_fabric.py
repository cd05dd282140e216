"""``--fabric`` and ``--routing``: flows that meet, by hand; what it equals where none meet; what is refused."""

import json

import numpy as np
import pytest

import orrery
from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.cli.main import run
from orrery.network.on_fabric import Fabric, ring_slowdowns

JOB = {
    "model": "llama-3.2-1b",
    "device": "h100-sxm",
    "devices": 64,
    "seq_len": 2048,
    "global_batch": 64,
    "sharding": "zero1",
}
FABRIC = {"fabric": "fat-tree", "leaves": 2, "hosts_per_leaf": 4, "planes": 8}


def slowdowns(leaves, spines, hosts, routing, planes=1, draws=200):
    fabric = Fabric(
        num_leaves=leaves, num_spines=spines, num_hosts_per_leaf=hosts, link=get_device("h100-sxm").scaleout
    )
    return ring_slowdowns(fabric, routing, num_planes=planes, num_draws=draws, seed=0)


def test_rings_on_links_by_hand():
    # two hosts below two leaves: one flow each way over one spine, never more
    assert set(slowdowns(2, 1, 1, "ecmp")) == {1.0}
    # one leaf: no flow leaves it
    assert set(slowdowns(1, 4, 4, "ecmp", planes=16)) == {1.0}
    # one spine: all flows that leave a leaf share its link; planned and sprayed no better
    one = slowdowns(2, 1, 2, "ecmp")
    assert set(one) == {1.0, 2.0}
    assert np.array_equal(one, slowdowns(2, 1, 2, "singlepath"))
    assert np.array_equal(one, slowdowns(2, 1, 2, "spray"))
    # as many spines as hosts: planned flows never meet
    assert set(slowdowns(4, 4, 4, "singlepath", draws=20)) == {1.0}


def test_two_flows_of_two_leaves_on_two_spines():
    """Of three orders of a ring over 0 0 1 1 one crosses in every hop: its two flows a direction meet in one of two
    draws, in both directions apart, so that 3/4 of them are slow."""
    found = slowdowns(2, 2, 2, "ecmp", draws=6000)
    assert set(found) == {1.0, 2.0}
    assert (found == 2.0).mean() == pytest.approx(1 / 3 * 3 / 4, abs=0.02)


def test_more_planes_meet_more_often():
    assert slowdowns(4, 4, 4, "ecmp").mean() < slowdowns(4, 4, 4, "ecmp", planes=8).mean()


def test_planned_flows_are_the_plain_step():
    plain = orrery.train(**JOB)
    planned = orrery.train(**JOB, **FABRIC, routing="planned")
    assert planned.step_time_s == plain.step_time_s
    assert planned.parts == plain.parts
    assert orrery.train(**JOB, fabric="leaf-spine", leaves=1, hosts_per_leaf=8, spines=1).parts == plain.parts


def test_hashed_flows_are_a_slower_link():
    found = orrery.train(**JOB, **FABRIC)
    rows = {row["routing"]: row for row in found.table("fabric")}
    link = get_device("h100-sxm").scaleout.each_way_bytes_per_s * 8
    slower = orrery.train(**JOB, node_link_bytes_per_s=link / rows["ecmp"]["busiest_link_ratio"])
    assert found.step_time_s == pytest.approx(slower.step_time_s)
    assert found.step_time_s == rows["ecmp"]["step_s"] > rows["planned"]["step_s"]
    assert rows["ecmp"]["worst_tenth_ratio"] >= rows["ecmp"]["busiest_link_ratio"] > 1.0


def test_a_job_within_a_node_has_nothing_to_meet():
    alone = {**JOB, "devices": 8, "global_batch": 8}
    found = orrery.train(**alone, fabric="fat-tree", leaves=1, hosts_per_leaf=1)
    assert found.parts == orrery.train(**alone).parts


def test_the_command_says_the_same(capsys):
    flags = [w for k, v in {**JOB, **FABRIC}.items() for w in (f"--{k.replace('_', '-')}", str(v))]
    assert run(["train", *flags, "--routing", "ecmp", "--json"]) == 0
    out = json.loads(capsys.readouterr().out)
    found = orrery.train(**JOB, **FABRIC, routing="ecmp")
    assert out["step_time_s"] == pytest.approx(found.step_time_s, rel=1e-12)
    assert len(out["techniques"]["fabric"]) == 3


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"fabric": None, "leaves": None, "hosts_per_leaf": None}, "planes: means nothing without fabric"),
        ({"leaves": 3}, "leaves: 3 of 4 nodes join 12, the job has 8"),
        ({"leaves": None}, "leaves: is missing"),
        ({"spines": 3}, "spines: a fat tree has as many"),
        ({"fabric": "leaf-spine"}, "spines: is missing"),
        ({"routing": "hash"}, "routing"),
        ({"sites": 2, "site_link_bytes_per_s": 1e9}, "sites: does not go with fabric"),
    ],
)
def test_what_makes_no_fabric_is_refused(settings, words):
    with pytest.raises(ScenarioError, match=words):
        orrery.train(**{**JOB, **FABRIC, **settings})
