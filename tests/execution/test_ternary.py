"""Memory of models without matrix products: counts by hand, limits, and what fusing saves."""

import pytest

from orrery.execution.ternary import (
    TRITS_BITS,
    TernaryModel,
    activation_bytes,
    inference_bytes,
    state_bytes,
    training_bytes,
    weight_bytes,
)

SMALL = TernaryModel(num_layers=24, num_hidden=1024, num_vocabulary=32000)
LARGE = TernaryModel(num_layers=32, num_hidden=2560, num_vocabulary=32000)


@pytest.mark.parametrize(("layers", "hidden", "named"), [(24, 1024, 370e6), (24, 2048, 1.3e9), (32, 2560, 2.7e9)])
def test_parameters_are_those_of_the_name(layers, hidden, named):
    model = TernaryModel(num_layers=layers, num_hidden=hidden, num_vocabulary=32000)
    assert model.num_parameters == pytest.approx(named, rel=0.06)


def test_ternary_layers_take_an_eighth_of_sixteen_bits_or_a_tenth():
    embedding = 2 * LARGE.num_embedding
    assert (weight_bytes(LARGE) - embedding) * 8 == 2 * LARGE.num_ternary
    assert (weight_bytes(LARGE, TRITS_BITS) - embedding) * 10 == pytest.approx(2 * LARGE.num_ternary)


def test_the_state_does_not_grow_with_the_context():
    assert state_bytes(SMALL, 3) == 3 * 24 * 1024 * 4
    one_more = inference_bytes(SMALL, 1, 9000) - inference_bytes(SMALL, 1, 8999)
    assert one_more == (2 * 1024 + 3 * SMALL.num_ffn) * 2  # one layer's activations, reused by the next


def test_fusing_saves_more_the_more_tokens_are_kept_up_to_a_limit():
    saved = [
        1 - training_bytes(LARGE, n, is_fused=True) / training_bytes(LARGE, n, is_fused=False)
        for n in (1, 10**4, 10**6)
    ]
    limit = 1 - activation_bytes(LARGE, 1, is_fused=True) / activation_bytes(LARGE, 1, is_fused=False)
    assert 0 < saved[0] < saved[1] < saved[2] < limit < 1
    assert saved[2] == pytest.approx(limit, rel=0.02)
