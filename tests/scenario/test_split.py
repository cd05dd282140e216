"""A network cut between device and server: published totals, an envelope by hand, limits and refusals."""

import json
from math import inf

import pytest

from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.execution.edge.cuts import Cut, best_ranges
from orrery.execution.edge.times import layer_times_s
from orrery.models.image_networks import network_of
from orrery.scenario.split import SplitAnswer, split

ASKED = {"model": "vgg-16", "device": "raspberry-pi-4-8gb", "server": "rtx-4090", "link_rates": "0.1,10,10000"}


def test_networks_have_their_published_sizes():
    # torchvision's table of weights, GFLOPS counted as multiply-adds, and parameters with biases and norms
    for name, gmacs, million in (
        ("vgg-16", 15.47, 138.36),
        ("resnet-50", 4.09, 25.56),
        ("resnet-101", 7.80, 44.55),
        ("resnet-152", 11.51, 60.19),
    ):
        network = network_of(name)
        assert network.num_macs / 1e9 == pytest.approx(gmacs, rel=0.01), name
        assert network.num_weights / 1e6 == pytest.approx(million, rel=0.005), name


def test_the_envelope_by_hand():
    # lines of x = 1 / rate: 1 + 10 x, 2 + 2 x, 5; they cross at x = 1 / 8 and x = 3 / 2
    cuts = [Cut(name=n, head_s=h, tail_s=0.0, sent_bytes=b) for n, h, b in (("a", 1, 10), ("b", 2, 2), ("c", 5, 0))]
    found = [(r.index, r.from_bytes_per_s, r.to_bytes_per_s) for r in best_ranges(cuts, 0.0)]
    assert found == [(0, 8.0, inf), (1, pytest.approx(2 / 3), 8.0), (2, 0.0, pytest.approx(2 / 3))]
    # a way of 4 s lifts what sends by 4: the device alone is first at any rate
    assert [(r.index, r.to_bytes_per_s) for r in best_ranges(cuts, 4.0)] == [(2, inf)]


def test_what_each_end_draws():
    cut = Cut(name="a", head_s=1.0, tail_s=2.0, sent_bytes=10.0)
    assert cut.energy_j(5.0, 0.5, 6.0, 4.0, 3.0) == 6.0 + 2 * 4.0 + 2.5 * 3.0


def test_the_ranges_agree_with_the_rates_and_the_limits():
    found = split(**ASKED, round_trip_s=0.01)
    slow, _, fast = found.rates
    assert (slow.best, slow.delay_s) == ("device", slow.device_s)
    assert (fast.best, fast.delay_s) == ("server", fast.server_s)
    for row in found.rates:
        (inside,) = [r for r in found.ranges if r.from_bytes_per_s < row.link_bytes_per_s <= r.to_bytes_per_s]
        assert found.cuts[inside.index].name == row.best
    # where both ends are alike nothing is gained by sending
    same = split(**{**ASKED, "server": ASKED["device"]}, round_trip_s=0.01)
    assert [same.cuts[r.index].name for r in same.ranges] == ["device"]
    assert same.split_ranges == ()
    json.dumps(found.to_json(), allow_nan=False)


def test_ranges_inside_the_network_are_joined():
    cuts = [Cut(name=n, head_s=h, tail_s=0.0, sent_bytes=b) for n, h, b in (("server", 1, 10), ("device", 5, 0))]
    inside = [Cut(name=n, head_s=h, tail_s=0.0, sent_bytes=b) for n, h, b in (("a", 2, 2), ("b", 3, 1))]
    all_cuts = (cuts[0], *inside, cuts[1])
    found = SplitAnswer(cuts=all_cuts, ranges=best_ranges(all_cuts, 0.0), rates=(), notes=(), settings={})
    # b is below a from x = 1 and below the device until x = 2
    assert found.split_ranges == ((0.5, 8.0),)


