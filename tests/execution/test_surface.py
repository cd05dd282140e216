"""The surface answers as the step does, for any batch and every kind of model."""

import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.base.compiled import converted, source_of
from orrery.execution.batch import Batch
from orrery.execution.host import captured
from orrery.execution.shard import has_exchange
from orrery.execution.step import step
from orrery.execution.surface import device_cost, nodes, shared_cost, stacked, surface_of
from orrery.execution.surface._kernel import (
    CHANNELS,
    MATRIX_WORK,
    MEMORY,
    MEMORY_WORK,
    NETWORK,
    TIME,
    Surface,
    decode_costs,
)
from orrery.execution.surface.build import _surface
from orrery.execution.surface.channels import channels
from orrery.kernels.energy import step_law

SIZES = {"most_tokens": 8192, "most_sequences": 256, "most_context_tokens": 131072, "most_prompt_tokens": 8192}
FP8 = {"weights": "fp8_block", "activations": "fp8_block"}
CASES = {
    "dense": {"model": "meta-llama/Llama-3.1-8B"},
    "dense on four": {"model": "meta-llama/Llama-3.1-8B", "tp": 4},
    "piped": {"model": "meta-llama/Llama-3.1-70B", "tp": 2, "pp": 2},
    "experts": {"model": "mistralai/Mixtral-8x7B-v0.1", "tp": 2},
    "latent, ranks exchange": {"model": "deepseek-ai/DeepSeek-V3", "device": "h200-sxm", "dp": 8, "ep": 8, **FP8},
    "indexed": {"model": "deepseek-ai/DeepSeek-V3.2", "device": "h200-sxm", "dp": 8, "ep": 8, **FP8},
    "windows": {"model": "openai/gpt-oss-120b"},
    "recurrent": {"model": "ibm-granite/granite-4.0-h-small"},
}


def _wide(rng, low, high, n):
    """Whole numbers whose logarithms are even."""
    return np.rint(np.exp(rng.uniform(np.log(low), np.log(high), n))).astype(np.int64)


