"""Layers of several kinds put together, what is made again, pieces of products, and exchanges, on the toy machine."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from toy_layer import (
    COMPRESSED,
    DENSE,
    EXPERTS,
    LATENT,
    LINEARS,
    RECURRENT,
    ROUTED,
    SOFTMAX,
    cut,
    job_of,
    linear,
    parts,
)

from orrery.catalog.devices import get_device
from orrery.execution.train import exchanges, expert_exchange, hidden, passes
from orrery.execution.train.again import again_of
from orrery.execution.train.cut import adapted, held, is_latent, product
from orrery.execution.train.experts import activation_s, expert_streams, expert_times
from orrery.execution.train.job import Islands, decoding, jobs_by_block
from orrery.execution.train.modules import MODULES
from orrery.execution.train.placement import standing
from orrery.execution.train.units import units
from orrery.hardware.cluster import Cluster
from orrery.kernels.ops import Popularity

pytestmark = pytest.mark.usefixtures("asked")

KIND_S = {"all_reduce": 1.0, "all_gather": 10.0, "reduce_scatter": 100.0, "send_recv": 1000.0, "all_to_all": 10000.0}


@pytest.fixture
def sent(monkeypatch):
    """A message takes so many seconds a byte by its kind, nothing in groups of one; groups are kept."""
    found = []

    def collective_s(job, kind, ranks, stride, message_bytes):
        found.append((kind, ranks.tolist(), np.broadcast_to(stride, ranks.shape).tolist()))
        return np.where(ranks > 1, KIND_S[kind] * message_bytes, 0.0)

    for file in (exchanges, expert_exchange, hidden):
        monkeypatch.setattr(file, "collective_s", collective_s, raising=False)
    return found


def of_kinds(
    task="pretrain", placement="", loads=None, loss_tokens=0, decoder_seq_len=8, encoder=(DENSE,), **framework
):
    """One encoder layer of 16 tokens, then two dense ones and a routed one of 8; 2 sequences. The embedding has 160
    parameters, the tower 5, the last norm 8."""
    job = job_of(task=task, **framework)
    model = replace(
        job.model,
        encoder=encoder,
        blocks=(replace(DENSE, count=2), ROUTED),
        embedding_parameters=160,
        tower_parameters=5,
        other_parameters=8,
    )
    return replace(
        job,
        model=model,
        decoder_seq_len=decoder_seq_len,
        expert_placement=placement,
        expert_loads=loads,
        loss_tokens=loss_tokens,
    )


DENSE_WORDS, ROUTED_WORDS = 8 * 16 + 8 * 8 + 8 * 24 + 12 * 8, 8 * 16 + 8 * 8 + 8 * 4
"""Weights of a dense layer's products, and of a routed one's without its experts."""
EACH = 3 * 8 * 10
"""Weights of an expert."""


def one(values):
    return float(np.asarray(values)[0])


def test_the_average_layer_has_every_kind_in_its_proportion():
    """32 tokens in the encoder, 16 behind it. Experts: every token meets two of them."""
    found = units(of_kinds(), cut())
    assert found.num_layers == 4
    assert [count for count, _ in found.kinds] == [1, 2, 1]
    encoder, dense, routed = 2 * 32 * DENSE_WORDS, 2 * 16 * DENSE_WORDS, 2 * 16 * ROUTED_WORDS
    assert [one(layer.products.forward_s) for _, layer in found.kinds] == [encoder, dense, routed]
    mean = (encoder + 2 * dense + routed) / 4
    passes = found.layer.products
    assert [one(x) for x in (passes.forward_s, passes.input_gradient_s, passes.weight_gradient_s)] == [mean] * 3
    experts = 2 * 16 * 2 * EACH
    assert one(found.layer.forward_flops) == mean + experts / 4
    assert one(found.layer.experts.forward_s) == one(found.kinds[2][1].experts.forward_s) / 4 > 0


def test_parameters_of_the_average_layer_and_of_both_ends():
    """Norms have 16 in every layer; on two devices products are halved, norms and the router are not."""
    found = units(of_kinds(), cut())
    assert one(found.layer.dense_parameters) == (3 * (DENSE_WORDS + 16) + ROUTED_WORDS + 16) / 4
    assert one(found.layer.expert_parameters) == 4 * EACH / 4
    assert one(found.layer.trained_parameters) == (3 * (DENSE_WORDS + 16) + ROUTED_WORDS + 16 + 4 * EACH) / 4
    assert (one(found.embedding.parameters), one(found.head.parameters)) == (165, 8 * 20 + 8)
    halves = units(of_kinds(), cut(tp=2))
    assert one(halves.layer.dense_parameters) == (3 * (DENSE_WORDS / 2 + 16) + 192 / 2 + 32 + 16) / 4
    assert (one(halves.embedding.parameters), one(halves.head.parameters)) == (85, 8 * 10 + 8)
    assert one(units(of_kinds(), cut(ep=2, etp=2)).layer.expert_parameters) == EACH / 4


def test_the_head_sees_what_comes_behind_the_encoder():
    """16 tokens of 20 logits; a norm of 8 and the loss there, 2 x 32 words of a look-up at the encoder's start."""
    found = units(of_kinds(), cut())
    assert one(found.head.products.forward_s) == one(found.head.forward_flops) == 2 * 16 * 8 * 20
    assert one(found.head.logit_elements) == 16 * 20
    assert one(found.embedding.stream_forward_s) == 2 * 32 * 8
    assert one(found.embedding.forward_flops) == one(found.embedding.logit_elements) == 0
    whole = units(of_kinds(decoder_seq_len=0, encoder=()), cut())
    assert one(found.head.stream_forward_s) == one(whole.head.stream_forward_s) / 2
    assert (whole.num_layers, one(whole.head.logit_elements)) == (3, 32 * 20)
    headless = of_kinds()
    bare = units(replace(headless, model=replace(headless.model, head=None)), cut())
    assert (one(bare.head.parameters), one(bare.head.logit_elements), one(bare.head.forward_flops)) == (8, 0, 0)
    assert one(bare.head.products.forward_s) == 0


