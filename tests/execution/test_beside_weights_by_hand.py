"""What lies beside the weights, or elsewhere: adapters, layers of a peer or of the host, kept caches."""

from dataclasses import replace

import numpy as np
import pytest
from batches import decodes

from orrery import kernels, network
from orrery.execution.adapters import adapter_bytes, adapter_parts, reading_s, slots_bytes
from orrery.execution.kept_cache import NOTHING, Compression, kept_tokens, seen_tokens
from orrery.execution.layout import Adapters, WeightOffload
from orrery.execution.shard import shard
from orrery.execution.weight_offload import elsewhere_bytes, fetches_s, layer_bytes, num_elsewhere
from orrery.kernels.ops import Gemm

# --- adapters: Llama 3.1 8B is 4096 wide, 14,336 inside, with 1024 keys and values; 32 layers

RANK = 16
IN_OUT = [("qkv", 3, 4096, 6144), ("out", 1, 4096, 4096), ("gate_up", 2, 4096, 28672), ("down", 1, 14336, 4096)]
"""Name, matrices that are stacked, inputs and outputs of each product that an adapter changes."""


def of_8b(deploy, **more):
    return replace(deploy(model="llama-3.1-8b", **more), adapters=Adapters(rank=RANK, slots=3))


def test_bytes_of_an_adapter(deploy):
    """Rank x (inputs of every stacked matrix + outputs), 32 layers, 2 bytes."""
    elements = 32 * RANK * sum(stacked * k + n for _, stacked, k, n in IN_OUT)
    assert adapter_bytes(of_8b(deploy)) == 2 * elements == 83_886_080
    assert slots_bytes(of_8b(deploy)) == 3 * 83_886_080
    assert adapter_bytes(of_8b(deploy, pp=2)) == 83_886_080 / 2
    # on four devices columns are cut in their outputs, rows in their inputs
    cut = [("qkv", 3, 4096, 1536), ("o", 1, 1024, 4096), ("gate_up", 2, 4096, 7168), ("down", 1, 3584, 4096)]
    assert adapter_bytes(of_8b(deploy, tp=4)) == 2 * 32 * RANK * sum(s * k + n for _, s, k, n in cut)
    plain = deploy(model="llama-3.1-8b")
    assert (adapter_bytes(plain), slots_bytes(plain), reading_s(plain)) == (0, 0, 0)


def test_adapters_stay_wide_beside_narrow_weights(deploy):
    narrow = of_8b(deploy, weights="fp8", activations="fp8")
    assert adapter_bytes(narrow) == 83_886_080
    assert adapter_bytes(of_8b(deploy, activations="fp32")) == 2 * 83_886_080


def test_both_products_of_every_adapted_layer(deploy):
    """Into the stacked ranks and out of one; 32 times a step, for every token."""
    deployment = of_8b(deploy)
    parts = list(adapter_parts(deployment, deployment.adapters, decodes(64, 256)))
    want = []
    for name, stacked, k, n in IN_OUT:
        want += [(f"{name} adapter in", RANK * stacked, k), (f"{name} adapter out", n, RANK)]
    assert [(p.name, p.sizes["n"], p.sizes["k"]) for p in parts] == want
    for p, (_, n, k) in zip(parts, want, strict=True):
        op = Gemm(m=np.array([64, 256]), n=n, k=k, format="bf16", quantises_input=False)
        found = kernels.predict(op, deployment.cluster.device, deployment.engine.kernels)
        np.testing.assert_allclose(p.time_s, 32 * found.time_s, rtol=1e-12)
        assert (p.group, p.count, p.sizes["m"]) == ("adapters", 32, 256)


def test_another_adapter_is_read_at_the_rate_of_large_weights(deploy):
    """One row times a square of 8192: its bytes over its time without the launch."""
    for pp in (1, 2):
        deployment = of_8b(deploy, pp=pp)
        op = Gemm(m=1, n=8192, k=8192, format="bf16", quantises_input=False)
        found = kernels.predict(op, deployment.cluster.device, deployment.engine.kernels)
        rate = float(found.bytes / (found.time_s - found.overhead_s))
        assert reading_s(deployment) == pytest.approx(83_886_080 / rate, rel=1e-12)


# --- weights that lie elsewhere


def offloaded(deploy, frac=0.5, where="host", **more):
    return replace(deploy(model="llama-3.1-8b", **more), weight_offload=WeightOffload(layers_frac=frac, where=where))


