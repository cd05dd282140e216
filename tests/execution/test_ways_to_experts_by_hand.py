"""Bytes on the way to experts of other ranks, programs over two memories, contexts, prompts and shares of a device."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from batches import decodes

from orrery import network
from orrery.catalog.models import get_model
from orrery.execution.batch import Batch
from orrery.execution.compression import compressing_s
from orrery.execution.experts import dispatch
from orrery.execution.experts.all_to_all import SPELLINGS, UNMEASURED, dispatcher_note, get_dispatcher
from orrery.execution.experts.redundant import redundant_note
from orrery.execution.kept_cache import Compression
from orrery.execution.layout import Images
from orrery.execution.long_context import long_context
from orrery.execution.memory import memory_of
from orrery.execution.offload.mapping_graphs import convolutions, transformer, with_backward
from orrery.execution.overlap import norm_frac
from orrery.execution.shard import cache_of, shard
from orrery.execution.sm_share import memory_demand_frac, saturation_frac, with_share
from orrery.execution.step import step
from orrery.execution.transfer import host_link
from orrery.execution.whole_prompts import growing_s, longest_prompt_tokens
from orrery.kernels.ops import Popularity

MIXTRAL = "mixtral-8x7b"
"""4096 wide, 32 layers of 8 experts, of which a token takes 2."""


@pytest.fixture
def bytes_are_seconds(monkeypatch):
    """A collective takes a second a byte on its devices; which, is kept."""
    found = []

    def predict(work, device):
        found.append((work.kind, work.num_devices, getattr(work, "stride", 1)))
        size = work.message_bytes if isinstance(work, network.Collective) else work.tokens
        return SimpleNamespace(time_s=np.asarray(size, float) * 1.0)

    monkeypatch.setattr(dispatch.network, "predict", predict)
    return found


def ways(deployment, batch, experts=0):
    found = dispatch.exchange_parts(deployment, shard(deployment).experts[experts], batch)
    return {p.name: p.time_s.tolist() for p in found}


@pytest.mark.parametrize(("activations", "out", "back"), [("bf16", 2, 2), ("fp8", 1, 2), ("fp32", 4, 4)])
def test_bytes_of_tokens_that_are_sent_to_their_experts(deploy, bytes_are_seconds, activations, out, back):
    """Each device of two sends half of the copies of 64 tokens for two experts, in each of 32 layers."""
    deployment = replace(deploy(MIXTRAL, tp=2, dp=4, ep=8, activations=activations), dispatcher="all-to-all")
    copies = 64 * 2 * 4096 / 2 * 32
    assert ways(deployment, decodes(64, 0)) == {"dispatch": [copies * out, 0], "combine": [copies * back, 0]}
    assert bytes_are_seconds == [("all_to_all", 8, 1)] * 2


@pytest.mark.parametrize(("activations", "out", "back"), [("bf16", 2, 2), ("fp8", 1, 2)])
def test_bytes_of_tokens_that_are_gathered(deploy, bytes_are_seconds, activations, out, back):
    """Tokens of all four ranks come to all; ranks of two devices stand two apart."""
    deployment = replace(deploy(MIXTRAL, tp=2, dp=4, ep=8, activations=activations), dispatcher="all-gather")
    every = 64 * 4 * 4096 * 32
    assert ways(deployment, decodes(64)) == {"dispatch": [every * out], "combine": [every * back]}
    assert bytes_are_seconds == [("all_gather", 4, 2), ("reduce_scatter", 4, 2)]


def test_popular_experts_make_their_rank_the_last(deploy, bytes_are_seconds):
    """Experts 0 and 1 on the first of four ranks get 0.4 of all: 1.6 of the mean, in every exchange."""
    loads = Popularity(layers=((0.3, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1),))
    deployment = replace(deploy(MIXTRAL, dp=4, ep=4), dispatcher="all-to-all", expert_loads=loads)
    copies = 64 * 2 * 4096 * 2 * 32
    assert ways(deployment, decodes(64))["dispatch"] == pytest.approx([1.6 * copies])
    sent = replace(deployment, dispatcher="deepep-normal")
    assert ways(sent, decodes(64))["dispatch"] == pytest.approx([1.6 * 64 * 32])


def test_libraries_by_tokens_of_a_device(deploy, monkeypatch):
    """Up to 1024 tokens of a device low latency, beyond throughput; a rank of two devices sends half from each."""
    rates = {"deepep-low-latency": 1.0, "deepep-normal": 1000.0}

    def predict(work, device):
        return SimpleNamespace(time_s=np.asarray(work.tokens) * rates[work.library])

    monkeypatch.setattr(dispatch.network, "predict", predict)
    deployment = replace(deploy(MIXTRAL, tp=2, dp=4, ep=8), dispatcher="deepep")
    assert ways(deployment, decodes(2048, 2050))["combine"] == [1024 * 32, 1025 * 1000 * 32]


def test_contexts_that_every_rank_keeps(deploy, bytes_are_seconds, monkeypatch):
    """16 devices in nodes of 8: of the ways half leave the device and a quarter the node. Between nodes 16/8 of a plain
    message's quarter, inside 8/7 of the other quarter; one of two experts' sums comes back; the new context of four
    layers' keys and values comes once a step, from all ranks."""
    found = SimpleNamespace(is_copied=True, leaves_device_frac=0.5, leaves_node_frac=0.25, fullest_ratio=1.5)
    monkeypatch.setattr(dispatch, "placed", lambda deployment: found)
    deployment = deploy(MIXTRAL, dp=16, ep=8)
    copies = 64 * 2 * 4096 * 2 * 32
    context = cache_of(deployment).bytes_per_token / 16
    got = ways(deployment, decodes(64))
    assert got["dispatch"] == pytest.approx([copies * max(0.25 * 16 / 8, 0.25 * 8 / 7)])
    assert got["combine"] == pytest.approx([copies / 2])
    assert got["copied context"] == pytest.approx([64 * context * 16])
    assert bytes_are_seconds == [*(("all_to_all", n, 1) for n in (16, 8, 16)), ("all_gather", 16, 1)]
    found.leaves_device_frac = 0.75
    assert ways(deployment, decodes(64))["dispatch"] == pytest.approx([copies * max(0.5, 0.5 * 8 / 7)])
    found.leaves_device_frac = found.leaves_node_frac = 0.0
    assert ways(deployment, decodes(64))["dispatch"] == [0]


