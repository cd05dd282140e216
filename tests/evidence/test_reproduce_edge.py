"""What edge and search papers are made of: networks by hand, and that inputs move predictions the way they should."""

from dataclasses import replace

import pytest

from orrery.evidence.paper_file import get_paper
from orrery_papers.bottlefit import predict as bottlefit
from orrery_papers.cbnet_converting_autoencoder import predict as cbnet_converting_autoencoder
from orrery_papers.fp16_odl_mcu import predict as fp16_odl_mcu
from orrery_papers.puzzle_nas import predict as puzzle_nas
from orrery_papers.shared.convolutional import resnet, resnet50
from orrery_papers.shared.split_boards import split_resnet
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
    local, whole, cut = split_resnet(setup, bottlefit.COUNTS)
    assert cut.sent_bytes == 29 * 29 * 12
    assert cut.head_flops < 0.02 * local.head_flops
    assert local.head_flops == whole.tail_flops
    assert cut.tail_flops == pytest.approx(whole.tail_flops, rel=0.02)  # the decoder takes the place of two stages
    assert bottlefit.head_parameters(setup) == 7 * 7 * 3 * 64 + 4 * 64 * 12


def test_tiny_networks_have_their_published_work():
    forward = {
        name: sum(x.num_macs / (2 if x.is_first else 3) for x in layers())
        for name, layers in fp16_odl_mcu.NETWORKS.items()
    }
    assert forward["resnet8"] == pytest.approx(12.5e6, rel=0.02)
    assert forward["ds-cnn"] == pytest.approx(2.66e6, rel=0.02)


def test_a_converter_helps_where_inputs_are_hard():
    setup = get_paper("cbnet-converting-autoencoder").setups["raspberry-pi"]
    hard, easy = (cbnet_converting_autoencoder.latencies(with_input(setup, "easy_frac", x)) for x in (0.0, 1.0))
    assert hard[1] == easy[1]
    assert hard[0] > hard[1] > easy[0]


def test_more_devices_read_less_each_and_wait_for_more():
    setup = get_paper("tpi-llm").setups["home-7b"]
    later = {n: tpi_llm.tensor_parallel(with_input(setup, "num_devices", float(n)))[1] for n in (1, 8, 64)}
    assert later[8] < later[64] < later[1]


def test_a_smaller_child_serves_more():
    setup = get_paper("puzzle-nas").setups["generation"]
    small, large = (puzzle_nas.searched(with_input(setup, "num_child_parameters", x)) for x in (30e9, 49e9))
    assert sum(b.ffn_share_frac for b in small) < sum(b.ffn_share_frac for b in large) < 80
