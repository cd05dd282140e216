"""Bytes between memories, guesses, and smaller caches: the sizes that the model's shapes say, and rules that add up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.base.compiled import callable_rule
from orrery.base.errors import ScenarioError
from orrery.execution.compression import NOTHING, Compression, compressed, compressing_s, kept_tokens
from orrery.execution.long_context import LongContext, long_context
from orrery.execution.memory import Infeasible
from orrery.execution.shard import cache_of
from orrery.execution.speculation import (
    Speculation,
    drafting_s,
    with_draft,
)
from orrery.execution.transfer import (
    TRANSFERS,
    host_link,
    knob_array,
    kv_bytes,
    kv_bytes_per_token,
    link_between,
    pieces_of,
)
from orrery.serving.simulation.tables import _kernel as tables


def seconds(name, moved, rate=50e9, latency=1e-6, **knobs):
    technique = TRANSFERS.get(name)
    return technique.rule(moved, rate, latency, knob_array(technique, **knobs))


@pytest.mark.parametrize("name", sorted(TRANSFERS.techniques))
@given(moved=st.floats(0.0, 1e12), rate=st.floats(1e8, 1e12))
def test_no_transfer_beats_its_link(name, moved, rate):
    assert seconds(name, moved, rate) >= moved / rate
    assert seconds(name, 0.0, rate) == 0.0


@pytest.mark.parametrize("name", sorted(TRANSFERS.techniques))
def test_transfers_compile_as_written(name):
    rule = TRANSFERS.get(name).rule
    compiled = callable_rule(rule, tables.__name__, "TransferRule")
    knobs = knob_array(TRANSFERS.get(name))
    assert compiled(1e8, 5e10, 1e-6, knobs) == rule(1e8, 5e10, 1e-6, knobs)


def test_encryption_in_series_is_the_sum_of_its_stages():
    found = seconds("encrypted-serial", 1e9, core_bytes_per_s=4e9, call_s=0.0)
    assert found == pytest.approx(1e-6 + 1 / 50 + 1 / 4)


def test_a_perfect_guess_leaves_the_slowest_stage_and_a_wrong_one_costs_a_piece_and_the_flush_more():
    serial = seconds("encrypted-serial", 1e9, num_cores=8)
    always, never = (seconds("encrypted-pipelined", 1e9, hit_frac=h) for h in (1.0, 0.0))
    assert always == pytest.approx(1e-6 + 10e-6 + max(1 / 50, 1 / 27.2))
    assert never == pytest.approx(always + 1e6 / 50e9 + 100e-6)
    whole = seconds("encrypted-pipelined", 1e9, hit_frac=0.0, piece_bytes=1e9)
    assert whole == pytest.approx(serial + 100e-6), "in one piece copy and cipher follow each other"
    hidden = seconds("encrypted-pipelined", 1e9, hit_frac=1.0, ahead_s=1.0)
    assert hidden == pytest.approx(1 / 50, rel=1e-2), "encrypted while the device computed: the link alone"


def test_a_replica_hands_over_the_whole_cache_however_it_is_cut(deploy):
    whole = kv_bytes_per_token(deploy())
    assert whole == 80 * 2 * 8 * 128 * 2
    for degrees in ({"tp": 8}, {"pp": 4}, {"tp": 2, "pp": 2}, {"cp": 2}):
        assert kv_bytes_per_token(deploy(**degrees)) == pytest.approx(whole), degrees
    assert kv_bytes_per_token(deploy(tp=16)) == 2 * whole, "heads held twice are sent twice"
    assert kv_bytes(deploy(), 1000) == 1000 * whole


def test_every_device_sends_its_own_part(deploy):
    one, four = deploy(engine="sglang"), deploy(engine="sglang", tp=4)
    near, far = (link_between(four, four, same_node=same) for same in (True, False))
    assert near.bandwidth_bytes_per_s > 5 * far.bandwidth_bytes_per_s
    alone = link_between(one, four, same_node=False)
    assert far.bandwidth_bytes_per_s == pytest.approx(4 * alone.bandwidth_bytes_per_s)
    assert alone.bandwidth_bytes_per_s < one.cluster.device.scaleout.each_way_bytes_per_s
    slow = deploy(device="a100-sxm-80gb", engine="sglang")
    assert link_between(one, slow, same_node=False) == link_between(slow, one, same_node=False)


def test_host_links_add_up_to_what_the_host_takes(deploy):
    link = host_link(deploy(tp=4))
    assert link.bandwidth_bytes_per_s == pytest.approx(4 * host_link(deploy()).bandwidth_bytes_per_s)
    assert host_link(deploy(tp=4), host_memory_bytes_per_s=1e11).bandwidth_bytes_per_s == 1e11
    with pytest.raises(ScenarioError, match="host_memory"):
        host_link(deploy(), host_memory_bytes_per_s=0.0)


def test_guessing_costs_one_step_of_the_small_model_a_level(deploy):
    small = deploy(model="meta-llama/Llama-3.2-1B")
    row = with_draft(Speculation(draft_tokens=4), small)
    large = with_draft(Speculation(draft_tokens=4), deploy(model="meta-llama/Llama-3.1-8B"))
    assert 0.0 < drafting_s(row, 1) < drafting_s(large, 1)
    assert drafting_s(row, 64) >= drafting_s(row, 1)
    assert drafting_s(row, 8) == pytest.approx(4 * (row.draft_base_s + 8 * row.draft_s_per_sequences))
    assert drafting_s(Speculation(kind="prompt-lookup", draft_base_s=1.0), 8) == 0.0


@pytest.mark.parametrize("given", [{"kind": "medusa"}, {"acceptance_frac": 1.5}, {"kind": "tree"}, {"draft_tokens": 0}])
def test_impossible_guesses_are_refused(given):
    with pytest.raises(ScenarioError):
        Speculation(**given)


@given(prompt=st.integers(1, 100_000), frac=st.floats(0.01, 1.0), budget=st.integers(0, 4096))
def test_kept_tokens_stay_within_the_prompt(prompt, frac, budget):
    found = kept_tokens(Compression(kept_tokens_frac=frac, budget_tokens=budget, window_tokens=32), prompt, 7)
    assert min(prompt, 32) <= found - 7 <= prompt
    assert kept_tokens(NOTHING, prompt) == prompt
    if budget >= 32:
        assert found - 7 <= budget


def test_compressed_caches_keep_their_share(deploy):
    deployment = deploy(model="openai/gpt-oss-20b")
    whole, half = cache_of(deployment), compressed(cache_of(deployment), Compression(kept_bytes_frac=0.5))
    assert half.sequence_bytes(5000) == whole.sequence_bytes(5000) / 2
    assert compressing_s(deployment, NOTHING, 5000) == 0.0
    assert compressing_s(deployment, Compression(flops_per_token=1e9), 5000) > 0.0
    with pytest.raises(ScenarioError, match="kept_bytes_frac"):
        Compression(kept_bytes_frac=0.0)


@pytest.fixture
def yi(deploy):
    """A 34B model over two A100s of 80 GB: its weights alone leave no room on one."""
    return deploy(model="01-ai/Yi-34B", device="a100-sxm-80gb", tp=2)


def test_the_cache_causes_all_four_penalties(yi):
    short, long = (long_context(yi, n) for n in (4096, 50_000))
    assert isinstance(short, LongContext)
    assert isinstance(long, LongContext)
    assert long.kv_bytes == 50_000 * 60 * 2 * 8 * 128 * 2
    ratio = long.kv_bytes / short.kv_bytes
    assert short.concurrency / long.concurrency == pytest.approx(ratio, rel=0.3)
    assert long.context_switch_s == pytest.approx(ratio * short.context_switch_s, rel=0.01)
    assert long.prefill_s > ratio * short.prefill_s, "more than in proportion: attention"
    assert long.one_decode_step_s > short.one_decode_step_s
    read = (long.kv_bytes - short.kv_bytes) / 2 / yi.cluster.device.memory_bandwidth_bytes_per_s
    assert 0.9 * read < long.one_decode_step_s - short.one_decode_step_s < 2.0 * read, "the cache is read once"


def test_a_smaller_cache_takes_back_three_of_the_four(yi):
    plain = long_context(yi, 50_000)
    for retained in (Compression(kept_bytes_frac=0.25), Compression(kept_tokens_frac=0.25)):
        found = long_context(yi, 50_000, retained)
        assert found.kv_bytes == pytest.approx(plain.kv_bytes / 4)
        assert found.concurrency >= 4 * plain.concurrency
        assert found.one_decode_step_s < plain.one_decode_step_s
        assert found.context_switch_s < 0.3 * plain.context_switch_s
        assert found.prefill_s == pytest.approx(plain.prefill_s, rel=0.01), "the prompt is read in full"


def test_weights_that_do_not_fit_say_so(deploy):
    assert isinstance(long_context(deploy(tp=1), 4096), Infeasible)


@pytest.mark.parametrize(
    ("engine", "pieces", "piece_bytes"),
    [
        ("sglang", 160.0, float("inf")),  # keys and values of 80 layers, whole
        ("vllm", 160.0, 16 * 1 * 128 * 2.0),  # blocks of 16 tokens, one key or value head of 128 in BF16
        ("tensorrt-llm", 1.0, 32 * 80 * 2 * 128 * 2.0),  # blocks of 32 tokens, keys and values of all 80 layers
    ],
)
def test_what_an_engine_sends_in_one_piece(deploy, engine, pieces, piece_bytes):
    """Llama 3.1 70B on eight devices: 80 layers, one of eight key/value heads of 128 on each."""
    assert pieces_of(deploy(engine=engine, tp=8)) == (pieces, pytest.approx(piece_bytes))


def test_every_piece_of_a_transfer_costs_its_start(deploy):
    """5,120 tokens in blocks of 16: 320 blocks x 160 pieces a device, 2 us each, beside the bytes themselves."""
    deployment = deploy(engine="vllm", tp=8)
    link, bare = (link_between(deploy(engine=e, tp=8), deployment, same_node=False) for e in ("vllm", "sglang"))
    sent = kv_bytes(deployment, 5120)
    assert sent / link.bandwidth_bytes_per_s - sent / bare.bandwidth_bytes_per_s == pytest.approx(320 * 160 * 2e-6)
    assert link.latency_s == pytest.approx(bare.latency_s)
    assert bare.latency_s > 160 * 2e-6