@pytest.mark.parametrize(("frac", "pp", "count"), [(0.5, 1, 16), (0.5, 2, 8), (0.51, 1, 17), (1.0, 4, 8), (0.1, 1, 4)])
def test_a_share_of_a_stages_layers_is_rounded_up(deploy, frac, pp, count):
    assert num_elsewhere(offloaded(deploy, frac, pp=pp)) == count


def test_a_tenth_of_thirty_layers_is_three(deploy):
    """0.1 x 30 is a little over 3 in floating point."""
    model = deploy(model="llama-3.1-8b").model
    thirty = replace(model, blocks=(replace(model.blocks[0], count=30),))
    assert num_elsewhere(replace(offloaded(deploy, 0.1), model=thirty)) == 3


def test_two_layers_are_buffered(deploy):
    deployment = offloaded(deploy)
    each = layer_bytes(deployment)
    assert each == shard(deployment).weight_bytes / 32
    assert elsewhere_bytes(deployment) == 14 * each
    assert elsewhere_bytes(offloaded(deploy, 0.05)) == 0  # two layers, both buffered
    assert elsewhere_bytes(offloaded(deploy, 0.03)) == 0  # one
    assert elsewhere_bytes(deploy(model="llama-3.1-8b")) == fetches_s(deploy(model="llama-3.1-8b")) == 0
    assert layer_bytes(offloaded(deploy, pp=2)) == shard(offloaded(deploy, pp=2)).weight_bytes / 16


@pytest.mark.parametrize("pp", [1, 2])
def test_every_pass_fetches_them(deploy, pp):
    """From the host at 82 % of one direction of its link; from a peer as one message. All stages in turn."""
    deployment = offloaded(deploy, pp=pp)
    each, device = layer_bytes(deployment), deployment.cluster.device
    assert fetches_s(deployment) == pytest.approx(16 * each / (0.82 * device.host.each_way_bytes_per_s), rel=1e-12)
    work = network.Collective(kind="send_recv", num_devices=2, message_bytes=each, has_peer_to_peer=True)
    one_s = float(network.predict(work, device).time_s)
    assert fetches_s(offloaded(deploy, where="peer", pp=pp)) == pytest.approx(16 * one_s, rel=1e-12)


# --- what is kept of a cache


def test_kept_tokens_of_a_prompt():
    """A share, at most the budget, at least the window, at most all; answers are kept whole."""
    assert kept_tokens(NOTHING, 100, 7) == 107
    assert kept_tokens(Compression(kept_tokens_frac=0.301), 100, 7) == 31 + 7
    assert kept_tokens(Compression(budget_tokens=20), 100) == 20
    assert kept_tokens(Compression(kept_tokens_frac=0.1, budget_tokens=20), 100) == 10
    assert kept_tokens(Compression(kept_tokens_frac=0.1, window_tokens=16), 100) == 16
    assert kept_tokens(Compression(budget_tokens=8, window_tokens=16), 100) == 16
    assert kept_tokens(Compression(window_tokens=160), 100) == 100


def test_seen_tokens_of_a_context():
    """Of a prompt of 99.6, read as 100, half are dropped; what is left counts by its bytes; at least one is seen."""
    half = Compression(kept_tokens_frac=0.5, kept_bytes_frac=0.25, prompt_tokens=99.6)
    assert seen_tokens(half, np.array([110.0, 60.0, 51.0])).tolist() == [15, 2.5, 1]
    assert seen_tokens(replace(half, prompt_tokens=0.0), np.array([110.0])).tolist() == [27.5]
    assert seen_tokens(NOTHING, np.array([110.0, 0.0])).tolist() == [110, 1]


@pytest.mark.parametrize("frac", [0.0, -0.5, 1.5])
@pytest.mark.parametrize("name", ["kept_tokens_frac", "kept_bytes_frac"])
def test_a_share_is_above_nothing_and_at_most_all(name, frac):
    with pytest.raises(Exception, match="above 0, up to 1"):
        Compression(**{name: frac})


def test_compression_counts_are_not_negative():
    for name in ("budget_tokens", "window_tokens", "flops_per_token", "score_bytes_per_token", "prompt_tokens"):
        assert getattr(Compression(**{name: 0}), name) == 0
        with pytest.raises(Exception, match="write 0 or more"):
            Compression(**{name: -1})
