"""Models without matrix products: parameters, states and bytes by hand."""

import numpy as np
import pytest

from orrery import estimate
from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.execution.formats import bytes_per_element, compute_format
from orrery.models.config import parse
from orrery.models.model import RecurrentMixer
from orrery.numerics.registry import get_format

SMALL = {"model_type": "hgrn_bit", "hidden_size": 128, "num_hidden_layers": 2, "vocab_size": 1000}
RUN = {"device": "rtx-4090", "model": "matmulfree-2.7b", "input_tokens": 256, "output_tokens": 64, "batch": 1}


def test_parameters_of_a_small_one():
    # gated unit: 128 x 4 x 2/3 = 341, up to 512; a layer: 4 x 128^2 + 3 x 128 x 512 = 262,144, vectors 1,664
    # embedding and head 2 x 128,000; norms before the head and of its own input 256
    assert parse(SMALL, name="small").num_parameters == 2 * (262_144 + 1_664) + 256_000 + 256


def test_a_convolution_on_the_input_or_on_all_three():
    shared = parse(SMALL | {"use_short_conv": True, "conv_size": 4}, name="small").blocks[0].mixer
    apart = parse(SMALL | {"use_short_conv": True, "share_conv_kernel": False}, name="small").blocks[0].mixer
    assert isinstance(shared, RecurrentMixer)
    assert isinstance(apart, RecurrentMixer)
    assert (shared.conv_elements, apart.conv_elements) == (3 * 128, 3 * 384)
    assert shared.flops_per_token == 4 * 128 + 2 * 4 * 128


@pytest.mark.parametrize(("size", "layers", "hidden"), [("370m", 24, 1024), ("1.3b", 24, 2048), ("2.7b", 32, 2560)])
def test_published_sizes(size, layers, hidden):
    model = get_model(f"matmulfree-{size}")
    assert (model.num_layers, model.hidden_size) == (layers, hidden)
    assert model.blocks[0].mixer.state_elements == hidden  # a vector a layer, however long the context is


def test_ternary_weights_take_two_bits():
    assert bytes_per_element("ternary") == bytes_per_element("w1.58a8") == 0.25
    assert get_format("ternary").weight_only
    h100, p100 = get_device("h100-sxm"), get_device("p100-pcie-16gb")
    assert compute_format("ternary_int8", "int8", h100) == "ternary_int8"
    assert compute_format("ternary_int8", "bf16", h100) == "ternary_weight_only"
    assert compute_format("ternary_int8", "int8", p100) == "ternary_weight_only"  # no INT8 units


def test_the_head_is_ternary_too_and_only_the_embedding_stays_wide():
    model = get_model("matmulfree-2.7b")
    ternary = sum(x.num_parameters * b.count for b in model.blocks for x in b.linears) + model.head.num_parameters
    held = estimate(**RUN, weights="ternary").estimate.memory.weights_bytes
    wide = model.num_parameters - ternary
    assert held == pytest.approx(ternary / 4 + wide * 2, rel=1e-6)


def test_time_of_a_token_falls_with_the_bytes_read_and_not_with_the_context():
    plain, packed = estimate(**RUN), estimate(**RUN, weights="ternary")
    assert 2.0 < plain.estimate.tpot_s / packed.estimate.tpot_s < 8.0  # eight times fewer bytes; launches stay
    longer = estimate(**RUN | {"input_tokens": 1900}, weights="ternary")
    assert longer.estimate.tpot_s == pytest.approx(packed.estimate.tpot_s, rel=1e-6)
    assert np.isinf(packed.room.kv_cache_tokens)  # no cache grows
