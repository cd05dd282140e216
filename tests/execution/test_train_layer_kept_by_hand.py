"""Tensors that a layer's training step keeps until its gradient, all by hand; the layer is ``toy_layer``'s."""

from dataclasses import replace

import pytest
from toy_layer import (
    COMPRESSED,
    DENSE,
    LATENT,
    LINEARS,
    RECURRENT,
    ROUTED,
    cut,
    job_of,
    linear,
    parts,
)

from orrery.execution.train import saved_activations

pytestmark = pytest.mark.usefixtures("asked")


def kept(job, block=DENSE, **degrees):
    choice = cut(**degrees)
    found = saved_activations.saved_activations(job, block, parts(block, choice), choice)
    return {name: getattr(found, name) for name in found.__slots__}


INPUTS = 8 + 8 + 8 + 12
"""Elements of a token: two copies of the stream, what enters the output projection and the last product."""
CORE = 4 * 2 + 2 * 4
"""Queries, keys and values."""


def test_a_layer_keeps_inputs_norms_activations_and_attention():
    """32 tokens: 2 bytes an element, and 4 of a row sum for each of 4 heads."""
    found = kept(job_of())
    each = 2 * INPUTS + 2 * 16 + 2 * 2 * 12 + (2 * CORE + 4 * 4)
    assert found["everything_bytes"].tolist() == found["selective_bytes"].tolist() == [32 * each]
    assert found["boundary_bytes"].tolist() == [32 * 2 * 8]
    # gradients of what enters the activation (24) less nothing, against 2 x 8 - 12 with sequence parallelism; stream 8
    assert found["working_bytes"].tolist() == [32 * 2 * (24 + 8)]


def test_tensor_parallelism_cuts_what_a_layer_keeps():
    each = 2 * INPUTS + 2 * 16 + 2 * 2 * 12 + (2 * CORE + 4 * 4)
    assert kept(job_of(), tp=2)["everything_bytes"].tolist() == [16 * each]
    whole = kept(job_of(), tp=2, is_sequence_parallel=False)
    assert whole["everything_bytes"].tolist() == [16 * each + 16 * (2 * 16 + 2 * 16)]
    assert whole["boundary_bytes"].tolist() == [32 * 2 * 8]


def test_pruned_activations_are_what_gradients_of_adapters_read():
    """Inputs of products give way to what leaves attention, 4 heads of 2, and to 16 elements of a rank; scores go."""
    job = replace(job_of(), prunes_activations=True)
    each = 2 * 16 + 2 * 2 * 12 + (2 * CORE + 4 * 4) + 2 * (8 + 16)
    found = kept(job)
    assert found["everything_bytes"].tolist() == found["selective_bytes"].tolist() == [32 * each]
    assert kept(replace(job, adapter_rank=5))["everything_bytes"].tolist() == [32 * (each - 2 * 11)]
    unfused = kept(replace(job, framework=replace(job.framework, has_fused_attention=False)))
    assert unfused["everything_bytes"].tolist() == unfused["selective_bytes"].tolist()
    state = replace(DENSE, mixer=RECURRENT)
    fewer = kept(job, state)["everything_bytes"] - kept(replace(job, adapter_rank=0), state)["everything_bytes"]
    assert fewer.tolist() == [32 * 2 * 16]  # nothing that leaves a softmax


def test_narrow_recipes_keep_narrow_inputs():
    found = kept(job_of("fp8"))
    assert found["everything_bytes"].tolist() == [32 * (1 * INPUTS + 2 * 16 + 2 * 2 * 12 + (2 * CORE + 4 * 4))]


def test_scores_and_masks():
    """Without a fused kernel 16 scores a head and token: 2 bytes, 5 with a dropout, whose mask the stream has too."""
    job = job_of(has_fused_attention=False)
    each = 2 * INPUTS + 2 * 16 + 2 * 2 * 12 + 2 * CORE
    found = kept(job)
    assert found["everything_bytes"].tolist() == [32 * (each + 2 * 4 * 16)]
    assert found["selective_bytes"].tolist() == [32 * each]
    dropped = kept(job_of(has_fused_attention=False, has_dropout=True))
    assert dropped["everything_bytes"].tolist() == [32 * (each + 5 * 4 * 16 + 2 * 8)]


def test_eager_kernels_keep_more():
    """A norm's input in 32 bits for 16, its output, and half of the gated activation: 4 x 16 + 2 x 12 a token."""
    assert kept(job_of(is_fused=False))["everything_bytes"] - kept(job_of())["everything_bytes"] == [32 * (64 + 24)]
    plain = replace(DENSE, linears=(*LINEARS[:2], linear("up", 8, 12, "column", "mlp"), LINEARS[3]))
    assert kept(job_of(is_fused=False), plain)["everything_bytes"] == kept(job_of(), plain)["everything_bytes"]


def test_operators_that_are_made_again_leave_every_other_product():
    found = kept(job_of(selective="operators"))
    assert found["selective_bytes"].tolist() == [32 * 2 * (8 + 0.5 * (16 + 8 + 24 + 8) + 4 * 2)]