@pytest.mark.parametrize(("loss_tokens", "made", "logits"), [(7, 15, 7), (16, 16, 16), (40, 16, 16)])
def test_logits_that_exist_at_once(loss_tokens, made, logits):
    """7 of 16 tokens: three pieces of a third, 5 tokens, each."""
    found = units(of_kinds(loss_tokens=loss_tokens), cut())
    assert one(found.head.logit_elements) == logits * 20
    assert one(found.head.products.forward_s) == 2 * made * 8 * 20


def test_low_rank_additions_are_all_that_is_trained():
    """Rank 16 beside inputs and outputs: 24 + 16 + 32 + 20 of a dense layer, 24 + 16 of a routed one."""
    found = units(of_kinds(task="lora"), cut())
    assert one(found.layer.trained_parameters) == 16 * (3 * 92 + 40) / 4
    into = units(of_kinds(task="lora", adapter_targets="qkv"), cut())
    assert one(into.layer.trained_parameters) == 16 * 24  # queries, keys and values alone
    block, choice = replace(DENSE, linears=(*LINEARS, linear("router", 8, 4, "replicated", "router"))), cut()
    every = parts(block, choice)
    assert [p.linear.name for p in adapted(job_of(), every)] == ["qkv", "o", "gate_up", "down"]
    assert [p.linear.name for p in adapted(job_of(adapter_targets="qkv"), every)] == ["qkv"]


def test_operations_and_bytes_of_routed_layers():
    found = units(of_kinds(), cut(tp=2))
    dense, routed = (layer for _, layer in found.kinds[1:])
    assert one(routed.forward_flops) == 2 * 16 * (192 / 2 + 32) + 2 * 16 * 2 * EACH / 2
    moved = [(8, 8), (4, 8), (8, 4)]  # inputs and outputs of each product on one of two devices
    products = sum(16 * (k + n) + k * n for k, n in moved) * 2
    assert one(routed.forward_bytes) == products + 2 * one(routed.expert_parameters)
    assert one(dense.forward_bytes) == 2 * sum(16 * (k + n) + k * n for k, n in [(8, 8), (4, 8), (8, 12), (6, 8)])


LOADS = Popularity(shares=(0.7, 0.1, 0.1, 0.1))