# --- words


def test_words_for_the_ways():
    for name, others in SPELLINGS.items():
        assert {get_dispatcher(word) for word in (name, *others, name.upper(), name.replace("-", "_"))} == {name}
    assert get_dispatcher(" ") == ""
    assert get_dispatcher("DeepEP high throughput") == "deepep-normal"
    for word, says in ((UNMEASURED[0], "nobody has measured"), ("carrier-pigeon", "carrier-pigeon")):
        with pytest.raises(Exception, match=says):
            get_dispatcher(word)


def test_what_is_said_of_the_way(deploy):
    alone = deploy(MIXTRAL, tp=8)
    assert dispatcher_note(alone) == ""
    assert "deepep is not used" in dispatcher_note(replace(alone, dispatcher="deepep"))
    shared = deploy(MIXTRAL, dp=8, ep=8)
    own = dispatcher_note(shared)
    assert own.startswith(f"all2all_backend: {shared.engine.dispatcher}")
    fact = shared.engine.facts.get("dispatcher")
    assert ("(" in own) == bool(fact and fact.at and fact.value == shared.engine.dispatcher)
    bare = replace(shared, engine=replace(shared.engine, facts={}))
    assert dispatcher_note(bare) == f"all2all_backend: {shared.engine.dispatcher}"
    assert dispatcher_note(replace(shared, dispatcher="deepep")) == ""
    cut = deploy(MIXTRAL, tp=2, dp=4, ep=4)
    note = dispatcher_note(replace(cut, dispatcher="deepep"))
    assert note == "all2all_backend: all-gather, not deepep; experts are cut over 2 devices"


def test_copies_that_gain_nothing_are_told(deploy):
    copied = replace(deploy(MIXTRAL, dp=8, ep=8), num_redundant_experts=8)
    assert redundant_note(copied) == ""
    assert "even already" in redundant_note(replace(copied, expert_loads=Popularity(is_dealt=True)))
    assert redundant_note(replace(copied, expert_loads=Popularity())) == ""
    assert redundant_note(replace(copied, num_redundant_experts=0, expert_loads=Popularity(is_dealt=True))) == ""


# --- programs over two memories


def test_operations_of_a_transformer():
    """One layer 64 wide, 4 heads, 2 sequences of 8: 16 rows, 512 scores; words of 2 bytes."""
    t, h, scores = 16, 64, 2 * 4 * 8 * 8
    made = {o.name: o for o in transformer(1, h, 4, 2, 8)}
    found = {n: (o.out_bytes / 2, o.flops, sum(o.weights.values()) / 2, o.reads) for n, o in made.items()}
    assert found == {
        "in": (t * h, 0, 0, ()),
        "0.qkv": (3 * t * h, 2 * t * h * 3 * h, 3 * h * h, ("in",)),
        "0.scores": (scores, 2 * scores * 16, 0, ("0.qkv",)),
        "0.softmax": (scores, 8 * scores, 0, ("0.scores",)),
        "0.mixed": (t * h, 2 * scores * 16, 0, ("0.softmax", "0.qkv")),
        "0.out": (t * h, 2 * t * h * h, h * h, ("0.mixed", "in")),
        "0.up": (4 * t * h, 2 * t * h * 4 * h, 4 * h * h, ("0.out",)),
        "0.down": (t * h, 2 * t * h * 4 * h, 4 * h * h, ("0.up", "0.out")),
    }
    assert [o.reads for o in transformer(2, h, 4, 2, 8) if o.name == "1.qkv"] == [("0.down",)]


