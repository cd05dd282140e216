"""Gradients that are dropped after each update: none is there at the loss, where activations are most."""

import pytest

import orrery

PARAMETERS = 1_235_812_352  # of Llama 3.2 1B, its head tied to its embedding


def memory(**more):
    """Bytes of the only rank by category, and the peak."""
    asked = {"model": "llama-3.2-1b", "device": "h100-sxm", "devices": 1, "framework": "pytorch", "recompute": "none"}
    settings = asked | {"precision": "bf16_pure", "seq_len": 2048, "micro_batch": 4, "global_batch": 4} | more
    return orrery.train(**settings).to_json()["memory"][0]


def test_gradients_wait_for_activations_to_go():
    """Activations and logits of 8,192 tokens are more than two bytes a parameter: when gradients are there, those have
    gone. An earlier micro-batch leaves its gradients beside them."""
    once, twice = memory(), memory(global_batch=8)
    assert once["gradients_bytes"] == 0.0
    assert twice["gradients_bytes"] == pytest.approx(2 * PARAMETERS, rel=1e-3)
    assert twice["peak_bytes"] - once["peak_bytes"] == pytest.approx(2 * PARAMETERS, rel=1e-3)


def test_what_gradients_have_beyond_few_activations_stays():
    """A short sequence: the peak is at the end of the backward pass, with every gradient and no activation."""
    few = memory(seq_len=128, micro_batch=1, global_batch=1)
    gone = few["activations_bytes"] + few["logits_bytes"]
    assert 0.0 < few["gradients_bytes"] < 2 * PARAMETERS
    assert few["gradients_bytes"] + gone == pytest.approx(2 * PARAMETERS, rel=0.1)


@pytest.mark.parametrize("more", [{"devices": 2, "dp": 2, "global_batch": 8}, {"framework": "megatron-lm"}])
def test_buckets_and_flat_gradients_are_always_there(more):
    """DistributedDataParallel's buckets hold every gradient, Megatron-LM's stand in one buffer."""
    assert memory(**more)["gradients_bytes"] > PARAMETERS
