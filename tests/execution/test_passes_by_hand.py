"""Passes in halves, guesses checked, weights that come late, what binds a step, and an eager framework's layers."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from batches import decodes

from orrery import kernels
from orrery.catalog.devices import get_device
from orrery.catalog.engines import get_engine
from orrery.catalog.models import get_model
from orrery.execution import overlapped as overlaps
from orrery.execution.batch import Part, decodes_of, part, slower
from orrery.execution.draft_head import drafting_s, head_of, with_drafting
from orrery.execution.draft_trees import tried_on, uneven_heads
from orrery.execution.eager_layers import kernels_s, layer_of
from orrery.execution.explain import bound_by, explain, limit_of
from orrery.execution.layout import DraftHead, WeightOffload
from orrery.execution.overlapped import SHARED_PARTS, Pass, halved, overlapped, overlapped_s
from orrery.execution.speculation import of_head
from orrery.execution.step import Step, step
from orrery.execution.surface._kernel import MATRIX_WORK, MEMORY, MEMORY_WORK, NETWORK, TIME
from orrery.execution.surface.channels import channels
from orrery.execution.weight_offload import fetches_s
from orrery.kernels.elementwise.rule import calibration
from orrery.kernels.energy import weighted_s
from orrery.kernels.ops import AttentionPrefill, Gemm, Timing
from orrery.models.model import Block, RecurrentMixer, SoftmaxAttention

# --- overlaps


def whole_and_half(deployment, batch):
    """What an overlap is told of a step and its halves."""
    parts = (step(deployment, x).parts for x in (batch, halved(batch)))
    return overlaps.pass_of(deployment, *parts, batch.num_tokens.size)


def times(deployment, batch, chosen=lambda p: True):
    """(all, network) seconds of a step's parts."""
    parts = [p for p in step(deployment, batch).parts if chosen(p)]
    zero = np.zeros(batch.num_tokens.size)
    return sum((p.time_s for p in parts), zero), sum((p.time_s for p in parts if p.group == "network"), zero)


def test_what_two_halves_take_beyond_the_whole(deploy):
    """2 x 32 sequences for 64: collectives first, kernels are the rest."""
    deployment, batch = deploy(tp=4), decodes(64)
    found = whole_and_half(deployment, batch)
    (whole_s, network_s), (half_s, half_network_s) = times(deployment, batch), times(deployment, halved(batch))
    assert found.total_s == pytest.approx(whole_s)
    assert found.network_s == pytest.approx(network_s)
    more_network_s = 2 * half_network_s - network_s
    assert found.halves_network_extra_s == pytest.approx(more_network_s)
    assert found.split_extra_s == pytest.approx(2 * half_s - whole_s - more_network_s)
    assert found.halves_s == pytest.approx(2 * half_s)
    assert found.memory_s == pytest.approx(
        sum(p.time_s for p in step(deployment, batch).parts if p.once and p.once.memory_s[0] > p.once.compute_s[0])
    )
    assert min(float(x[0]) for x in (found.split_extra_s, found.halves_network_extra_s, found.network_s)) > 0


def passes(deployment, **columns):
    names = ("total_s", "network_s", "memory_s", "split_extra_s", "halves_network_extra_s")
    return Pass(deployment=deployment, **{n: np.array(columns.get(n, [0.0]), float) for n in names})


def stub(monkeypatch, rule, *knobs):
    """A rule of the test's own, with some knobs by name."""
    technique = SimpleNamespace(rule=rule)
    monkeypatch.setattr(overlaps, "OVERLAPS", SimpleNamespace(get=lambda name: technique))
    monkeypatch.setattr(overlaps, "device_knobs", lambda technique, deployment: {"num_units": 132.0})
    monkeypatch.setattr(overlaps, "fields", lambda knobs: [SimpleNamespace(name=n) for n in technique.names])
    monkeypatch.setattr(overlaps, "knob_array", lambda technique, **knobs: knobs)
    technique.names, technique.knobs = knobs, None


def test_every_pass_takes_its_best_number_of_nano_batches(deploy, monkeypatch):
    """The second pass is best in three, the first in eight; where somebody says how many, that many."""
    stub(monkeypatch, lambda *row: abs(row[0] - row[6]["num_batches"]) + row[5] + row[6]["num_units"], "num_batches")
    done = passes(
        deploy(), total_s=[9, 3], network_s=[0, 0], memory_s=[0, 0], split_extra_s=[0, 0], halves_network_extra_s=[0, 0]
    )
    assert overlapped_s(done, "any").tolist() == [80 + 132 + 1, 80 + 132]
    assert overlapped_s(done, "any", num_batches=2.0, num_units=1.0).tolist() == [80 + 1 + 7, 80 + 1 + 1]


