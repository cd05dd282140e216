"""Parameters on their way from one cut to another, byte by byte, and the plan that lacks least where nothing fits."""

from types import SimpleNamespace

import pytest

from orrery.execution.memory import Infeasible
from orrery.planner.rlhf import search
from orrery.planner.rlhf.mesh import Mesh
from orrery.planner.rlhf.reallocation import Place, reallocation_s

INSIDE, OUTSIDE = 10.0, 1.0
"""Bytes a second of a node's own links and of the network; latencies are 0.5 and 3 s. Nodes have four devices."""

CLUSTER = SimpleNamespace(
    devices_per_node=4,
    device=SimpleNamespace(
        scaleup=SimpleNamespace(each_way_bytes_per_s=INSIDE, latency_s=0.5),
        scaleout=SimpleNamespace(each_way_bytes_per_s=OUTSIDE, latency_s=3.0),
    ),
)


def place(first, tp=1, pp=1, dp=1):
    return Place(mesh=Mesh(first=first, num_devices=tp * pp * dp), tp=tp, pp=pp, dp=dp)


@pytest.mark.parametrize(
    ("source", "target", "seconds"),
    [
        (place(0, tp=2), place(0, tp=2), 0.0),
        # 40 bytes from device 0 to device 1 of the same node; to device 4 of the next one
        (place(0), place(1), 40 / INSIDE + 0.5),
        (place(0), place(4), 40 / OUTSIDE + 3.0),
        # each of two lacks the half that the other has
        (place(0, tp=2), place(0, dp=2), 20 / INSIDE + 0.5),
        # two receive a half each from one that sends both, each byte once
        (place(0), place(2, tp=2), 40 / INSIDE + 0.5),
        # both halves of the model are there already
        (place(0, dp=2), place(0, tp=2), 0.0),
        # two copies share out what they send; the receiver takes it all: 40 bytes in
        (place(0, dp=2), place(2), 40 / INSIDE + 0.5),
        # two stages to two tensor ranks: of a half, half is there
        (place(0, pp=2), place(0, tp=2), 10 / INSIDE + 0.5),
        # to four copies, two on each of two nodes: near ones inside, far ones over the network, at once
        (place(2), place(2, dp=4), 40 / OUTSIDE + 3.0),
        # a sender of four quarters to a far node: two copies send a half each, four receive a quarter
        (place(0, dp=2), place(4, tp=4), 20 / OUTSIDE + 3.0),
        (place(0), place(4, tp=4), 40 / OUTSIDE + 3.0),
    ],
)
def test_the_busiest_sender_or_receiver_decides(source, target, seconds):
    assert reallocation_s(CLUSTER, 40.0, source, target) == pytest.approx(seconds)


def test_where_nothing_fits_the_least_of_every_call_is_named():
    """Two ways of 5 and 3 bytes: 3 are needed at least, of the 2 that there are."""
    ways = ({2: (SimpleNamespace(num_devices=2, peak_bytes=5.0), SimpleNamespace(num_devices=2, peak_bytes=3.0))},)
    evaluator = SimpleNamespace(capacity_bytes=2.0, memory_bytes=lambda placed: sum(p.way.peak_bytes for p in placed))
    job = SimpleNamespace(cluster=SimpleNamespace(num_devices=4))
    found = search._nothing_fits(search.Space(job=job, ways=ways * 2), evaluator)
    assert isinstance(found, Infeasible)
    assert (found.need, found.have) == (6.0, 2.0)
    assert found.what == "RLHF of 2 calls on 4 devices"
