"""Early exits, converters, network files and language models of orrery split, by hand and at their limits."""

import pytest

from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.execution.edge.exits import Exit, expected_s, reach
from orrery.execution.edge.times import layer_times_s, unit_times_s
from orrery.models.image_networks import network_of
from orrery.models.language_network import language_network
from orrery.models.network_file import network_from
from orrery.models.networks import Convolution, SelfAttention
from orrery.scenario.split import split

ASKED = {"model": "vgg-16", "device": "raspberry-pi-4-8gb", "server": "rtx-4090", "link_rates": "10"}

LENET = """
num_elements = 784
[[units]]
name = "conv1"
layers = [{ positions = 784, inputs = 1, outputs = 6, taps = 25 }]
num_results = 1176
num_channels = 6
branch = [{ positions = 1, inputs = 1176, outputs = 10 }]
[[units]]
name = "conv2"
layers = [{ positions = 100, inputs = 6, outputs = 16, taps = 25 }]
num_results = 400
num_channels = 16
[[units]]
name = "fc"
layers = [{ positions = 1, inputs = 400, outputs = 120 }, { positions = 1, inputs = 120, outputs = 10 }]
num_results = 10
num_channels = 10
"""


@pytest.fixture
def lenet(tmp_path):
    path = tmp_path / "lenet.toml"
    path.write_text(LENET)
    return str(path)


def test_expected_times_by_hand():
    # exits behind units 0 (answers 0.6) and 2 (0.5): 1, 0.4, 0.4, 0.2 of the inputs come to units 0 to 3, 0.2 leave
    exits = [Exit(index=0, easy_frac=0.6), Exit(index=2, easy_frac=0.5)]
    assert reach(4, exits) == pytest.approx([1.0, 0.4, 0.4, 0.2, 0.2])
    # units of 1, 2, 3 and 4 s, branches of 0.5 and 0.25 s: 1.5, + 0.8, + 0.4 x 3.25, + 0.8
    found = expected_s([1.0, 2.0, 3.0, 4.0], {0: 0.5, 2: 0.25}, reach(4, exits))
    assert found == pytest.approx([0.0, 1.5, 2.3, 3.6, 4.4])


def test_an_exit_is_a_mean_over_inputs_on_both_sides():
    plain, some = split(**ASKED), split(**ASKED, exits="conv3_3:0.6")
    network, i = network_of("vgg-16"), 6
    pi, server = get_device(ASKED["device"]), get_device(ASKED["server"])
    branch = Convolution(positions=1, inputs=256, outputs=1000)
    times, branch_s = unit_times_s(network, pi, "fp32"), layer_times_s([branch], pi, "fp32")[0]
    assert some.cuts[-1].head_s == pytest.approx(sum(times[: i + 1]) + branch_s + 0.4 * sum(times[i + 1 :]))
    # a cut before the exit leaves it to the server; behind it two fifths are sent, and the rest of each is as before
    before, behind = some.cuts[i], some.cuts[i + 1]
    later = unit_times_s(network, server, "fp32")
    there = sum(later[i : i + 1]) + layer_times_s([branch], server, "fp32")[0] + 0.4 * sum(later[i + 1 :])
    assert (before.passed_frac, before.tail_s) == (1.0, pytest.approx(there))
    assert (behind.passed_frac, behind.tail_s) == (pytest.approx(0.4), pytest.approx(plain.cuts[i + 1].tail_s))
    assert behind.sent_bytes == plain.cuts[i + 1].sent_bytes


def test_an_exit_that_answers_nothing_costs_its_branch_and_one_that_answers_all_ends_there():
    plain = split(**ASKED)
    none, every = (split(**ASKED, exits="conv3_3", easy_frac=share) for share in (0, 1))
    assert none.cuts[-1].head_s > plain.cuts[-1].head_s
    assert none.cuts[-1].head_s == pytest.approx(plain.cuts[-1].head_s, rel=0.02)
    assert every.cuts[-1].head_s == every.cuts[7].head_s
    assert (every.cuts[-2].passed_frac, every.cuts[-2].tail_s) == (0.0, 0.0)


def test_converting_everything_pays_below_a_share_of_easy_inputs(lenet):
    asked = {**ASKED, "model": lenet, "converter": "784,64,784", "exits": "conv1"}
    found = split(**asked, easy_frac=0.5)
    limit = found.converter_pays_below_frac
    pi = get_device(ASKED["device"])
    layers = [
        Convolution(positions=1, inputs=784, outputs=64),
        Convolution(positions=1, inputs=64, outputs=784),
        Convolution(positions=784, inputs=1, outputs=6, taps=25),
        Convolution(positions=1, inputs=1176, outputs=10),
    ]
    times = layer_times_s(layers, pi, "fp32")
    rest = layer_times_s(
        [
            Convolution(positions=100, inputs=6, outputs=16, taps=25),
            Convolution(positions=1, inputs=400, outputs=120),
            Convolution(positions=1, inputs=120, outputs=10),
        ],
        pi,
        "fp32",
    )
    assert limit == pytest.approx(max(0.0, 1.0 - sum(times[:2]) / sum(rest)))
    (converted,) = (c for c in found.cuts if c.name == "converted")
    assert (converted.head_s, converted.sent_bytes) == (pytest.approx(sum(times)), 0.0)
    # at that share both take as long; below it converting is quicker, above it the exit
    ends = {share: split(**asked, easy_frac=share).cuts[-1].head_s for share in (limit, 0.0, 1.0)}
    assert ends[limit] == pytest.approx(converted.head_s)
    assert ends[1.0] < converted.head_s < ends[0.0]