def test_a_rule_is_told_a_pass_in_its_order(deploy, monkeypatch):
    stub(monkeypatch, lambda *row: sum(10.0**-i * x for i, x in enumerate(row[:5])))
    done = passes(deploy(), total_s=[5], network_s=[4], memory_s=[3], split_extra_s=[2], halves_network_extra_s=[1])
    assert overlapped_s(done, "any") == pytest.approx([5.4321])


def test_parts_of_a_step_shrink_in_proportion(deploy, monkeypatch):
    """Three quarters of every part, of the step and of its slowest stage."""
    stub(monkeypatch, lambda total, *rest: 0.75 * total)
    deployment, batch = replace(deploy(tp=4, pp=2), overlap="any"), decodes(64, 0)
    plain = step(deployment, batch)
    found = overlapped(deployment, plain, batch, step)
    for p, before in zip(found.parts, plain.parts, strict=True):
        np.testing.assert_allclose(p.time_s, 0.75 * before.time_s)
    np.testing.assert_allclose(found.time_s, 0.75 * plain.time_s)
    np.testing.assert_allclose(found.stage_s, 0.75 * plain.stage_s)
    for name in ("", "sequential"):
        assert overlapped(replace(deployment, overlap=name), plain, batch, step) is plain


def test_an_overlap_is_told_the_step_and_its_half(deploy, monkeypatch):
    seen = []
    stub(monkeypatch, lambda *row: seen.append(row[:5]) or row[0])
    deployment, batch = replace(deploy(tp=4), overlap="any"), decodes(64)
    overlapped(deployment, step(deployment, batch), batch, step)
    want = whole_and_half(deployment, batch)
    columns = (want.total_s, want.network_s, want.memory_s, want.split_extra_s, want.halves_network_extra_s)
    assert seen == [pytest.approx([float(x[0]) for x in columns])]


def test_experts_that_ranks_share_stay_in_turn(deploy, monkeypatch):
    stub(monkeypatch, lambda total, *rest: 0.5 * total)
    deployment = replace(deploy("mixtral-8x7b", dp=4, ep=4), overlap="any")
    batch = decodes(64)
    plain = step(deployment, batch)
    found = overlapped(deployment, plain, batch, step)
    shares = {p.name: float(p.time_s[0] / before.time_s[0]) for p, before in zip(found.parts, plain.parts, strict=True)}
    assert {name: share for name, share in shares.items() if name in SHARED_PARTS} == dict.fromkeys(SHARED_PARTS, 1)
    assert {round(share, 12) for name, share in shares.items() if name not in SHARED_PARTS} == {0.5}
    assert found.time_s == pytest.approx(sum(p.time_s for p in found.parts))


# --- weights that come late


def test_a_step_waits_for_what_its_kernels_do_not_hide(deploy):
    """All layers from the host: the step takes as long as their copies; a step without tokens fetches nothing."""
    plain = deploy(model="llama-3.1-8b")
    late = replace(plain, weight_offload=WeightOffload(layers_frac=1.0, where="host"))
    found = step(late, decodes(8, 0))
    assert found.time_s.tolist() == pytest.approx([fetches_s(late), 0])
    waits = found.parts[-1]
    assert (waits.name, waits.group) == ("weights from host", "network")
    assert waits.time_s[0] == pytest.approx(fetches_s(late) - step(plain, decodes(8)).time_s[0])
    few = replace(plain, weight_offload=WeightOffload(layers_frac=0.01, where="host"))
    assert step(few, decodes(4096)).time_s == pytest.approx(step(plain, decodes(4096)).time_s)


# --- guesses


