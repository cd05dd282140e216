"""Rotation in blocks: the width is the user's, and what makes no sense is refused."""

import pytest

import orrery
from orrery.base.errors import ScenarioError


def sqnr(**settings):
    (row,) = orrery.compare_formats("nvint4", on="outliers", **settings).to_json()["results"]
    return row["sqnr_db"]


def test_the_width_of_a_row_is_the_default_and_other_blocks_keep_another_signal():
    assert sqnr(rotate=True, rotate_block=1024) == sqnr(rotate=True)
    assert sqnr(rotate=True, rotate_block=32) > sqnr(rotate=True, rotate_block=4) > sqnr()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"rotate_block": 32}, "no effect without rotate"),
        ({"rotate": True, "rotate_block": 7}, "no Hadamard matrix"),
        ({"rotate": True, "rotate_block": 2048}, "no multiple of 2048"),
    ],
)
def test_blocks_that_cannot_turn_are_refused(settings, words):
    with pytest.raises(ScenarioError, match=words):
        sqnr(**settings)


@pytest.mark.parametrize("weights", ["bipolar1", "bipolar2", "bipolar4"])
def test_bipolar_weights_are_served_by_their_bits(weights):
    """Layers take a sixteenth of 16 bits for each bit; steps that read weights are faster."""
    deployment = {"model": "llama-3.1-8b", "device": "rtx-3090", "input_tokens": 128, "output_tokens": 64, "batch": 1}
    wide, narrow = (orrery.estimate(**deployment, weights=w) for w in ("bf16", weights))
    saved = wide.estimate.memory.weights_bytes - narrow.estimate.memory.weights_bytes
    model = wide.question.deployment.model
    linear = sum(b.count * sum(x.num_parameters for x in b.linears) for b in model.blocks)
    assert saved == pytest.approx(linear * (16 - int(weights[-1])) / 8, rel=0.02)
    assert narrow.estimate.tpot_s < 0.6 * wide.estimate.tpot_s
    other = orrery.estimate(**deployment, weights=weights, activations="bipolar2/128:fp16")
    assert other.estimate.tpot_s == narrow.estimate.tpot_s
    assert any("weights alone" in note for note in other.notes)
