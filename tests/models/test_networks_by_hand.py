"""Image networks against published counts, networks from files, and models that rank items by hand."""

import pytest

from orrery.base.errors import ScenarioError
from orrery.models.image_networks import network_of
from orrery.models.network_file import network_from
from orrery.models.recommendation import RecommendationModel


@pytest.mark.parametrize(
    ("name", "parameters", "apart", "giga_macs"),
    [
        # torchvision's counts, of which biases (and scales of batch norms, two a channel) are no matrices
        ("vgg-16", 138_357_544, 4_224 + 9_192, 15.47),
        ("resnet-50", 25_557_032, 2 * 26_560 + 1_000, 4.09),
        ("resnet-101", 44_549_160, 2 * 52_672 + 1_000, 7.80),
        ("resnet-152", 60_192_808, 2 * 75_712 + 1_000, 11.51),
        ("mobilenet-v2", 3_504_872, 2 * 17_056 + 1_000, 0.301),
    ],
)
def test_a_network_has_the_published_weights_and_products(name, parameters, apart, giga_macs):
    network = network_of(name)
    assert network.num_weights == parameters - apart
    assert network.num_macs == pytest.approx(giga_macs * 1e9, rel=2e-3)


def file_of(name, **change):
    layer = {"positions": 16, "inputs": 1, "outputs": 3, "taps": 4}
    unit = {"name": name, "layers": [layer], "num_results": 48, "num_channels": 3} | change
    return {"num_elements": 25, "element_bytes": 1, "units": [unit, unit | {"name": "last"}]}


@pytest.mark.parametrize("name", ["a", "conv 1", "\u00e9", "x" * 80])
def test_a_unit_of_a_file_has_a_name(name):
    network = network_from(file_of(name), "small", "file")
    assert network.units[0].name == name
    assert network.num_weights == 2 * 1 * 3 * 4
    assert network.num_macs == 2 * 16 * 1 * 3 * 4


@pytest.mark.parametrize("name", ["", "x" * 81, "a,b", "a:b", "a\nb", 3, None])
def test_a_name_that_a_list_could_not_hold_is_refused(name):
    with pytest.raises(ScenarioError, match="write up to 80 letters without comma and colon"):
        network_from(file_of(name), "small", "file")


def test_results_are_whole_channels():
    with pytest.raises(ScenarioError, match="num_results 47 is no multiple of num_channels 3"):
        network_from(file_of("a", num_results=47), "small", "file")


def ranking(interaction, **change):
    """Two tables of 10 and 20 rows, four wide; three dense features through 5 to 4; a top of 6 and the score."""
    sizes = {"width": 4, "num_dense": 3, "bottom": (5, 4), "top": (6, 1), "rows": (10, 20), "lookups": (1, 2)}
    sizes |= {"cross_layers": 0, "cross_rank": 0}
    return RecommendationModel(name="small", interaction=interaction, **sizes | change)


def test_vectors_that_meet_by_dot_products():
    """Three vectors meet in three pairs: 4 + 3 features enter the top; every pair takes 4 products, all nine 36."""
    model = ranking("dot")
    assert (model.num_tables, model.met_width) == (2, 7)
    found = [(x.positions, x.inputs, x.outputs, x.has_activation) for x in model.products()]
    assert found == [(1, 3, 5, True), (1, 5, 4, True), (3, 4, 3, False), (1, 7, 6, True), (1, 6, 1, False)]
    assert model.num_parameters == 4 * 30 + 15 + 20 + 42 + 6
    one = ranking("dot", rows=(10,), lookups=(1,))
    assert one.met_width == 4 + 1
    assert ranking("dot", rows=(10,) * 4, lookups=(1,) * 4).met_width == 4 + 10


def test_vectors_that_meet_in_cross_layers():
    """Three vectors of four side by side are 12; each of two layers goes through rank 2 and back."""
    model = ranking("cross", bottom=(4,), top=(1,), cross_layers=2, cross_rank=2)
    assert model.met_width == 12
    found = [(x.positions, x.inputs, x.outputs, x.has_activation) for x in model.products()]
    crossed = [(1, 12, 2, False), (1, 2, 12, False)]
    assert found == [(1, 3, 4, True), *crossed, *crossed, (1, 12, 1, False)]
    assert model.num_parameters == 4 * 30 + 12 + 4 * 24 + 12