def test_a_tree_is_guessed_level_by_level(deploy):
    """2 and 6 nodes with chances of 0.8 and 0.5 under a model of 8B: a step checks 8, on average 2.2 tokens hold. The
    guesses begin behind at most 2 accepted ones; the second level passes the 2 nodes of the first."""
    small = get_model("llama-3.1-8b")
    tree = DraftHead(method="tree", acceptance_fracs=(0.8, 0.5), level_nodes=(2, 6), draft_model=small)
    deployment = replace(deploy(tp=4, pp=2), draft_head=tree)
    drafts = head_of(deployment)
    assert (drafts.model, drafts.layout.pp, drafts.layout.tp, drafts.draft_head) == (small, 1, 4, None)
    batch = decodes(4)
    guessing = [replace(batch, guesses=2), replace(batch, guesses=1)]
    want = step(deployment, replace(batch, guesses=8)).time_s + sum(step(drafts, b).time_s for b in guessing)
    assert with_drafting(deployment, batch).time_s == pytest.approx(want)


def test_contexts_that_are_longer_on_average(deploy):
    head = DraftHead(method="tree", acceptance_fracs=(0.5,), level_nodes=(3,), ahead_tokens=99.6)
    deployment, batch = replace(deploy(), draft_head=head), decodes(4)
    ahead = replace(batch, guesses=3, decode_context_tokens=batch.decode_context_tokens + 100)
    assert with_drafting(deployment, batch).time_s == step(deployment, ahead).time_s
    assert drafting_s(deployment, 1000, 8) == (0.0, 0.0)


def test_guessing_is_a_line_through_one_sequence_and_many(deploy):
    deployment = replace(deploy(), draft_head=DraftHead(method="eagle", acceptance_fracs=(0.8, 0.5)))
    batch = decodes_of(np.array([1, 9]), 1000)
    checked, alone, small = replace(batch, guesses=2), batch, head_of(deployment)
    one_s, many_s = step(small, checked).time_s + step(small, alone).time_s
    base_s, slope_s = drafting_s(deployment, 1000, 9)
    assert slope_s == pytest.approx((many_s - one_s) / 8)
    assert base_s + slope_s == pytest.approx(one_s)
    law = of_head(deployment, context_tokens=1000, sequences=9)
    assert (law.draft_base_s, law.draft_s_per_sequences) == pytest.approx((base_s / 2, slope_s / 2))
    tree = replace(deployment.draft_head, method="tree", level_nodes=(2, 3), draft_model=get_model("llama-3.1-8b"))
    deployment = replace(deployment, draft_head=tree)
    base_s, slope_s = drafting_s(deployment, 1000, 9)
    law = of_head(deployment, context_tokens=1000, sequences=9)
    assert (law.draft_base_s, law.draft_s_per_sequences) == pytest.approx((base_s / 2, slope_s / 2))
    assert (law.checked_tokens, law.level_fracs) == (5, (0.8, 0.5))


def test_a_line_through_one_sequence_has_a_second_point(deploy):
    deployment = replace(deploy(), draft_head=DraftHead(method="eagle", acceptance_fracs=(0.8,)))
    one_s, two_s = step(head_of(deployment), replace(decodes_of(np.array([1, 2]), 1000), guesses=1)).time_s
    assert drafting_s(deployment, 1000, 1) == pytest.approx((one_s - max(0, two_s - one_s), max(0, two_s - one_s)))


def test_an_experts_model_gets_a_dense_head(deploy):
    """Mixtral: two of eight experts, 14,336 wide, make a dense part of 28,672; the projection takes two states."""
    deployment = replace(deploy("mixtral-8x7b"), draft_head=DraftHead(method="eagle", acceptance_fracs=(0.8,)))
    (block,) = head_of(deployment).model.blocks
    shapes = {x.name: (x.in_features, x.out_features) for x in block.linears}
    assert block.experts is None
    assert block.activation_elements == 28672
    assert shapes["gate_up"] == (4096, 2 * 28672)
    assert shapes["down"] == (28672, 4096)
    assert shapes["draft projection"] == (2 * 4096, 4096)
    three = replace(deployment, draft_head=DraftHead(method="eagle3", acceptance_fracs=(0.8,)))
    assert head_of(three).model.blocks[0].linears[0].in_features == 3 * 4096


def test_trees_that_were_tried(deploy):
    """Tokens of a step over its time, over those without guesses."""
    heads = [DraftHead(method="tree", acceptance_fracs=(0.5,), level_nodes=(n,)) for n in (1, 400)]
    found = tried_on(deploy(), heads, sequences=16, context_tokens=500)
    (plain,) = tried_on(
        deploy(),
        [DraftHead(method="tree", acceptance_fracs=(0.0,), level_nodes=(1,))],
        sequences=16,
        context_tokens=500,
    )
    assert found[1].step_s > found[0].step_s > 0
    assert found[0].speedup_ratio == pytest.approx(1.5 * plain.speedup_ratio)
    assert plain.speedup_ratio <= 1
    none = tried_on(deploy(), heads[:1], sequences=0, context_tokens=0)
    one = tried_on(deploy(), heads[:1], sequences=1, context_tokens=1)
    assert none == one


