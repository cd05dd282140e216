"""What edge and search papers are made of: networks by hand, and that inputs move predictions the way they should."""

from dataclasses import replace

import pytest

from orrery.evidence.paper_file import get_paper
from orrery.kernels.cluster.networks import NETWORKS
from orrery_papers.bottlefit import predict as bottlefit
from orrery_papers.cbnet_converting_autoencoder import predict as cbnet_converting_autoencoder
from orrery_papers.puzzle_nas import predict as puzzle_nas
from orrery_papers.shared.convolutional import resnet, resnet50
from orrery_papers.tpi_llm import predict as tpi_llm


def with_input(setup, name, value):
    return replace(setup, inputs={**setup.inputs, name: replace(setup.inputs[name], value=value)})


def test_resnet_152_has_its_sixty_million_weights_and_eleven_billion_multiply_adds():
    layers = list(resnet((3, 8, 36, 3)))
    assert sum(x.num_parameters for x in layers) == pytest.approx(60.0e6, rel=0.01)
    assert sum(x.num_multiply_adds for x in layers) == pytest.approx(11.3e9, rel=0.01)
    assert list(resnet((3, 4, 6, 3))) == list(resnet50())


def test_the_bottleneck_of_the_code_weighs_ten_kilobytes():
    setup = get_paper("bottlefit").setups["raspberry-pi"]
    cut, others = bottlefit.ours(setup), bottlefit.baselines(setup)
    assert cut.sent_bytes == 29 * 29 * 12
    assert cut.head_s < 0.05 * others["local"].head_s < others["autoencoder-based"].head_s
    assert cut.tail_s == pytest.approx(others["edge"].tail_s, rel=0.2)  # the decoder takes the place of two stages
    own, other = bottlefit.head_weights()
    assert own == 7 * 7 * 3 * 64 + 4 * 64 * 12
    # stem, three units of 256 channels and eight of 512 with their first projections, and 512 to 12
    first = 64 * 64 + 9 * 64**2 + 64 * 256 + 64 * 256 + 2 * (256 * 64 + 9 * 64**2 + 64 * 256)
    second = 256 * 128 + 9 * 128**2 + 128 * 512 + 256 * 512 + 7 * (512 * 128 + 9 * 128**2 + 128 * 512)
    assert other == 7 * 7 * 3 * 64 + first + second + 512 * 12


def test_tiny_networks_have_their_published_work():
    forward = {name: sum(x.num_macs / (2 if x.is_first else 3) for x in layers()) for name, layers in NETWORKS.items()}
    assert forward["resnet8"] == pytest.approx(12.5e6, rel=0.02)
    assert forward["ds-cnn"] == pytest.approx(2.66e6, rel=0.02)


def test_a_converter_helps_where_inputs_are_hard():
    setup = get_paper("cbnet-converting-autoencoder").setups["raspberry-pi"]
    hard, easy = (cbnet_converting_autoencoder.converted(with_input(setup, "easy_frac", x)).cuts for x in (0.0, 1.0))
    assert hard[-2] == easy[-2]
    assert hard[-1].head_s > hard[-2].head_s > easy[-1].head_s


def test_more_devices_read_less_each_and_wait_for_more():
    setup = get_paper("tpi-llm").setups["home-7b"]
    later = {n: tpi_llm.run(setup, num_devices=n).window.tpot_s for n in (1, 8, 32)}
    assert later[8] < later[32] < later[1]


def test_a_smaller_child_serves_more():
    setup = get_paper("puzzle-nas").setups["generation"]
    small, large = (puzzle_nas.searched(with_input(setup, "num_child_parameters", x)) for x in (30e9, 49e9))
    assert small.best.metrics["parameters"] <= 30e9 < large.best.metrics["parameters"] <= 49e9
    assert small.best.metrics["score"] < large.best.metrics["score"] < 0.0