@pytest.mark.parametrize(
    ("framework", "task", "inputs"),
    [
        ({}, "lora", INPUTS),
        ({"adapter_targets": "qkv"}, "lora", 8 + 8),
        ({"keeps_frozen_inputs": True, "adapter_targets": "qkv"}, "lora", 8 + 8),
        ({"keeps_frozen_inputs": True, "adapter_targets": "qkv"}, "qlora", INPUTS),
        ({"drops_adapted": True}, "adapter", INPUTS),
    ],
)
def test_frozen_weights_keep_the_inputs_of_their_adapters(framework, task, inputs):
    found = kept(job_of(task=task, **framework))
    assert found["everything_bytes"].tolist() == [32 * (2 * inputs + 2 * 16 + 2 * 2 * 12 + (2 * CORE + 4 * 4))]


def test_dropouts_before_adapters_keep_their_output_and_a_mask():
    """Only the output projection's input is kept; 3 bytes an element before each addition, gate and up apart."""
    found = kept(job_of(task="lora", drops_adapted=True))
    dropped = 3 * (8 + 8 + 2 * 8 + 12)
    assert found["everything_bytes"].tolist() == [32 * (2 * 8 + 2 * 16 + 2 * 2 * 12 + (2 * CORE + 4 * 4) + dropped)]


@pytest.mark.parametrize(
    ("mixer", "core"),
    [
        (LATENT, 2 * 4 * (2 * 4 + 2) + 4 * 4),
        (COMPRESSED, 2 * (4 + 1) * 2 + 4 * 4),
        (RECURRENT, 2 * 4 * 8 + 4 * 4),
        (None, 0),
    ],
)
def test_other_mixers_keep_theirs(mixer, core):
    found = kept(job_of(), replace(DENSE, mixer=mixer))
    assert found["everything_bytes"].tolist() == [32 * (2 * INPUTS + 2 * 16 + 2 * 2 * 12 + core)]


def test_latent_vectors_are_kept_beside_what_they_expand_to():
    """A product that expands 6 latent elements reads no residual stream."""
    linears = (linear("kv_up", 6, 20, "column", "attention"), *LINEARS[1:])
    found = kept(job_of(), replace(DENSE, mixer=LATENT, linears=linears))
    core = 2 * 4 * (2 * 4 + 2) + 4 * 4
    assert found["everything_bytes"].tolist() == [32 * (2 * INPUTS + 2 * 16 + 2 * 2 * 12 + core + 2 * 6)]


def test_modules_that_are_recomputed():
    """In their order: attention's row sums, no experts' activation, two normed copies, no latents, the dense part."""
    found = kept(job_of())["module_bytes"][:, 0].tolist()
    assert found == [32 * 4 * 4, 0, 32 * 2 * 2 * 8, 0, 32 * (2 * 24 + 2 * 12), 0, 0]
    shared = tuple(replace(x, role="shared_expert") if x.role == "mlp" else x for x in LINEARS)
    assert kept(job_of(), replace(DENSE, linears=shared))["module_bytes"][:, 0].tolist()[4:] == [0, 0, 32 * 72]
    scores = kept(job_of(has_fused_attention=False))["module_bytes"][0, 0]
    assert scores == 32 * 2 * 4 * 16
    latent = kept(job_of(), replace(DENSE, mixer=LATENT))["module_bytes"][3, 0]
    assert latent == 32 * 2 * 4 * 10


def test_what_routed_layers_keep():
    """64 rows of 8 come and enter 10 twice; 64 of 8 go back; the router reads the stream beside attention's copy."""
    found = kept(job_of(), ROUTED)
    each = 2 * (8 + 8 + 8) + 2 * 16 + (2 * CORE + 4 * 4)
    experts = 2 * 64 * (8 + 10) + 2 * 64 * 8 + 2 * 2 * 64 * 10
    assert found["everything_bytes"].tolist() == [32 * each + experts]
    inside = 2 * 2 * 64 * 10 + 2 * 64 * 8 + 2 * 64 * 10 + 2 * 64 * 8
    assert found["module_bytes"][:, 0].tolist() == [512, 2 * 64 * 10, 1024, 0, 0, inside, 0]
    assert found["working_bytes"].tolist() == [2 * (2 * 64 * 10 + 32 * 8)]
    operators = kept(job_of(selective="operators"), ROUTED)
    assert operators["selective_bytes"].tolist() == [2 * (32 * 8 + 0.5 * 32 * (16 + 8) + 32 * 8)]
    apart = kept(job_of(selective="operators"), ROUTED, ep=2)["selective_bytes"]
    assert (apart - operators["selective_bytes"]).tolist() == [2 * (64 * 8 + 64 * 8)], "what the exchanges brought"


def test_the_whole_input_and_its_gradient_bind_a_narrow_part():
    """A plain part of 4 elements: 2 x 8 whole less the 4 that are gone; without sequence parallelism 4 alone."""
    block = replace(DENSE, linears=(*LINEARS[:2], linear("up", 8, 4, "column", "mlp")), activation_elements=4)
    assert kept(job_of(), block)["working_bytes"].tolist() == [32 * 2 * (16 - 4 + 8)]
    assert kept(job_of(), block, is_sequence_parallel=False)["working_bytes"].tolist() == [32 * 2 * (4 + 8)]