def _batch(kind, n=200):
    """Random steps within ``SIZES``; decodes alone are as many as a CUDA graph holds, so that nothing is padded."""
    rng, none = np.random.default_rng(7), np.zeros(n, np.int64)
    prompts, decodes = _wide(rng, 1, 8, n), captured(_wide(rng, 1, 256, n))
    new = np.minimum(_wide(rng, 1, 4096, n), (8192 - 256) // prompts)
    cached = np.where(rng.random(n) < 0.4, 0, _wide(rng, 16, 32768, n))
    if kind == "decodes":
        prompts = new = cached = none
    if kind == "prompts":
        decodes = none
    return Batch(
        prompt_sequences=prompts,
        prompt_tokens=new,
        prompt_context_tokens=new + cached,
        decode_sequences=decodes,
        decode_context_tokens=_wide(rng, 16, 65536, n) * (decodes > 0),
    )


def _requested(batch):
    """What ``device_cost`` is told of each entry."""
    n, q = batch.prompt_sequences, batch.prompt_tokens
    pairs = n * q * (batch.prompt_context_tokens - q / 2)
    contexts = batch.decode_sequences * batch.decode_context_tokens
    columns = (n, n * q, pairs, batch.decode_sequences, contexts, batch.num_rows, np.zeros(n.size))
    return np.stack(columns, axis=1).astype(np.float64)


def _answers(deployment, batch, cost=device_cost, shared=shared_cost):
    """The surface's channels of each entry, where all ranks hold the same."""
    surface, requested = stacked([surface_of(deployment, **SIZES)]), _requested(batch)
    out = np.empty((len(requested), CHANNELS))
    for row, numbers, tokens in zip(out, requested, batch.num_tokens, strict=True):
        cost(surface, 0, row, *numbers)
        if has_exchange(deployment):
            shared(surface, 0, row, float(tokens * deployment.layout.dp))
    return out


@pytest.mark.parametrize("kind", ["decodes", "prompts", "mixed"])
@pytest.mark.parametrize("case", CASES)
def test_a_surface_is_close_to_the_step(deploy, case, kind):
    deployment, batch = deploy(**CASES[case]), _batch(kind)
    answers, parts = _answers(deployment, batch), step(deployment, batch).parts
    expected = channels(deployment, parts, len(answers))
    for channel in (TIME, MATRIX_WORK, MEMORY_WORK):
        error = np.abs(answers[:, channel] / expected[:, channel] - 1.0)
        assert np.median(error) < 0.003
        assert np.quantile(error, 0.95) < 0.02
    for channel in (NETWORK, MEMORY):
        error = np.abs(answers[:, channel] - expected[:, channel]) / expected[:, TIME]
        assert np.quantile(error, 0.95) < 0.02


@pytest.mark.parametrize("guesses", [1, 16, 63])
@pytest.mark.parametrize("case", ["dense", "latent, ranks exchange"])
def test_attention_of_every_draft_token_is_counted(deploy, case, guesses):
    """A step of the tables is the step itself, whose attention multiplies for the sure token and every draft."""
    deployment, batch = deploy(**CASES[case]), replace(_batch("decodes", 40), guesses=guesses)
    parts = [p for p in step(deployment, batch).parts if "decode" in p.name]
    expected = channels(deployment, parts, 40)[:, TIME]
    tables = stacked([surface_of(deployment, **SIZES, guesses=guesses)])
    alone = tables._replace(graph_tokens=np.zeros_like(tables.graph_tokens), rows=np.zeros_like(tables.rows))
    out, found = np.zeros(CHANNELS), []
    for count, context in zip(batch.decode_sequences, batch.decode_context_tokens, strict=True):
        device_cost(alone, 0, out, 0, 0, 0, float(count), float(count * context), 0.0, 0.0)
        found.append(out[TIME])
    assert np.quantile(np.abs(np.array(found) / expected - 1.0), 0.95) < 0.035


@pytest.mark.parametrize("case", CASES)
def test_no_step_draws_more_than_the_limit(deploy, case):
    deployment = deploy(**CASES[case])
    device, answers = deployment.cluster.device, _answers(deployment, _batch("mixed"))
    law = step_law(device)
    for row in answers:
        power_w = law.power_w(row[MATRIX_WORK], row[MEMORY_WORK], row[TIME])
        assert device.idle_power_w < power_w <= device.power_limit_w * (1 + 1e-9)


@pytest.mark.parametrize("kind", ["decodes", "prompts", "mixed"])
@pytest.mark.parametrize("case", ["latent, ranks exchange", "windows"])
def test_plain_python_gives_the_same_bits(deploy, case, kind):
    deployment, batch = deploy(**CASES[case]), _batch(kind, 50)
    plain = _answers(deployment, batch, source_of(device_cost), source_of(shared_cost))
    assert (_answers(deployment, batch) == plain).all()


def test_decodes_alone_are_padded_to_a_graph(deploy):
    deployment = deploy(**CASES["dense"])
    surface = surface_of(deployment, **SIZES)
    for size, graph in ((0, 0), (3, 4), (5, 8), (129, 136), (257, 272), (512, 512), (513, 513)):
        assert (surface.graph_tokens[size] == surface.tokens[graph]).all()
    eager = replace(deployment, engine=replace(deployment.engine, has_cuda_graphs=False))
    surface = surface_of(eager, **SIZES)
    assert (surface.graph_tokens == surface.tokens).all()


def test_only_ranks_that_exchange_share(deploy):
    alone = surface_of(deploy(**CASES["experts"]), **SIZES)
    assert alone.shared.shape == (1, CHANNELS)
    assert not alone.shared.any()
    out = np.zeros(CHANNELS)
    shared_cost(stacked([alone]), 0, out, 4000.0)
    assert not out.any()
    together = surface_of(deploy(**CASES["latent, ranks exchange"]), **SIZES)
    assert (together.shared[1] == together.shared[8]).all()  # a rank without work steps with a token of its own
    assert not together.shared[0].any()
    assert together.shared[-1, TIME] > together.shared[8, TIME] > 0


def test_a_table_goes_on_beyond_its_ends(deploy):
    surface = surface_of(deploy(**CASES["dense"]), **SIZES)

    def time_s(*requested):
        out = np.empty(CHANNELS)
        device_cost(stacked([surface]), 0, out, *(float(x) for x in requested))
        assert np.isfinite(out).all()
        assert (out >= 0).all()
        return out[TIME]

    def decodes_s(number, context):
        return time_s(0, 0, 0, number, number * context, 0, 0) - surface.graph_tokens[captured(number), TIME]

    assert decodes_s(256, 262144) == pytest.approx(2 * decodes_s(256, 131072), rel=0.05)
    assert decodes_s(4, 1) == decodes_s(4, 16)
    assert time_s(1, 16384, 16384**2 / 2, 0, 0, 1, 0) > 2 * time_s(1, 8192, 8192**2 / 2, 0, 0, 1, 0)
    assert time_s(0, 0, 0, 0, 0, 0, 16384) == pytest.approx(2 * time_s(0, 0, 0, 0, 0, 0, 8192), rel=1e-9)
    assert time_s(0, 0, 0, 0, 0, 0, 0) == 0.0


def test_several_deployments_share_a_stack(deploy):
    found = [surface_of(deploy(**CASES[case]), **SIZES) for case in ("dense", "latent, ranks exchange")]
    both, out, alone = stacked(found), np.empty(CHANNELS), np.empty(CHANNELS)
    for which, surface in enumerate(found):
        device_cost(both, which, out, 2.0, 700.0, 9e5, 60.0, 9e4, 62.0, 0.0)
        device_cost(stacked([surface]), 0, alone, 2.0, 700.0, 9e5, 60.0, 9e4, 62.0, 0.0)
        shared_cost(both, which, out, 999.0)
        shared_cost(stacked([surface]), 0, alone, 999.0)
        assert (out == alone).all()


def test_equal_sizes_after_rounding_give_the_same_tables(deploy):
    deployment = deploy(**CASES["piped"])
    surface = surface_of(deployment, **SIZES)
    assert surface_of(deployment, **{**SIZES, "most_tokens": 8000}) is surface


def test_a_small_surface_has_cells(deploy):
    one = dict.fromkeys(SIZES, 1)
    surface, out = stacked([surface_of(deploy(**CASES["dense"]), **one)]), np.empty(CHANNELS)
    device_cost(surface, 0, out, 1.0, 1.0, 0.5, 1.0, 16.0, 2.0, 0.0)
    assert out[TIME] > 0
    assert np.isfinite(out).all()


@given(first=st.integers(1, 64), most=st.integers(1, 10**6), steps=st.integers(1, 32))
def test_a_ladder_climbs_to_the_top_over_every_doubling(first, most, steps):
    rungs = nodes.ladder(first, most, steps)
    assert (np.diff(rungs) > 0).all()
    assert rungs[0] == first
    assert rungs[-1] == max(most, 2 * first)
    doublings = first * 2 ** np.arange(int(np.log2(rungs[-1] // first)) + 1)
    assert np.isin(doublings, rungs).all()


@given(most=st.integers(1, 10**6))
def test_token_nodes_end_at_the_most(most):
    at = nodes.tokens(most)
    assert at[0] == 1
    assert at[-1] == most
    assert (np.diff(at) > 0).all()


@pytest.mark.parametrize("kept", [1.0, 0.25])
def test_passes_of_one_batch_cost_what_each_of_them_costs(deploy, kept):
    """To the bit, over the edges of the mesh's cells."""
    held = converted(stacked([surface_of(deploy(model="meta-llama/Llama-3.1-8B"), **SIZES)]))
    for decodes, context in ((1.0, 1.0), (7.0, 900.0), (33.0, 33 * 4090.0), (256.0, 256 * 131000.0)):
        many, one = np.zeros((60, CHANNELS)), np.zeros(CHANNELS)
        decode_costs(held, 0, many, decodes, context, kept, 60)
        for k in range(60):
            device_cost(held, 0, one, 0.0, 0.0, 0.0, decodes, (context + k * decodes) * kept, decodes, 0.0)
            assert many[k].tolist() == one.tolist()


@pytest.mark.bench
def test_a_surface_is_quick_to_build_and_to_ask(deploy):
    for case, requested in CASES.items():
        deployment = deploy(**requested)
        surface = surface_of(deployment, **SIZES)
        _surface.cache_clear()
        start = time.perf_counter()
        surface = surface_of(deployment, **SIZES)
        built_s = time.perf_counter() - start
        print(f"{case}: {built_s * 1e3:.0f} ms")
        assert built_s < 0.5
    for prompts in (0.0, 1.0):
        each_s = min(_round_s(stacked([surface]), prompts) for _ in range(10))
        print(f"{each_s * 1e9:.0f} ns a step with {prompts:g} prompts")
        assert each_s < 1000e-9  # called from Python, which takes most of it


def _round_s(surface, prompts, number=20_000):
    """Mean time of a call in one round; the best round is the least disturbed one."""
    held, out = converted(surface), np.zeros(5)
    new = prompts * 1948.0
    start = time.perf_counter()
    for _ in range(number):
        device_cost(held, 0, out, prompts, new, new * 3000.0, 100.0, 300000.0, 100.0 + prompts, 0.0)
    return (time.perf_counter() - start) / number


def _small_surface(rng):
    """Two deployments of a few nodes, every cell another number."""
    return Surface(
        tokens=rng.random((2, 9, CHANNELS)),
        graph_tokens=rng.random((2, 9, CHANNELS)),
        shared=rng.random((2, 9, CHANNELS)),
        rows=rng.random((2, 9, CHANNELS)),
        decode_nodes=np.array([[1.0, 2.0, 4.0]] * 2),
        decode_context_nodes=np.array([[16.0, 32.0, 64.0]] * 2),
        decode=rng.random((2, 3, 3, CHANNELS)),
        prompt_nodes=np.array([[1.0, 4.0]] * 2),
        prompt_token_nodes=np.array([[1.0, 8.0, 64.0]] * 2),
        prompt_context_nodes=np.array([[0.0, 16.0, 64.0]] * 2),
        prompt=rng.random((2, 2, 3, 3, CHANNELS)),
    )


def _between(nodes, table, points):
    """Linear along one axis after the other."""
    for axis, x in zip(nodes, points, strict=True):
        i = min(max(int(np.searchsorted(axis, x, side="right")) - 1, 0), len(axis) - 2)
        share = max(0.0, (x - axis[i]) / (axis[i + 1] - axis[i]))
        table = (1 - share) * table[i] + share * table[i + 1]
    return table


@pytest.mark.parametrize("cost", [device_cost, source_of(device_cost)])
def test_a_step_is_the_sum_of_its_tables_by_hand(cost):
    """Two prompts of 6 new tokens in all, 3 each after 10 and 20 cached ones: 3 (10 + 1.5) + 3 (20 + 1.5) pairs are 15
    cached tokens on average. Three decodes of 90 tokens: 30 each. Ten tokens and one extra are beyond the last row."""
    s, out = _small_surface(np.random.default_rng(0)), np.empty(CHANNELS)
    for which in (0, 1):
        nodes_of = (s.prompt_nodes[which], s.prompt_token_nodes[which], s.prompt_context_nodes[which])
        prompt = _between(nodes_of, s.prompt[which], (2, 3, 15))
        decode = _between((s.decode_nodes[which], s.decode_context_nodes[which]), s.decode[which], (3, 30))
        cost(s, which, out, 2.0, 6.0, 3 * 11.5 + 3 * 21.5, 3.0, 90.0, 5.0, 1.0)
        np.testing.assert_allclose(out, s.tokens[which, 8] * 10 / 8 + s.rows[which, 5] + prompt + decode)
        cost(s, which, out, 0.0, 0.0, 0.0, 3.0, 90.0, 3.0, 0.0)
        np.testing.assert_allclose(out, s.graph_tokens[which, 3] + s.rows[which, 3] + decode)
        cost(s, which, out, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 4.0)
        np.testing.assert_allclose(out, s.tokens[which, 4] + s.rows[which, 0])
        cost(s, which, out, 1.0, 2.0, 2 * 0.5, 0.0, 0.0, 1.0, 0.0)  # less than nothing cached counts as nothing
        first = _between(nodes_of[:2], s.prompt[which], (1, 2))[0]
        np.testing.assert_allclose(out, s.tokens[which, 2] + s.rows[which, 1] + first)


@pytest.mark.parametrize("shared", [shared_cost, source_of(shared_cost)])
def test_what_ranks_share_goes_on_in_proportion(shared):
    s = _small_surface(np.random.default_rng(1))
    for tokens, share in ((8.0, 1.0), (8.4, 1.0), (12.0, 1.5)):
        out = np.ones(CHANNELS)
        shared(s, 1, out, tokens)
        np.testing.assert_allclose(out, 1 + share * s.shared[1, 8])
    out = np.zeros(CHANNELS)
    shared(s, 0, out, 3.6)
    np.testing.assert_allclose(out, s.shared[0, 4])