def test_copies_of_experts_take_slots():
    """Two ranks of two experts each and a copy: six slots for four experts. Four ranks: eight."""
    found = units(of_kinds(placement="redundancy", loads=LOADS), cut(ep=2))
    assert one(found.layer.expert_parameters) == 4 * EACH / 2 / 4 * 6 / 4
    assert one(units(of_kinds(placement="rearranged", loads=LOADS), cut(ep=2)).layer.expert_parameters) == EACH / 2
    assert one(units(of_kinds(placement="in-order", loads=LOADS), cut(ep=2)).layer.expert_parameters) == EACH / 2


@pytest.mark.parametrize(
    ("replicas", "ranks", "slots"), [(0, 2, 3), (1, 2, 3), (2, 2, 3), (3, 2, 4), (0, 4, 2), (5, 4, 3)]
)
def test_as_many_copies_on_every_rank(replicas, ranks, slots):
    job = replace(of_kinds(placement="redundancy", loads=LOADS), placement_knobs=(("num_replicas", float(replicas)),))
    assert standing(job, EXPERTS, ranks).slots_each == slots


def test_rearranged_experts_stand_beside_others():
    """0.5 (all that one of two experts a token can get), then 0.3, 0.1, 0.1: 0.6 and 0.4, for 0.8 and 0.2 in order."""
    job = of_kinds(placement="rearranged", loads=Popularity(shares=(0.5, 0.3, 0.1, 0.1)))
    assert standing(job, EXPERTS, 2).fullest_ratio == pytest.approx(1.2)
    assert standing(replace(job, expert_placement=""), EXPERTS, 2).fullest_ratio == pytest.approx(1.6)


def test_sizes_of_weights_that_other_layers_have_too():
    """A dense layer has four sizes; the encoder's are the first of each, and all that comes later has twins there."""
    found = units(of_kinds(), cut()).shapes
    sizes = [128, 64, 192, 96]
    assert [one(s.elements) for s in found] == [*sizes, *sizes, 128, 64, 160, 80]
    assert [s.kind for s in found] == [0] * 4 + [1] * 4 + [2] * 4
    twins = [[other for other, _ in s.twins] for s in found]
    assert twins == [[], [], [], [], [0], [0], [0], [0], [0, 1], [0, 1], [], []]
    square = replace(DENSE, linears=(LINEARS[1], LINEARS[1], LINEARS[3]))
    job = of_kinds(encoder=())
    twice = units(replace(job, model=replace(job.model, blocks=(square,))), cut(tp=2)).shapes
    assert [one(s.elements) for s in twice] == [32, 0, 48]  # the second of a size adds none


# --- what is made again


def test_modules_that_are_made_again():
    """Seconds of each module in the average of one encoder layer, two dense ones and a routed one."""
    found = units(of_kinds(), cut())
    again, at = again_of(found), {name: i for i, name in enumerate(MODULES)}
    behind = decoding(found.job)

    def row(values):
        return {name: float(values[i, 0]) for name, i in at.items() if values[i, 0]}

    mlp = 2 * (8 * 24 + 12 * 8)
    router, experts = 2 * 16 * 8 * 4, one(expert_times(behind, EXPERTS, found.choice).forward_s)
    assert row(again.products_s) == {"mlp": mlp * (32 + 2 * 16) / 4, "moe": (router + experts) / 4}
    cores = [one(layer.attention_forward_s) for _, layer in found.kinds]
    assert row(again.attention_s) == {"core_attn": (cores[0] + 2 * cores[1] + cores[2]) / 4}
    assert min(cores) > 0
    norms, gated = 2 * 16, 3 * 12
    assert row(again.stream_s) == pytest.approx(
        {
            "layernorm": norms * (32 + 3 * 16) / 4,
            "mlp": gated * (32 + 2 * 16) / 4,
            "moe_act": one(activation_s(behind, EXPERTS, found.choice)) / 4,
            "moe": one(expert_streams(behind, EXPERTS, found.choice).forward_s) / 4,
        }
    )