def test_heads_that_devices_cannot_share():
    model = get_model("llama-3.1-8b")
    assert [uneven_heads(model, tp) for tp in (1, 2, 3, 32, 64)] == [0, 0, 32, 0, 32]


# --- what binds


def one(group="mlp", **more):
    """Two kernels of 4 s each in the second entry of a batch; the first has none."""
    once = {"time_s": 4.0, "compute_s": 1.0, "memory_s": 2.0, "overhead_s": 0.5, "flops": 6.0, "bytes": 3.0}
    columns = {name: np.array([0.0, more.pop(name, value)]) for name, value in once.items()}
    return replace(part("p", group, Timing(**columns), 2.0, "gemm", "bf16"), **more)


def test_roofs_and_work_of_all_repetitions():
    p = one()
    assert p.time_s.tolist() == [0, 8]
    assert p.roofs_s(1) == (2, 4, 1)
    assert replace(p, is_launched=False).roofs_s(1) == (2, 4, 0)
    assert p.work(1) == (12, 6)
    bare = Part(name="x", group="gaps", time_s=np.array([1.0]), op="gap")
    assert (bare.roofs_s(0), bare.work(0)) == ((0, 0, 0), (0, 0))
    engine = replace(get_engine("vllm"), memory_ratio=3.0, compute_ratio=5.0)
    assert slower(bare, engine) is bare
    assert slower(p, engine).time_s.tolist() == [0, 24]
    assert slower(one(compute_s=2.5), engine).time_s[1] == 40


@pytest.mark.parametrize(("origin", "memory_s"), [("device", 8), ("generation", 8), ("any", 24)])
def test_what_is_said_of_kernels_that_nobody_measured_says_nothing_of_measured_ones(origin, memory_s):
    """On a generation that no engine was measured on: bytes of measured kernels take what they took, operations run at
    the clock of a step all the same."""
    engine = replace(get_engine("vllm"), memory_ratio=3.0, compute_ratio=5.0, scales_measured=False)
    calibration = SimpleNamespace(origin=origin)
    p, bound = (replace(one(compute_s=s), calibration=calibration) for s in (0.5, 2.5))
    assert slower(p, engine).time_s[1] == memory_s
    assert slower(bound, engine).time_s[1] == 40
    assert slower(p, replace(engine, scales_measured=True)).time_s[1] == 24


def test_ratios_of_measured_generations_hold_for_all_kernels():
    for name, is_measured in (("h100-sxm", True), ("mi355x", False), ("tpu-v7x", False)):
        assert get_engine("vllm", "", get_device(name)).scales_measured == is_measured


def test_sizes_outside_what_was_measured():
    rule = SimpleNamespace(range={"m": (1.0, 64.0), "k": (8.0, 16.0)})
    asked = one(calibration=rule, sizes={"m": 64.0, "n": 1e9})
    assert asked.outside() == ""
    assert replace(asked, sizes={"m": 65.0}).outside() == "m 65, measured 1 to 64"
    assert replace(asked, sizes={"m": 2.0, "k": 7.0}).outside() == "k 7, measured 8 to 16"
    assert one(sizes={"m": 1e9}).outside() == ""


def test_the_resource_that_takes_most():
    assert bound_by(one(), 1) == "memory"
    assert bound_by(one(compute_s=3.0), 1) == "compute"
    assert bound_by(one(overhead_s=2.5), 1) == "overhead"
    assert bound_by(one(group="network"), 1) == "network"
    assert bound_by(one(group="gaps"), 1) == "overhead"
    parts = (one(), one(compute_s=3.0, time_s=1.0), one(compute_s=3.0, time_s=2.0))
    whole = Step(parts=parts, time_s=np.array([0.0, 14.0]), stage_s=np.array([0.0, 14.0]))
    assert limit_of(whole, 1) == "memory"
    assert limit_of(replace(whole, parts=(*parts, one(compute_s=3.0, time_s=1.5))), 1) == "compute"
    assert limit_of(replace(whole, parts=()), 1) == ""


