"""Groups of nodes with links of their own, and pipelines of uneven stages, on made-up jobs."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from round_jobs import Layout, job

from orrery.base.errors import ScenarioError
from orrery.hardware.device import Link
from orrery.training.islands import partition as islands
from orrery.training.islands import step as grouped
from orrery.training.islands.fleet import Fleet, NodeGroup, hop_links, stage_groups
from orrery.training.islands.partition import _moved, adapted_layers, even_layers


def link(rate):
    return Link(name="x", each_way_bytes_per_s=rate, latency_s=0.0)


FLEET = Fleet(
    groups=(NodeGroup(name="a", num_nodes=3, link=link(9.0)), NodeGroup(name="b", num_nodes=1, link=link(5.0))),
    between=link(2.0),
)


def test_nodes_and_links_of_groups():
    assert (FLEET.num_nodes, FLEET.nodes("grouped"), FLEET.nodes("dealt")) == (4, [0, 0, 0, 1], [0, 1, 0, 0])
    assert [FLEET.link(x).each_way_bytes_per_s for x in ({0}, {1}, {0, 1})] == [9.0, 5.0, 2.0]


def test_stages_and_their_groups():
    """Four nodes of four devices: two stages of eight; in order a a | a b, dealt a b | a a."""
    layout = Layout(pp=2, dp=4)
    assert stage_groups(job(), layout, FLEET, "grouped") == [{0}, {0, 1}]
    assert stage_groups(job(), layout, FLEET, "dealt") == [{0, 1}, {0}]
    assert [x.each_way_bytes_per_s for x in hop_links(job(), layout, FLEET, "grouped")] == [2.0]
    four = Layout(pp=4, dp=2)
    assert [x.each_way_bytes_per_s for x in hop_links(job(), four, FLEET, "grouped")] == [9.0, 9.0, 2.0]
    eight = Layout(pp=8, dp=1)
    assert hop_links(job(), eight, FLEET, "grouped")[0] is None
    for wrong in (Layout(num_devices=15), Layout(num_devices=32)):
        with pytest.raises(ScenarioError, match="islands"):
            stage_groups(job(), wrong, FLEET, "grouped")


def test_layers_that_move(monkeypatch):
    """Six layers on two stages, of which the first takes twice as long: from 3 and 3 to 2 and 4, where both take 4 s.
    Where nothing gains, nothing moves."""
    assert (even_layers(7, 3), even_layers(6, 3)) == ((3, 2, 2), (2, 2, 2))
    assert _moved((2, 1)) == [(1, 2)]
    assert _moved((2, 2)) == [(1, 3), (3, 1)]
    told = []

    def step(job, layout, fleet, layers, order):
        told.append(layers)
        return SimpleNamespace(layers=layers, time_s=float(max(2 * layers[0], layers[1])))

    monkeypatch.setattr(islands, "grouped_step", step)
    assert adapted_layers(job(), Layout(pp=2), FLEET).layers == (2, 4)
    assert told[0] == (3, 3)
    told.clear()
    monkeypatch.setattr(
        islands, "grouped_step", lambda job, layout, fleet, layers, order: SimpleNamespace(layers=layers, time_s=1.0)
    )
    assert adapted_layers(job(), Layout(pp=2), FLEET).layers == (3, 3)


PACE = SimpleNamespace(
    forward_s=np.array([1.0]),
    tensor_forward_s=np.array([0.5]),
    host_forward_s=np.array([0.25]),
    input_gradient_s=np.array([2.0]),
    tensor_backward_s=np.array([0.5]),
    host_backward_s=np.array([0.25]),
    weight_gradient_s=np.array([3.0]),
    again_selective_s=np.array([0.125]),
    again_full_s=np.array([4.0]),
)


def test_pieces_of_a_pipeline_of_uneven_stages(monkeypatch):
    """A layer is 1.75 s forward, 2.75 s backward and 3 s of weights; the embedding stands before the first stage, the
    head behind the last."""
    monkeypatch.setattr(grouped, "layer_pace", lambda units: PACE)
    ends = {"embedding": (0.1, 0.2, 0.3), "head": (10.0, 20.0, 30.0)}
    monkeypatch.setattr(grouped, "end_pace", lambda units, end: tuple(np.array([x]) for x in ends[end]))
    monkeypatch.setattr(grouped, "_hand_over_s", lambda job, layout, hops: 0.75)
    found = SimpleNamespace(embedding="embedding", head="head")

    def pieces(recompute="none"):
        return grouped._pieces(job(), Layout(recompute=recompute), found, (2, 1, 3), [])

    plain = pieces()
    assert plain.forward_s.ravel().tolist() == pytest.approx([3.6, 1.75, 15.25])
    assert plain.backward_s.ravel().tolist() == pytest.approx([5.7, 2.75, 28.25])
    assert plain.weight_s.ravel().tolist() == pytest.approx([6.3, 3.0, 39.0])
    assert plain.hand_over_s == 0.75
    assert pieces("selective").backward_s[1, 0] == pytest.approx(2.875)
    assert pieces("full").backward_s[1, 0] == pytest.approx(6.75)


def test_the_slowest_hop(monkeypatch):
    """Two bytes for each of 3 x 10 tokens of 8 elements, cut by tp where sequences are; a hop between nodes runs at
    the framework's ratio for those."""
    told = []

    def collective_s(job, kind, group, apart, sent):
        told.append((kind, int(group[0]), int(apart[0]), float(sent[0])))
        return np.array([2.0])

    monkeypatch.setattr(grouped, "collective_s", collective_s)
    monkeypatch.setattr(grouped, "with_link", lambda job, link: job)
    layout = Layout(micro_batch=3)
    assert grouped._hand_over_s(job(), layout, [None]) == 3.0
    assert grouped._hand_over_s(job(), layout, [None, link(1.0)]) == 6.0
    assert grouped._hand_over_s(job(), layout, []) == 0.0
    grouped._hand_over_s(job(), replace(layout, is_sequence_parallel=True), [None])
    assert told[0] == ("send_recv", 2, 16, 480.0)
    assert told[-1][3] == 240.0