def test_a_filter_by_hand():
    # head 1, then half of the frames send 10 bytes at 5 bytes/s over a way of 0.5 and wait 2 for the server
    cut = Cut(name="a", head_s=1.0, tail_s=2.0, sent_bytes=10.0, passed_frac=0.5)
    assert cut.delay_s(5.0, 0.5) == 1 + 0.5 * (2 + 0.5 + 2)
    assert cut.energy_j(5.0, 0.5, 6.0, 4.0, 3.0) == 6.0 + 0.5 * (2 * 4.0 + 2.5 * 3.0)
    # lines 1 + 10 x plain and 2 + 5 x filtered cross at x = 1 / 5, that and 5 at x = 3 / 5
    plain, device = (Cut(name=n, head_s=h, tail_s=0, sent_bytes=b) for n, h, b in (("s", 1, 10), ("d", 5, 0)))
    mean = Cut(name="f", head_s=2, tail_s=0, sent_bytes=10, passed_frac=0.5)
    found = [(r.index, r.from_bytes_per_s) for r in best_ranges([plain, mean, device], 0.0)]
    assert found == [(0, pytest.approx(5.0)), (1, pytest.approx(5 / 3)), (2, 0.0)]


def test_a_bottleneck_sends_its_channels_and_costs_both_convolutions():
    # behind ResNet-50's second stage: 56 x 56 positions of 256 channels
    plain = split(**{**ASKED, "model": "resnet-50"})
    found = split(**{**ASKED, "model": "resnet-50"}, bottleneck="conv2_3:12", bottleneck_bits=8)
    (before,) = (c for c in plain.cuts if c.name == "conv2_3")
    cut = found.cuts[-2]
    assert (found.cuts[:-2], found.cuts[-1]) == (plain.cuts[:-1], plain.cuts[-1])
    assert (cut.name, cut.sent_bytes, before.sent_bytes) == ("conv2_3:12", 56 * 56 * 12, 56 * 56 * 256 * 4)
    made = network_of("resnet-50").units[3].squeezed(12)
    assert (made.encoder.num_macs, made.decoder.num_macs) == (56 * 56 * 256 * 12,) * 2
    ends = [
        layer_times_s([x], get_device(ASKED[y]), "fp32")
        for x, y in ((made.encoder, "device"), (made.decoder, "server"))
    ]
    assert cut.head_s - before.head_s == pytest.approx(ends[0][0])
    assert cut.tail_s - before.tail_s == pytest.approx(ends[1][0])
    assert any(found.cuts[r.index] is cut for r in found.ranges)
    # as wide as the layer and at its bits: as much is sent, and both convolutions are paid for
    wide = split(**{**ASKED, "model": "resnet-50"}, bottleneck="conv2_3:256")
    assert wide.cuts[-2].sent_bytes == before.sent_bytes
    assert [wide.cuts[r.index].name for r in wide.ranges] == [plain.cuts[r.index].name for r in plain.ranges]


def test_a_filter_that_passes_everything_for_nothing_is_none():
    plain = split(**ASKED, bottleneck="conv3_3:8")
    assert split(**ASKED, bottleneck="conv3_3:8", filter_pass_frac=1, filter_macs=0).cuts == plain.cuts
    whole = network_of("vgg-16").num_macs
    some = split(**ASKED, bottleneck="conv3_3:8", filter_pass_frac=0.25, filter_macs=whole / 10)
    assert (some.cuts[0], some.cuts[-1]) == (plain.cuts[0], plain.cuts[-1])
    for one, other in zip(some.cuts[1:-1], plain.cuts[1:-1], strict=True):
        assert one.mean_bytes == other.sent_bytes / 4
        assert one.head_s - other.head_s == pytest.approx(plain.cuts[-1].head_s / 10)
    # a filter as costly as the network never helps
    dear = split(**ASKED, filter_pass_frac=0.0, filter_macs=whole)
    assert dear.split_ranges == ()


def test_refusals_say_what_to_write():
    for change, words in (
        ({"model": "lenet"}, "write vgg-16, resnet-50"),
        ({"link_rates": "1,0"}, "above 0"),
        ({"precision": "fp5"}, "write fp32"),
        ({"server": None}, "server: missing"),
        ({"bottleneck": "conv9_1:4"}, "a unit of conv1_1"),
        ({"bottleneck": "fc8:4"}, "a unit of conv1_1"),
        ({"bottleneck": "conv1_1:65"}, "write 1 to 64 channels"),
        ({"bottleneck": "conv1_1"}, "write 1 to 64 channels"),
        ({"bottleneck_bits": 8}, "without bottleneck"),
        ({"filter_macs": 1e7}, "filter_pass_frac: missing"),
        ({"filter_pass_frac": 0.5}, "filter_macs: missing"),
    ):
        with pytest.raises(ScenarioError, match=words):
            split(**{**ASKED, **change})