def test_shared_experts_and_latent_products_are_made_again():
    """A shared expert's products are part of the routed layer's; what expands a latent vector is one of its own."""
    linears = (
        linear("q", 8, 16, "column", "attention"),
        linear("kv_b", 6, 20, "column", "attention"),
        linear("o", 8, 8, "row", "attention"),
        linear("shared_gate_up", 8, 10, "column", "shared_expert"),
        linear("shared_down", 5, 8, "row", "shared_expert"),
        linear("router", 8, 4, "replicated", "router"),
    )
    block = replace(ROUTED, linears=linears, mixer=LATENT, activation_elements=5)
    job = job_of()
    found = units(replace(job, model=replace(job.model, blocks=(block,))), cut(tp=2))
    again, at = again_of(found), {name: i for i, name in enumerate(MODULES)}
    shared = 2 * 32 * (8 * 5 + 3 * 8)  # half of ten columns; half of five rows, rounded up
    experts = one(expert_times(found.job, EXPERTS, found.choice).forward_s)
    assert again.products_s[at["shared_experts"], 0] == shared
    assert again.products_s[at["moe"], 0] == shared + 2 * 32 * 8 * 4 + experts
    assert again.products_s[at["mla_up_proj"], 0] == 2 * 32 * 6 * 10
    assert again.products_s[at["mlp"], 0] == again.stream_s[at["mlp"], 0] == 0
    assert again.stream_s[at["shared_experts"], 0] == 3 * 32 * 3
    streams = one(expert_streams(found.job, EXPERTS, found.choice).forward_s)
    assert again.stream_s[at["moe"], 0] == pytest.approx(3 * 32 * 3 + streams)
    assert again.stream_s[at["layernorm"], 0] == 2 * 16 * 16  # rows are shared by two


def test_latent_products_read_neither_the_stream_nor_another_product():
    choice = cut(tp=2)
    names = [
        ("kv_b", 6, "column", "attention"),
        ("qkv", 8, "column", "attention"),
        ("o", 6, "row", "attention"),
        ("up", 6, "column", "mlp"),
    ]
    made = [product(linear(n, k, 16, shard, role), LATENT, choice.tp) for n, k, shard, role in names]
    assert [is_latent(job_of(), p) for p in made] == [True, False, False, False]


def test_products_in_groups_are_dealt_out_whole_or_copied():
    """Four groups of 2 x 3: two on each of two devices, at least one on each of eight, all where they are copied."""
    choice = cut(tp=2)
    shape = {"groups": 4, "has_bias": True}
    dealt = product(linear("o_a", 8, 12, "column", "attention", **shape), None, choice.tp)
    assert [one(x) for x in (dealt.n, dealt.k, dealt.groups)] == [3, 2, 2]
    assert one(dealt.parameters) == 2 * (3 * 2 + 3)
    assert one(product(linear("o_a", 8, 12, "row", "attention", groups=4), None, cut(tp=8).tp).groups) == 1
    assert one(product(linear("o_a", 8, 12, "replicated", "attention", groups=4), None, choice.tp).groups) == 4
    alone = product(linear("r", 8, 12, "replicated", "router"), None, choice.tp)
    assert [one(x) for x in (alone.n, alone.k, alone.groups, alone.parameters)] == [12, 8, 1, 96]


def test_keys_that_are_values_and_heads_that_do_not_divide():
    """4 query heads of 2 and 2 key heads of 2 + 2 over 3 devices: 3 columns of 8, one key head with its values."""
    qkv = LINEARS[0]
    assert one(product(qkv, SOFTMAX, cut(tp=3).tp).n) == 3 + 4
    shared = replace(SOFTMAX, keys_are_values=True)
    assert one(product(replace(qkv, out_features=12), shared, cut(tp=3).tp).n) == 3 + 2
    assert one(product(replace(qkv, kv_heads=0), SOFTMAX, cut(tp=3).tp).n) == 6


def test_parameters_that_a_device_holds():
    choice = cut(tp=2, ep=2, etp=2)
    found = held(replace(ROUTED, other_parameters=7), parts(ROUTED, choice), choice)
    assert (one(found.dense_parameters), one(found.expert_parameters)) == (192 / 2 + 32 + 7, 4 * EACH / 4)


def test_a_layer_holds_its_part_of_shared_weights():
    """Six layers with two sets of everything: a third of a layer's own each, and whole norms."""
    choice = cut()
    shared = replace(DENSE, count=6, linears=tuple(replace(x, copies=2) for x in DENSE.linears), other_parameters=7)
    own = held(replace(DENSE, other_parameters=0), parts(DENSE, choice), choice).dense_parameters[0]
    assert held(shared, parts(shared, choice), choice).dense_parameters[0] == pytest.approx(own / 3 + 7)