def test_operations_of_convolutions():
    """Pictures of 8 x 8, 3 of them: stages of 4 and 6 channels at 4 x 4 and 2 x 2, two blocks each."""
    made = {o.name: o for o in convolutions((4, 6), 2, 8, 3)}
    found = {n: (o.out_bytes / 2, o.flops, sum(o.weights.values()) / 2, o.reads) for n, o in made.items()}

    def made_by(pixels, into, deep, *reads):
        return pixels * deep, 2 * pixels * 9 * into * deep, 9 * into * deep, reads

    assert found == {
        "in": (3 * 3 * 64, 0, 0, ()),
        "0.0.a": made_by(48, 3, 4, "in"),
        "0.0.b": made_by(48, 4, 4, "0.0.a", "in"),
        "0.1.a": made_by(48, 4, 4, "0.0.b"),
        "0.1.b": made_by(48, 4, 4, "0.1.a", "0.0.b"),
        "1.0.a": made_by(12, 4, 6, "0.1.b"),
        "1.0.b": made_by(12, 6, 6, "1.0.a", "0.1.b"),
        "1.1.a": made_by(12, 6, 6, "1.0.b"),
        "1.1.b": made_by(12, 6, 6, "1.1.a", "1.0.b"),
    }


def test_gradients_read_what_was_made_and_read():
    forward = transformer(1, 64, 4, 2, 8)
    back = {o.name: o for o in with_backward(forward)[len(forward) :]}
    assert list(back) == [f"d0.{n}" for n in ("down", "up", "out", "mixed", "softmax", "scores", "qkv")]
    made = {o.name: o for o in forward}
    for name, o in back.items():
        of = made[name[1:]]
        assert (o.flops, o.weights, o.out_bytes) == (2 * of.flops, of.weights, made[of.reads[0]].out_bytes)
    assert back["d0.down"].reads == ("0.down", "0.up", "0.out")
    assert back["d0.up"].reads == ("d0.down", "0.out")


# --- long contexts and whole prompts


def prompt(tokens):
    one, none = np.array([1]), np.array([0])
    new = np.array([tokens])
    return Batch(
        prompt_sequences=one,
        prompt_tokens=new,
        prompt_context_tokens=new,
        decode_sequences=none,
        decode_context_tokens=none,
    )


def decoding(sequences, context):
    none = np.array([0])
    return replace(
        prompt(0),
        prompt_sequences=none,
        decode_sequences=np.array([sequences]),
        decode_context_tokens=np.array([context]),
    )