def test_a_language_model_is_its_embedding_rows_layers_and_head():
    model = get_model("llama-3.2-1b")
    found = language_network(model, 128)
    block = model.blocks[0]
    linear = sum(x.in_features * x.out_features for x in block.linears)
    # scores and values of 128 x 129 / 2 pairs of 32 heads of 64, in 16 layers; the head on one token
    macs = 16 * (128 * linear + 2 * 64 * 129 * 32 * 64) + 2048 * 128256
    assert (found.num_macs, found.input_bytes) == (macs, 512.0)
    answer = split(
        model="llama-3.2-1b",
        device="jetson-orin-nano-8gb",
        server="l4",
        link_rates="100",
        precision="fp16",
        input_tokens=128,
    )
    assert answer.cuts[1].sent_bytes == 128 * 2048 * 2
    assert [c.name for c in answer.cuts[-2:]] == ["layer16", "device"]


def test_thin_layers_are_bound_by_bytes_or_by_vector_units():
    pi = get_device(ASKED["device"])
    thin = Convolution(positions=56**2, inputs=144, outputs=144, taps=9, groups=144)
    assert thin.num_macs == 56**2 * 9 * 144
    (time_s,) = layer_times_s([thin], pi, "fp32")
    assert time_s >= max(
        2 * thin.num_macs / pi.vector_flops_per_s, 2 * 56**2 * 144 * 2 / pi.memory_bandwidth_bytes_per_s
    )
    attention = SelfAttention(tokens=197, num_heads=12, num_kv_heads=12, head_size=64, is_causal=False)
    assert (attention.num_macs, attention.num_weights) == (2 * 197**2 * 768, 0)
    assert layer_times_s([attention, thin], pi, "fp32")[1] == time_s


def test_broken_network_files_are_refused_in_words(lenet, tmp_path):
    good = split(**{**ASKED, "model": lenet})
    assert [c.name for c in good.cuts] == ["server", "conv1", "conv2", "device"]
    unit = {"name": "a", "layers": [{"positions": 1, "inputs": 2, "outputs": 2}], "num_results": 2, "num_channels": 2}
    whole = {"num_elements": 4, "units": [unit]}
    assert network_from(whole, "n", "f").num_macs == 4
    for change, words in (
        ({"units": []}, "units: got"),
        ({"units": [{**unit, "name": "a:b"}]}, "without comma and colon"),
        ({"units": [unit, unit]}, "two are called 'a'"),
        ({"units": [{**unit, "num_results": 3}]}, "no multiple"),
        ({"units": [{**unit, "layers": [{"positions": 1, "inputs": 3, "outputs": 2, "groups": 2}]}]}, "must divide"),
        ({"units": [{**unit, "layers": [{"positions": True, "inputs": 3, "outputs": 2}]}]}, "positions: got True"),
        ({"units": [{**unit, "depth": 3}]}, "there is no 'depth'"),
        ({"num_elements": 0}, "num_elements: got 0"),
        ({"element_bytes": "x"}, "element_bytes"),
    ):
        with pytest.raises(ScenarioError, match=words):
            network_from({**whole, **change}, "n", "f")
    (tmp_path / "bad.toml").write_text("units = [")
    with pytest.raises(ScenarioError, match=r"bad\.toml"):
        split(**{**ASKED, "model": str(tmp_path / "bad.toml")})


def test_units_that_stand_for_the_front_of_a_known_network(tmp_path):
    path = tmp_path / "front.toml"
    path.write_text(
        'base = "resnet-152"\nthrough = "conv3_8"\n'
        '[[units]]\nname = "encoder"\nlayers = [{ positions = 841, inputs = 3, outputs = 12, taps = 4 }]\n'
        "num_results = 10092\nnum_channels = 12\n"
    )
    found = split(**{**ASKED, "model": str(path)}, sent_bits=8)
    whole = split(**{**ASKED, "model": "resnet-152"})
    # stem, three and eight units of the base are gone: 36 and 3 and the last remain behind the encoder
    assert [c.name for c in found.cuts[:3]] == ["server", "encoder", "conv4_1"]
    assert found.cuts[1].tail_s == pytest.approx(whole.cuts[12].tail_s)
    assert (found.cuts[0].sent_bytes, found.cuts[1].sent_bytes) == (224 * 224 * 3, 10092)
    unit = {"name": "a", "layers": [{"positions": 1, "inputs": 2, "outputs": 2}], "num_results": 2, "num_channels": 2}
    for change, words in (
        ({"base": "alexnet"}, "base: got 'alexnet'"),
        ({"base": "vgg-16", "through": "fc8"}, "through"),
    ):
        with pytest.raises(ScenarioError, match=words):
            network_from({"units": [unit], **change}, "n", "f")


def test_refusals_of_exits_and_converters():
    for change, words in (
        ({"exits": "conv9"}, "with a unit of conv1_1"),
        ({"exits": "conv3_3"}, "has no share"),
        ({"exits": "conv3_3:2"}, "from 0 to 1"),
        ({"exits": "conv3_3:0.5,conv3_3:0.5"}, "stands twice"),
        ({"easy_frac": 0.5}, "easy_frac: set without exits"),
        ({"exits": "conv3_3:0.5", "converter": "10,20"}, "begin and end with the 150528 elements"),
        ({"input_tokens": 5}, "takes no tokens"),
        ({"model": "llama-3.2-1b"}, "input_tokens: missing"),
        ({"model": "mixtral-8x7b", "input_tokens": 9}, "dense models"),
    ):
        with pytest.raises(ScenarioError, match=words):
            split(**{**ASKED, **change})