def test_jobs_of_layers_behind_an_encoder():
    job = of_kinds()
    assert [(j.seq_len, b.count) for j, b in jobs_by_block(job)] == [(16, 1), (8, 2), (8, 1)]
    assert decoding(replace(job, decoder_seq_len=0)).seq_len == 16
    alone = replace(job, model=replace(job.model, encoder=()))
    assert decoding(alone) is alone


# --- exchanges


def test_reductions_of_a_layer(sent):
    """32 tokens of 8 words of 2 bytes, twice; gathered and scattered where sequences are cut."""
    each, count = 2 * 32 * 8, DENSE.num_reduces
    assert count == 2
    plain = exchanges.layer_exchanges(job_of(), DENSE, cut(tp=2, is_sequence_parallel=False))
    assert one(plain.tensor_forward_s) == one(plain.tensor_backward_s) == count * each
    assert ("all_reduce", [2], [1]) in sent
    halves = exchanges.layer_exchanges(job_of(), DENSE, cut(tp=2))
    assert one(halves.tensor_forward_s) == 110 * count * each
    assert one(exchanges.tensor_s(job_of(), 3, cut(tp=2), 4)) == 110 * 3 * each  # four pieces of a quarter
    assert one(exchanges.layer_exchanges(job_of(), DENSE, cut()).tensor_forward_s) == 0


@pytest.mark.parametrize(
    ("mixer", "pair", "query"),
    [(SOFTMAX, 2 * 4, 4 * 2), (LATENT, 4 * (4 + 2), 4 * 4), (RECURRENT, 8, 0), (COMPRESSED, 8, 0)],
)
def test_a_context_goes_round_or_is_dealt_out(sent, mixer, pair, query):
    """8 tokens on each of four ranks. Round: keys and values three times, twice as much on the way back. Dealt out:
    keys, values, queries and results at once, both ways."""
    block = replace(DENSE, mixer=mixer)
    ring = exchanges.layer_exchanges(job_of(), block, cut(cp=4))
    assert one(ring.context_forward_s) == 3 * 1000 * 2 * 8 * pair
    assert one(ring.context_backward_s) == 2 * one(ring.context_forward_s)
    dealt = exchanges.layer_exchanges(job_of(), block, cut(cp=4, context_kind="all-to-all"))
    assert one(dealt.context_forward_s) == one(dealt.context_backward_s) == 10000 * 2 * 8 * (pair + 2 * query)
    none = exchanges.layer_exchanges(job_of(), replace(DENSE, mixer=None), cut(cp=4))
    assert one(none.context_forward_s) == one(exchanges.layer_exchanges(job_of(), block, cut()).context_forward_s) == 0


@pytest.mark.parametrize(("cp", "tp", "apart"), [(2, 2, 2), (4, 2, 2), (8, 2, 8), (2, 8, 8), (2, 16, 16)])
def test_the_slowest_hop_of_a_ring(sent, cp, tp, apart):
    """Neighbours stand ``tp`` apart; once the ring leaves a node of eight, one hop goes to the next node."""
    exchanges.layer_exchanges(job_of(), DENSE, cut(cp=cp, tp=tp, micro_batch=8))
    assert [(ranks, stride) for kind, ranks, stride in sent if kind == "send_recv"] == [([2], [apart])]
    sent.clear()
    exchanges.layer_exchanges(job_of(), DENSE, cut(cp=cp, tp=tp, micro_batch=8, context_kind="all-to-all"))
    assert [(ranks, stride) for kind, ranks, stride in sent if kind == "all_to_all"] == [([cp], [tp])]


def test_a_curve_is_its_quickest_algorithm_and_no_quicker_than_the_host():
    """1 + 2 S + sqrt(9 S), or 8; the host takes 3; what is not there is endless and no message takes no time."""
    rows = np.array([[[1.0, 2.0, 9.0], [8.0, 0.0, 0.0]], [[np.inf, 0.0, 0.0], [np.inf, 0.0, 0.0]]])
    curves = exchanges.Curves(host_s=np.array([3.0, 3.0]), rows=rows)
    group, size = np.array([0, 0, 0, 0, 1]), np.array([1.0, 4.0, 1e-6, 0.0, 4.0])
    assert curves.time_s(group, size).tolist() == pytest.approx([6, 8, 3, 0, 0])