def test_a_long_context_by_hand(deploy):
    """Half of 8192 tokens are kept, at half of their bytes: decodes read as if they were 2048."""
    deployment = deploy(model="llama-3.1-8b", tp=2, pp=2)
    half = Compression(kept_tokens_frac=0.5, kept_bytes_frac=0.5)
    found, memory = long_context(deployment, 8192, half), memory_of(deployment)
    each = cache_of(deployment).bytes_per_token * 4096 / 2
    fits = min(memory.max_num_seqs, int(memory.kv_capacity_bytes // each))
    assert found.concurrency == fits
    assert found.kv_bytes == pytest.approx(each * 2 * 2)
    steps = prompt(8192), decoding(fits, 2048), decoding(1, 2048)
    want = [float(step(deployment, b).time_s[0]) for b in steps]
    want[0] += compressing_s(deployment, half, 8192)
    assert [found.prefill_s, found.decode_step_s, found.one_decode_step_s] == pytest.approx(want)
    plain = long_context(deployment, 8192)
    assert plain.kv_bytes == pytest.approx(4 * found.kv_bytes)
    link = host_link(deployment)
    for one in (plain, found):
        assert one.context_switch_s == pytest.approx(2 * (link.latency_s + one.kv_bytes / link.bandwidth_bytes_per_s))


def test_the_longest_prompts_that_memory_takes(deploy):
    deployment = deploy(model="llama-3.1-8b")
    longest = longest_prompt_tokens(deployment, 2, has_all_logits=False)

    def fits(tokens, rows):
        memory = memory_of(replace(deployment, max_num_batched_tokens=2 * tokens, max_num_seqs=rows))
        return hasattr(memory, "kv_capacity_bytes") and 2 * tokens * 131072 <= memory.kv_capacity_bytes

    assert fits(longest, 2)
    assert not fits(longest + 1, 2)
    every = longest_prompt_tokens(deployment, 2)
    assert fits(every, 2 * every)
    assert not fits(every + 1, 2 * every + 2)
    assert every < longest
    assert longest_prompt_tokens(replace(deployment, model=get_model("llama-3.1-70b")), 2) == 0
    moved = 2 * 3 * 100 * 131072
    assert growing_s(deployment, 3, 100.0) == pytest.approx(moved / 3.35e12, rel=0.01)


def test_logits_of_a_prompt_are_of_all_its_tokens_or_of_the_last(deploy, monkeypatch):
    """Three prompts of 10 tokens, of which memory takes no more: 30 rows, or 3."""
    from orrery.execution import whole_prompts

    asked = set()

    def memory(deployment):
        asked.add((deployment.max_num_batched_tokens, deployment.max_num_seqs))
        fits = deployment.max_num_batched_tokens <= 30
        return SimpleNamespace(kv_capacity_bytes=1e18 if fits else -1.0)

    monkeypatch.setattr(whole_prompts, "memory_of", memory)
    for has_all_logits, rows in ((True, 30), (False, 3)):
        asked.clear()
        found = longest_prompt_tokens(deploy(model="llama-3.1-8b"), 3, has_all_logits=has_all_logits)
        assert found == 10
        assert (30, rows) in asked


def test_norms_as_a_share_of_what_waits_for_memory(deploy):
    deployment = deploy(model="llama-3.1-8b")
    parts = step(deployment, prompt(256)).parts
    waiting = [p for p in parts if p.once and p.roofs_s(0)[1] == max(p.roofs_s(0))]
    norms = sum(float(p.time_s[0]) for p in waiting if p.name == "norms")
    assert norm_frac(deployment, 256) == pytest.approx(norms / sum(float(p.time_s[0]) for p in waiting))
    assert norm_frac(deployment, 0) == 0


# --- a share of a device


def test_a_share_of_the_units(deploy):
    """Units draw 32768 bytes each 650 ns; what a part of them can draw of the memory is theirs."""
    deployment = deploy(model="llama-3.1-8b")
    device = deployment.cluster.device
    saturated = device.memory_bandwidth_bytes_per_s / (device.num_compute_units * 32768 / 650e-9)
    assert saturation_frac(device) == pytest.approx(min(1, saturated))
    part = with_share(deployment, 0.25).cluster.device
    assert part.num_compute_units == 33
    assert part.vector_flops_per_s == device.vector_flops_per_s / 4
    assert part.dense_flops_per_s == {n: f / 4 for n, f in device.dense_flops_per_s.items()}
    width = min(1, 0.25 / saturation_frac(device))
    assert part.memory_bandwidth_bytes_per_s == pytest.approx(width * device.memory_bandwidth_bytes_per_s)
    narrow = with_share(deployment, 0.25, bandwidth_frac=0.125).cluster.device
    assert narrow.memory_bandwidth_bytes_per_s == device.memory_bandwidth_bytes_per_s / 8
    for key, before in device.calibrations.items():
        after = narrow.calibrations[key].constants
        for name, value in before.constants.items():
            ratio = (
                2
                if name in ("feed_ratio", "head_feed_ratio")
                else 0.5
                if name in ("start_keys", "head_start_keys", "start_latents")
                else 1
            )
            assert after[name] == pytest.approx(ratio * value)
    assert with_share(deployment, 1.0) is deployment
    assert with_share(deployment, 0.999) is deployment
    assert with_share(deployment, 1e-6).cluster.device.num_compute_units == 1
    for wrong in (0.0, 1.1):
        with pytest.raises(Exception, match="units_frac"):
            with_share(deployment, wrong)
        with pytest.raises(Exception, match="bandwidth_frac"):
            with_share(deployment, 0.5, bandwidth_frac=wrong)


def test_two_processes_ask_for_more_than_the_memory_has(deploy):
    deployment = deploy(model="llama-3.1-8b")
    device, done = deployment.cluster.device, step(deployment, decodes(8))
    moved = sum(p.count * float(p.once.bytes[0]) for p in done.parts if p.once)
    asked = moved / (float(done.time_s[0]) * device.memory_bandwidth_bytes_per_s)
    assert memory_demand_frac(device, done, 0) == pytest.approx(asked)


# --- a vision tower


def test_activations_of_a_tower_move_two_words_of_three(deploy):
    """4304 columns of 1152: half of them on each of two devices, two thirds of which are moved; two norms a layer."""
    images = Images(prompt_tokens=452, sequences=1, patches=784)
    deployment = replace(deploy(model="Qwen/Qwen3-VL-8B-Instruct", tp=2), images=images)
    parts = {p.name: p for p in step(deployment, prompt(452)).parts if p.group == "vision tower"}
    assert parts["norms"].count == 2 * 27
    assert parts["activations"].count == 27
    assert float(parts["activations"].once.bytes[0]) == pytest.approx(784 * (2 * 2152 // 3) * 3 * 2)