def test_a_step_as_a_tree_of_costs(deploy):
    """Blocks with what they are made of; what takes no time is left out."""
    facts = get_device("h100-sxm").facts
    rule = SimpleNamespace(fact=facts["memory_capacity_bytes"], range={})
    tiny = one(time_s=0.1, group="attention")
    parts = (one(calibration=rule), one(group="network", time_s=1.0), tiny, one(time_s=0.0, group="head"))
    whole = Step(parts=parts, time_s=np.array([0.0, 10.2]), stage_s=np.array([0.0, 10.2]))
    found = explain(deploy(), whole, 1, "step", 7.0)
    assert [c.name for c in found.parts] == ["mlp", "network", "attention"]
    assert (found.time_s, found.energy_j) == (pytest.approx(10.2), 7)
    assert (found.flops, found.bytes) == (36, 18)
    assert explain(deploy(), whole, 0, "step").parts == ()
    leaf, sent, bare = (group.parts[0] for group in found.parts)
    assert (leaf.time_s, leaf.exposed_s, leaf.flops, leaf.bytes) == (8, 8, 12, 6)
    known = [facts[n] for n in ("memory_bandwidth_bytes_per_s", "dense_bf16_flops_per_s")]
    assert leaf.because == (*known, rule.fact)
    assert bare.because == tuple(known)
    assert sent.because == tuple(f for n, f in facts.items() if n.startswith("scaleup_"))


# --- an eager framework


def test_layers_as_an_eager_framework_launches_them():
    """Four products, attention, and 36 kernels that share 75 passes over the stream; the same in every layer."""
    model, device = get_model("llama-3.1-8b"), get_device("a100-sxm-80gb")
    found = kernels_s(model, device, 2, 96).reshape(32, 41)
    shapes = [(4096, 6144), (4096, 4096), (4096, 28672), (14336, 4096)]
    products = [kernels.predict(Gemm(m=192, n=n, k=k, format="bf16"), device) for k, n in shapes]
    attention = AttentionPrefill(
        batch=2,
        query_tokens=96,
        context_tokens=96,
        num_heads=32,
        format="bf16",
        num_kv_heads=8,
        head_size=128,
        kv_format="bf16",
        is_causal=True,
    )
    busy = [float(x.time_s) for x in (*products, kernels.predict(attention, device))]
    frac = calibration("add", device).constants["bandwidth_frac"]
    streamed_s = 75 * 192 * 4096 * 2 / (frac * device.memory_bandwidth_bytes_per_s)
    want = [*busy, *[streamed_s / 36] * 36]
    np.testing.assert_allclose(found, np.tile(want, (32, 1)), rtol=1e-12)


def test_encoders_and_mixers_that_are_not_counted():
    model = get_model("llama-3.1-8b")
    attention = model.blocks[0].mixer
    assert isinstance(attention, SoftmaxAttention)

    def with_mixer(mixer) -> Block:
        return replace(model.blocks[0], mixer=mixer)

    seen = with_mixer(replace(attention, is_causal=False))
    assert layer_of(replace(model, blocks=(seen,))).num_launches == 41 - 10 - 2  # no rotation, no cache
    assert layer_of(replace(model, blocks=(seen, model.blocks[0]))).num_launches == 41
    state = RecurrentMixer(
        kind="mamba2", num_heads=4, state_elements=64, conv_elements=12, flops_per_token=96.0, width=16
    )
    mixed = replace(model, blocks=(model.blocks[0], with_mixer(state)))
    with pytest.raises(Exception, match="every layer is softmax attention"):
        layer_of(mixed)
    with pytest.raises(Exception, match="every layer is softmax attention"):
        kernels_s(mixed, get_device("a100-sxm-80gb"), 1, 8)


def test_channels_add_up_parts(deploy):
    bare = Part(name="gap", group="gaps", time_s=np.array([1.0, 1.0]), op="gap")
    parts = [one(), one(group="network", compute_s=2.0), bare]
    found = channels(deploy(), parts, 2)
    assert found[:, (TIME, NETWORK, MEMORY)].tolist() == [[1, 0, 0], [17, 8, 8]]
    once = weighted_s(get_device("h100-sxm"), "bf16", np.array([0.0, 24.0]), np.array([0.0, 12.0]))
    np.testing.assert_allclose(found[:, (MATRIX_WORK, MEMORY_WORK)].T, once)
