"""Passes of an image network by hand: two convolutions, their norms, an activation, an addition and a GELU."""

import numpy as np
import pytest

from orrery import kernels
from orrery.catalog.devices import get_device
from orrery.catalog.network_runtimes import get_network_runtime, network_runtime_names
from orrery.execution.edge.eager import eager_passes, num_operators, pass_costs, with_passes
from orrery.execution.edge.times import Numbers, layer_costs
from orrery.kernels.ops import Elementwise
from orrery.models.image_networks import network_of
from orrery.models.networks import Convolution, Network, RowWise, Unit

LAYERS = (
    Convolution(positions=100, inputs=8, outputs=16, has_batch_norm=True, has_activation=True),
    Convolution(positions=100, inputs=16, outputs=16, has_batch_norm=True),
    RowWise(kind="gelu", tokens=100, width=16),
)
NETWORK = Network(
    name="three",
    units=(Unit(name="block", layers=LAYERS, num_results=1600, num_channels=16, num_additions=1),),
    num_elements=800,
)


def test_passes_and_operators():
    # norm and activation, norm, GELU: a word read and one written; the addition reads two
    assert eager_passes(NETWORK) == ((1600, 2), (1600, 2), (1600, 2), (1600, 2), (1600, 3))
    assert num_operators(NETWORK) == 2 + 5


def test_a_pass_streams_like_an_addition():
    device, numbers = get_device("l4"), Numbers(format="fp16")
    found = pass_costs(NETWORK, device, numbers, 64)
    assert found.time_s.shape == (5,)
    added = kernels.predict(Elementwise(kind="add", tokens=64, width=1600, format="fp16"), device)
    assert found.time_s[4] == float(np.squeeze(added.time_s))
    assert found.moved_bytes == pytest.approx([64 * 1600 * 2 * 2] * 4 + [64 * 1600 * 2 * 3], rel=1e-3)
    layers = layer_costs(list(LAYERS[:2]), device, numbers, 64)
    both = with_passes(layers, found)
    assert both.time_s.sum() == pytest.approx(layers.time_s.sum() + found.time_s.sum())
    assert both.launch_s.shape == (7,)


@pytest.mark.parametrize(
    ("name", "norms", "activations", "additions"),
    [
        ("resnet-50", 53, 49, 16),  # torchvision: 1 + 3 x 16 + 4 norms; 1 + 3 x 16 activations
        ("mobilenet-v2", 52, 35, 10),
        ("vgg-16", 0, 15, 0),
    ],
)
def test_networks_have_the_passes_of_their_papers(name, norms, activations, additions):
    network = network_of(name)
    layers = [x for unit in network.units for x in unit.layers if isinstance(x, Convolution)]
    assert sum(x.has_batch_norm for x in layers) == norms
    assert sum(x.has_activation for x in layers) == activations
    assert sum(unit.num_additions for unit in network.units) == additions


def test_a_vision_transformer_adds_twice_a_layer():
    network = network_of("vit-b-16")
    passes = eager_passes(network)
    gelus = [x for x in passes if x == (197 * 4 * 768, 2)]
    assert len(gelus) == 12
    assert sum(words == 3 for _, words in passes) >= 24


def test_runtimes_state_what_they_fuse():
    device = get_device("l4")
    assert network_runtime_names() == ("tensorrt", "pytorch")
    assert get_network_runtime("TRT", device).operator_s == 0.0
    timm = get_network_runtime("timm", device)
    assert (timm.name, timm.fuses, timm.is_eager) == ("pytorch", False, True)
    assert 1e-5 < timm.operator_s < 1e-4
    assert set(timm.facts) == {"fuses", "passes_codes", "is_eager"}