def test_collectives_of_several_groups_are_their_own():
    """Groups of two and of four beside groups of one; as the network says, each with its own stride."""
    job, size = job_of(), np.array([1e6, 1e6, 2e6, 1e6])
    ranks, stride = np.array([2, 1, 4, 2]), np.array([1, 1, 2, 4])
    found = exchanges.collective_s(job, "all_reduce", ranks, stride, size)
    alone = [one(exchanges.collective_s(job, "all_reduce", ranks[[i]], stride[[i]], size[[i]])) for i in range(4)]
    assert found.tolist() == alone
    assert alone[1] == 0
    assert alone[2] > alone[0] > 0
    assert exchanges.collective_s(
        job, "all_reduce", np.array([1, 1]), np.array([1, 1]), np.array([5.0, 5.0])
    ).tolist() == [0, 0]


def test_islands_are_joined_by_their_own_link():
    device = get_device("h100-sxm")
    job = replace(job_of(), cluster=Cluster(device=device, num_devices=64, devices_per_node=8))
    assert exchanges.device_across(job, 64) is device
    own = replace(device.scaleout, each_way_bytes_per_s=1e8)
    apart = replace(job, islands=Islands(num_devices=16, link=own))
    assert exchanges.device_across(apart, 16) is device
    assert exchanges.device_across(apart, 17).scaleout == own


# --- pieces of products beside exchanges


def exposed(monkeypatch, rule, **degrees):
    """Seconds that a layer's exchanges add by a rule of the test's own; forward, then backward."""
    technique = SimpleNamespace(rule=rule, knobs=SimpleNamespace)
    monkeypatch.setattr(hidden.TENSOR.__class__, "get", lambda self, name: technique)
    monkeypatch.setattr(hidden, "fields", lambda knobs: ())
    monkeypatch.setattr(hidden, "knob_array", lambda technique, **knobs: None)
    found = units(of_kinds(matrix_ratio=2.0), cut(tp=2, **degrees))
    return found, [one(x) for x in hidden.tensor_exposed(found, np.array([3.0]))]


def mean_s(dense, routed):
    """The mean of an encoder layer of 32 tokens and of two dense ones and a routed one of 16, at twice the time."""
    return 2.0 * 2 * ((32 + 2 * 16) * dense + 16 * routed) / 4


WHOLE = mean_s(8 * 8 + 4 * 8 + 8 * 12 + 6 * 8, 8 * 8 + 4 * 8 + 8 * 4)


def test_products_in_pieces_of_their_tokens_and_of_their_columns(sent, monkeypatch):
    """Three pieces: a third of 32 tokens is 10 (of 16 is 5), three times; columns 8, 8, 12 and 8 become 3, 3, 4 and 3,
    the router's four become 2."""
    _, both = exposed(monkeypatch, lambda pair, knobs: pair.serial_s - pair.network_s + pair.cut_compute_s(3))
    assert both == pytest.approx([3 * WHOLE * 10 / 32] * 2)
    dense, routed = 3 * (8 * 3 + 4 * 3 + 8 * 4 + 6 * 3), 3 * (8 * 3 + 4 * 3 + 8 * 2)
    _, (ahead, _) = exposed(monkeypatch, lambda pair, knobs: pair.compute_s + pair.cut_columns_s(3))
    assert ahead == pytest.approx(mean_s(dense, routed))
    _, (ahead, _) = exposed(monkeypatch, lambda pair, knobs: pair.compute_s + pair.cut_columns_s(1))
    assert ahead == pytest.approx(WHOLE)


def test_messages_in_pieces_are_three_times_slower(sent, monkeypatch):
    """Gathered and scattered: 110 s a byte, two reductions; 32 tokens in the encoder, 16 behind it."""
    want = 3 * 110 * 2 * (32 + 3 * 16) / 4 * 8 * 2
    _, (ahead, _) = exposed(monkeypatch, lambda pair, knobs: pair.compute_s + pair.cut_network_s(4))
    assert ahead == pytest.approx(want)
    _, (ahead, _) = exposed(monkeypatch, lambda pair, knobs: pair.compute_s + pair.network_s)
    assert ahead == pytest.approx(want)