def test_operations_of_all_devices():
    """Six layers of three passes of 10 + 4 operations, the head of three of 5; for five micro-batches of 16 devices."""
    layer = SimpleNamespace(forward_flops=np.array([10.0]), attention_flops=np.array([4.0]), padded_flops=np.zeros(1))
    found = SimpleNamespace(layer=layer, num_layers=6, head=SimpleNamespace(forward_flops=np.array([5.0])))
    for recompute, again in (("none", 0.0), ("selective", 4.0), ("full", 14.0)):
        expected = (6 * (42.0 + again) + 15.0) * 5 * 16
        assert grouped._flops(job(), Layout(recompute=recompute), found) == pytest.approx(expected)
    done = grouped.GroupedStep(
        layers=(), groups=(), stage_end_s=(), reduce_s=(), finish_s=(), time_s=2.0, hardware_flops=64.0
    )
    assert done.flops_per_s_per_device(4) == 8.0


def test_a_ring_of_a_stage(monkeypatch):
    """Two layers of 100 parameters, an embedding of 30 before them, a head of 7 behind. 8 s to reduce beside 6 s of
    backward: 2 s and a tenth of 6 s; no less than a bucket's share; an update of 0.5 s and 3 s to gather."""
    told = []

    def sync(job, x, held):
        told.append(float(held.dense_parameters[0]))
        return SimpleNamespace(reduce_s=np.array([8.0]), gather_s=np.array([3.0]))

    monkeypatch.setattr(grouped, "columns_of", lambda layouts: None)
    monkeypatch.setattr(grouped, "sync_of", sync)
    monkeypatch.setattr(grouped, "update_s", lambda job, x, held: np.array([0.5]))
    monkeypatch.setattr(grouped, "gradient_bytes", lambda job: 4.0)
    found = SimpleNamespace(
        layer=SimpleNamespace(dense_parameters=np.array([100.0])),
        embedding=SimpleNamespace(parameters=np.array([30.0])),
        head=SimpleNamespace(parameters=np.array([7.0])),
    )

    def ring(stage, backward_s=6.0, **framework):
        f = SimpleNamespace(**(vars(job().framework) | framework))
        return grouped._ring(job(framework=f), None, found, (2, 3, 2), stage, backward_s)

    assert ring(0) == (pytest.approx(2.0 + 0.6), 3.5)
    ring(1)
    ring(2)
    assert told == [230.0, 300.0, 207.0]
    assert ring(1, 100.0)[0] == pytest.approx(0.8)
    assert ring(1, 100.0, bucket_bytes=600.0)[0] == pytest.approx(4.0)
    assert ring(1, overlaps_gradients=False)[0] == 8.0