def test_what_a_rule_is_told_of_a_layer(sent, monkeypatch):
    seen = []
    found, both = exposed(monkeypatch, lambda pair, knobs: seen.append(pair) or pair.serial_s - 1e9)
    ahead, back = seen
    assert both == [0, 0]
    f, x = found.job.framework, found.layer
    assert (one(ahead.compute_s), one(back.compute_s), one(back.backward_weight_s)) == pytest.approx((WHOLE,) * 3)
    assert one(ahead.backward_weight_s) == 0
    assert ahead.num_collectives == back.num_collectives == 2
    assert ahead.contention_ratio == f.contention_ratio
    others = [(x.core_forward_s(f), x.stream_forward_s), (x.core_backward_s(f), x.stream_backward_s)]
    for pair, (core, stream) in zip(seen, others, strict=True):
        assert one(pair.other_compute_s) == pytest.approx(one(core + f.elementwise_ratio * stream))


def test_a_group_that_reaches_beyond_its_island_meets_the_slower_link(monkeypatch):
    """Eight ranks that stand four apart span 32 devices of islands of 16; four of them span 16."""
    device = get_device("h100-sxm")
    slow = replace(device.scaleout, each_way_bytes_per_s=1e8)
    job = replace(
        job_of(),
        cluster=Cluster(device=device, num_devices=64, devices_per_node=8),
        islands=Islands(num_devices=16, link=slow),
    )
    seen = []

    def coefficients(work, device):
        seen.append((work.num_devices, work.stride, device.scaleout == slow))
        return 0.0, np.zeros((1, 3))

    monkeypatch.setattr(exchanges.network, "coefficients", coefficients)
    exchanges.curves_of.__wrapped__(job, "all_reduce", ((4, 4), (8, 4), (16, 1), (17, 1)))
    assert seen == [(4, 4, False), (8, 4, True), (16, 1, False), (17, 1, True)]


def test_casts_of_products_in_groups():
    """Four groups of 2 x 3: eight elements enter, twelve leave."""
    block = replace(DENSE, linears=(linear("o_a", 8, 12, "column", "attention", groups=4),))
    job, choice = job_of("fp8"), cut()
    found = passes.cast_streams(job, parts(block, choice), choice)
    assert one(found.forward_s) == pytest.approx(4 / 3 * 32 * 8)
    assert one(found.backward_s) == pytest.approx(4 / 3 * 32 * 12)


def test_experts_in_pieces_count_as_often_as_the_average_layer_has_them(sent, monkeypatch):
    """A quarter of the layers is routed: a quarter of its products, at twice the time, and of its messages, thrice."""
    job = replace(of_kinds(matrix_ratio=2.0, dispatcher="all-to-all"), expert_overlap="any", decoder_seq_len=0)
    found = units(job, cut(ep=2))
    seen = []
    technique = SimpleNamespace(rule=lambda pair, knobs: seen.append(pair) or pair.serial_s, knobs=SimpleNamespace)
    monkeypatch.setattr(hidden.EXPERT.__class__, "get", lambda self, name: technique)
    monkeypatch.setattr(hidden, "knob_array", lambda technique, **knobs: None)
    added = hidden.expert_exposed(found, np.array([3.0]))
    ahead, back = seen
    parts_of = expert_times(job, EXPERTS, found.choice, 2)
    assert one(ahead.cut_compute_s(2)) == pytest.approx(2 * one(parts_of.forward_s) / 4)
    assert one(back.cut_compute_s(2)) == pytest.approx(2 * one(parts_of.input_gradient_s) / 4)
    message_s = one(expert_exchange.expert_s(job, ROUTED, found.choice, 2))
    assert message_s > 0
    for pair in seen:
        assert one(pair.cut_network_s(2)) == pytest.approx(3 * message_s / 4)
        assert one(pair.network_s) == pytest.approx(3 * one(found.layer.expert_forward_s))
        assert one(pair.cut_columns_s(2)) == one(pair.compute_s)
        assert pair.num_ranks == 2
    assert one(ahead.compute_s) == pytest.approx(2 * one(found.layer.experts.forward_s))
    assert (one(ahead.backward_weight_s), ahead.num_collectives) == (0, 2)
    assert one(back.expert_gather_s) == 2 * one(ahead.expert_gather_s) > 0
    assert [one(x) for x in added] == pytest.approx([one(seen[0].network_s)] * 2)
