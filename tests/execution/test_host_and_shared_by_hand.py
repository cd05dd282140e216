"""What a host adds to a step, what compressing a cache takes, what patches exchange, and experts by their routes."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from batches import decodes

from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.execution.compression import compressed, compressing_s
from orrery.execution.engine import BackendRule, Situation
from orrery.execution.experts import placed as by_routes
from orrery.execution.experts.offloaded import _counts
from orrery.execution.experts.placement import distances, fullest, hops, in_order
from orrery.execution.finetune_memory import activations
from orrery.execution.host import is_graph, is_in_pieces, launched_s, launches_s, pieces_s, wall_s
from orrery.execution.kept_cache import Compression, kept_tokens
from orrery.execution.offload.lanes import Lanes, staged, walk
from orrery.execution.offload.program_table import read_program
from orrery.execution.offload.tiers import Tiers
from orrery.execution.overlap import OVERLAPS, knob_array
from orrery.execution.patches import PATCHES
from orrery.execution.patches.shared import Shared
from orrery.execution.rotation_memory import devices_end_to_end, end_to_end, layer_wise
from orrery.execution.routes import COPIED, EXFLOW, MOETUNER
from orrery.execution.shard import Cache, cache_of, num_kernels, num_pieces
from orrery.execution.train.placement import Standing
from orrery.execution.transfer import TRANSFERS

# --- the host's part of a step


def engine(**more):
    plain = {
        "step_s": 1.0,
        "per_sequence_s": 0.5,
        "sampling_s": 0.25,
        "overlap_frac": 0.0,
        "has_cuda_graphs": True,
        "max_num_graph_seqs": 8,
        "max_num_wide_graph_seqs": 0,
        "max_num_graph_tokens": 16,
        "max_num_latent_graph_tokens": 0,
        "has_plain_pieces": False,
    }
    return SimpleNamespace(**(plain | more))


@pytest.mark.parametrize(
    ("overlap", "device_s", "launch_s", "wall"),
    [
        (0.0, 10.0, 0.0, 10 + 1 + 3),
        (1.0, 10.0, 0.0, 10 + 1),
        (1.0, 1.0, 0.0, 3),  # the host is slower than the device
        (0.5, 10.0, 0.0, 10 + 1 + 1.5),
        (0.0, 10.0, 12.0, 12 + 1 + 3),
        (1.0, 10.0, 12.0, 3 + 12),
    ],
)
def test_what_the_host_adds_to_a_step(overlap, device_s, launch_s, wall):
    """Four sequences: 1 + 4 x 0.5 of the host's work, 4 x 0.25 of sampling."""
    assert float(wall_s(engine(overlap_frac=overlap), device_s, 4, launch_s)) == wall


def test_a_step_without_launches():
    assert float(wall_s(engine(overlap_frac=1.0), 1.0, 4)) == 3


def test_steps_that_a_graph_replays(deploy):
    """Decodes of up to 8 sequences whole; up to 16 tokens in pieces; without graphs neither."""
    batch = replace(decodes(8, 9, 16, 17, 8), prompt_sequences=np.array([0, 0, 0, 0, 1]))
    plain = replace(deploy(model="llama-3.1-8b"), engine=engine())
    assert is_graph(plain, batch).tolist() == [True, False, False, False, False]
    assert is_in_pieces(plain, batch).tolist() == [True, True, True, False, True]
    none = replace(plain, engine=engine(has_cuda_graphs=False))
    assert not is_graph(none, replace(batch, decode_sequences=np.zeros(5, int))).any()
    assert not is_in_pieces(none, replace(batch, decode_sequences=np.zeros(5, int))).any()


def test_launches_of_a_step(deploy):
    """A graph has none; pieces are fewer than kernels; a larger step launches every kernel."""
    deployment = deploy(model="llama-3.1-8b")
    made = replace(deployment.engine, launch_s=2.0, max_num_graph_seqs=8, max_num_graph_tokens=16, has_cuda_graphs=True)
    deployment = replace(deployment, engine=made)
    assert launches_s(deployment) == 2 * num_kernels(deployment)
    assert pieces_s(deployment) == 2 * num_pieces(deployment)
    every, few = launches_s(deployment), min(launches_s(deployment), pieces_s(deployment))
    assert launched_s(deployment, decodes(8, 16, 17)).tolist() == [0, few, every]


@pytest.mark.parametrize(
    ("model", "tp", "pieces", "kernels"),
    [
        # 64 layers: attention and its cache write, and a piece; 4 products, 2 norms, 1 activation, 2 sums; 1 head
        ("qwen3-32b", 8, 64 * (2 + 1), 64 * (2 + 4 + 2 + 1 + 2) + 1),
        # 30 recurrences and 10 attentions; in a layer 2 norms, 2 sums, the shared expert's activation, 3 for experts
        ("qwen3.6-35b-a3b", 4, 30 * (15 + 1) + 10 * (2 + 1), 30 * 15 + 10 * 2 + 271 + 40 * (2 + 1 + 2 + 3)),
    ],
)
def test_launches_counted_by_hand(deploy, model, tp, pieces, kernels):
    """As vLLM 0.20 on Blackwell runs them; of 271 products 7 in a layer with recurrence, 6 with attention, a head."""
    assert 30 * 7 + 10 * 6 + 1 == 271
    deployment = deploy(model=model, device="b300", tp=tp, engine="vllm", engine_version="0.20.1", weights="bf16")
    assert (num_pieces(deployment), num_kernels(deployment)) == (pieces, kernels)


def test_experts_that_no_compiled_operator_runs_launch_more(deploy):
    """Triton's on Hopper: four launches more in every layer than CUTLASS's, whose one call launches the rest inside."""
    counts = [
        num_kernels(
            deploy(model="qwen3-30b-a3b", device="h100-sxm", engine="vllm", engine_version=version, weights="bf16")
        )
        for version in ("0.15.0", "0.20.1")
    ]
    assert counts[0] - counts[1] == 48 * (7 - 3)


# --- caches that are compressed


def test_windows_and_states_of_a_compressed_cache():
    cache = Cache(bytes_per_token=8.0, windows=((16, 4.0),), bytes_per_sequence=5.0)
    found = compressed(cache, Compression(kept_bytes_frac=0.25))
    assert (found.bytes_per_token, found.windows, found.bytes_per_sequence) == (2, ((16, 1.0),), 5)
    assert cache.sequence_bytes(10) == 10 * 8 + 10 * 4 + 5
    assert cache.sequence_bytes(20) == 20 * 8 + 16 * 4 + 5


@pytest.mark.parametrize(("tp", "cp"), [(1, 1), (2, 1), (2, 2)])
def test_choosing_and_gathering_what_stays(deploy, tp, cp):
    """Operations and scores are shared by all devices of a sequence; what stays is read whole and written narrow."""
    deployment = deploy(model="llama-3.1-8b", tp=tp, cp=cp)
    device, ways = deployment.cluster.device, tp * cp
    peak = device.dense_flops_per_s["bf16"] * ways
    half = Compression(kept_tokens_frac=0.5, kept_bytes_frac=0.25, flops_per_token=1e9, score_bytes_per_token=1e6)
    each = cache_of(deployment).bytes_per_token
    moved = each * 500 * (1 + 0.25) + 1e6 * 1000 / ways
    want = 1e9 * 1000 / peak + moved / device.memory_bandwidth_bytes_per_s
    assert compressing_s(deployment, half, 1000) == pytest.approx(want, rel=1e-9)
    scored = replace(half, kept_tokens_frac=1.0, kept_bytes_frac=1.0)
    want = 1e9 * 1000 / peak + 1e6 * 1000 / ways / device.memory_bandwidth_bytes_per_s
    assert compressing_s(deployment, scored, 1000) == pytest.approx(want, rel=1e-9)


def test_a_prompt_within_its_budget_is_not_scored(deploy):
    deployment = deploy(model="llama-3.1-8b")
    bandwidth = deployment.cluster.device.memory_bandwidth_bytes_per_s
    roomy = Compression(budget_tokens=1000, kept_bytes_frac=0.5, flops_per_token=1e9, score_bytes_per_token=1e6)
    assert kept_tokens(roomy, 1000) == 1000
    each = cache_of(deployment).bytes_per_token
    assert compressing_s(deployment, roomy, 1000) == pytest.approx(each * 1000 * 1.5 / bandwidth)
    assert compressing_s(deployment, roomy, 1001) > each * 1000 * 1.5 / bandwidth + 1e9 * 1001 / 1e15
    assert compressing_s(deployment, replace(roomy, kept_bytes_frac=1.0), 1000) == 0


# --- learning rotations


def test_memory_of_learning_rotations_by_hand():
    """Llama 3 8B is 4096 wide with 32 layers of 218,112,000 weights; the widest product is 4096 x 28,672."""
    model = get_model("llama-3-8b")
    layer, widest, rotation = 218_112_000, 4096 * 28672, 4 * 4 * 4096**2
    near = layer_wise(model, 1000.0)
    assert near.weights_bytes == pytest.approx(2 * layer, rel=1e-3)
    assert (near.rotated_bytes, near.activations_bytes, near.rotation_bytes) == (0, 2 * 2 * 4096 * 1000, rotation)
    far = end_to_end(model, 100, 4)
    own = sum(b.num_parameters for b in model.blocks) / 32
    assert far.weights_bytes == pytest.approx(2 * (model.num_parameters / 4 + 2 * own))
    assert far.rotated_bytes == pytest.approx((8 + 2 * 2) * own + 8 * widest)
    within = activations(model, 100).all_bytes / 32
    assert far.activations_bytes == pytest.approx(100 * (2 * 4096 * 32 + within + (2 + 2 * 4) * 128256))
    parts = (far.weights_bytes, far.rotated_bytes, far.activations_bytes, far.rotation_bytes)
    assert far.total_bytes == pytest.approx(sum(parts))


def test_devices_that_share_a_machine_out_evenly():
    """What three of six would hold goes on six where three do not divide eight: 1, 2, 4 or 8."""
    model = get_model("llama-3-70b")
    totals = {n: end_to_end(model, 2048, n).total_bytes for n in (1, 2, 3, 4, 6, 8)}
    assert devices_end_to_end(model, 2048, totals[4]) == 4
    assert devices_end_to_end(model, 2048, totals[3]) == 4
    assert devices_end_to_end(model, 2048, totals[3], 6) == 3
    assert devices_end_to_end(model, 2048, totals[8]) == 8
    assert devices_end_to_end(model, 2048, totals[1]) == 1
    with pytest.raises(Exception, match="write more devices"):
        devices_end_to_end(model, 2048, totals[8] - 1)


# --- patches


@pytest.fixture
def shared(monkeypatch):
    """Four patches of 100 bytes of cache and 8 of border; a gathering takes a second a byte, a message 10 s a byte."""
    made = Shared(
        device=get_device("h100-sxm"),
        num_devices=4,
        cache_bytes=100.0,
        border_bytes=8.0,
        num_attentions=5,
        num_convolutions=43,
    )

    def call_s(self, kind, message_bytes):
        return {"all_gather": 1.0, "send_recv": 10.0}[kind] * message_bytes

    monkeypatch.setattr(Shared, "_call_s", call_s)
    return made


def test_gatherings_and_messages_of_patches(shared):
    assert shared.gathering_s(100.0, 5) == pytest.approx(4 * 100)
    assert shared.gathering_s(0.0, 5) == 0
    assert shared.sending_s(100.0, 5) == pytest.approx(10 * 2 * 100)


def test_whole_contexts_go_to_everybody(shared):
    found = PATCHES.get("whole").rule(shared, PATCHES.get("whole").knobs())
    assert (found.read_ratio, found.kept_ratio, found.received_bytes) == (4, 4, 3 * 108)
    assert found.exchange_s == pytest.approx(4 * 108)
    assert found.num_calls == 1  # 48 tensors, 60 to a call
    many = PATCHES.get("whole").rule(replace(shared, num_convolutions=56), PATCHES.get("whole").knobs())
    assert many.num_calls == 2


def test_neighbours_read_a_part_and_borders_go_to_everybody(shared):
    """43 borders in calls of 20 are three; each of five attentions sends by itself; two devices have one neighbour."""
    technique = PATCHES.get("neighbour")
    found = technique.rule(shared, technique.knobs(read_frac=0.25))
    assert (found.read_ratio, found.kept_ratio, found.num_calls) == (1.5, 3, 3 + 5)
    assert found.exchange_s == pytest.approx(4 * 8 + 10 * 2 * 100)
    assert found.received_bytes == 2 * 3 / 4 * 100 + 3 * 8
    two = technique.rule(replace(shared, num_devices=2), technique.knobs(read_frac=0.25))
    assert (two.read_ratio, two.kept_ratio, two.received_bytes) == (1.25, 2, 100 + 8)
    none = technique.rule(replace(shared, num_attentions=0), technique.knobs())
    assert none.num_calls == 3 + 1
    assert technique.knobs().read_frac == 0.3


# --- experts by their routes


def test_every_token_takes_its_best_experts():
    """Of 64 experts two are certain: each of eight tokens takes both, wherever the others' draws fall."""
    chosen = np.full(64, 1e-9)
    chosen[[17, 40]] = 1.0
    rule, random = SimpleNamespace(repeat_frac=0.0), np.random.default_rng(0)
    for _ in range(5):
        counts, _ = _counts(random, rule, chosen, 8, 2, [np.zeros((8, 64))], 0)
        assert counts.sum() == 16
        assert (counts[17], counts[40]) == (8, 8)


def test_scores_keep_their_size_as_they_repeat():
    """Half of the old and sqrt(3)/2 of a new draw: standard normal again, half correlated."""
    rule, random = SimpleNamespace(repeat_frac=0.5), np.random.default_rng(0)
    old = random.standard_normal((4000, 8))
    scores = [old]
    _counts(random, rule, np.full(8, 0.5), 4000, 2, scores, 0)
    assert scores[0].std() == pytest.approx(1, abs=0.02)
    assert np.corrcoef(scores[0].ravel(), old.ravel())[0, 1] == pytest.approx(0.5, abs=0.02)


ORDER, NEW = (0.6, 0.3, 1.5), (0.4, 0.2, 1.2)
"""Ways that leave the device and the node, and the fullest rank, in order and as they were placed."""


def placement(monkeypatch, method, new, is_copied):
    """Whether a placement is taken whose ways and loads are ``new``."""
    routes = SimpleNamespace(loads_frac=np.ones((2, 4)) / 4, moves_frac=None, judged_frac=None)
    order, where = np.zeros((2, 4), int), np.ones((2, 4), int)
    monkeypatch.setattr(by_routes, "in_order", lambda *sizes: order)
    monkeypatch.setattr(by_routes, "distances", lambda *sizes: None)
    monkeypatch.setattr(by_routes, "near_followed", lambda moves, distance: where)
    program = SimpleNamespace(where=where, load_gap_frac=0.1, way_ratio=0.8, way_bound_ratio=0.6)
    monkeypatch.setattr(by_routes, "tuned", lambda moves, ranks, per_node: program)
    monkeypatch.setattr(by_routes, "hops", lambda judged, at, per_node: (ORDER if at is order else new)[:2])
    monkeypatch.setattr(by_routes, "fullest", lambda judged, at: (ORDER if at is order else new)[2])
    found = by_routes._placed.__wrapped__(routes, method, 4, 2, is_copied)
    if found is not None and found.is_moved:
        assert (found.leaves_device_frac, found.leaves_node_frac, found.fullest_ratio) == new
    elif found is not None:
        assert (found.leaves_device_frac, found.leaves_node_frac, found.fullest_ratio) == ORDER
    if found is not None:
        assert (found.ordered_device_frac, found.ordered_node_frac, found.ordered_fullest_ratio) == ORDER
    return found


@pytest.mark.parametrize(
    ("method", "is_copied", "new", "taken"),
    [
        (EXFLOW, True, NEW, True),
        (EXFLOW, True, (0.4, 0.2, 9.0), True),  # shorter ways alone count
        (EXFLOW, True, (0.6, 0.3, 1.2), False),
        (MOETUNER, False, NEW, True),
        (MOETUNER, False, (0.9, 0.9, 1.2), True),  # evener loads alone count
        (MOETUNER, False, (0.4, 0.2, 1.5), None),  # nothing is gained: as if it had not been asked for
        (MOETUNER, True, (0.4, 0.2, 1.5), True),  # with contexts everywhere shorter ways do, at loads as even
        (MOETUNER, True, (0.4, 0.2, 1.6), False),
        (MOETUNER, True, (0.6, 0.3, 1.5), False),
        (COPIED, True, NEW, False),
    ],
)
def test_a_placement_is_taken_where_it_is_better(monkeypatch, method, is_copied, new, taken):
    found = placement(monkeypatch, method, new, is_copied)
    if taken is None:
        assert found is None
        return
    if method == COPIED:
        assert not found.load_gap_frac
        return
    assert found.is_moved == taken
    assert found.crowd_ratio == (found.fullest_ratio if is_copied else 1)
    if method == MOETUNER:
        assert (found.load_gap_frac, found.way_gap_frac) == (0.1, pytest.approx(0.25))


def test_what_stands_elsewhere_in_every_way_that_loads_fall():
    """Two ways over three ranks of two slots: 0 1, 2 3, 4 5 in order; then 0 2, 2 3, 4 0, where 2 and 0 stand twice."""
    expert = np.array([[0, 1, 2, 3, 4, 5], [0, 2, 2, 3, 4, 0]])
    standing = Standing(expert=expert, share=np.full((2, 6), 1 / 6), num_experts=6, num_ranks=3)
    assert standing.slots_each == 2
    assert standing.moved_frac == pytest.approx((0 + 1) / 2 / 2)  # one of two slots came from elsewhere
    assert standing.copied_frac == pytest.approx((0 + 2) / 2 / 2)  # both of the first rank
    assert standing.num_copies == round((1 + 2) / 2)


# --- conditions of an engine's choice


@pytest.mark.parametrize(
    ("conditions", "accepts"),
    [
        ({}, True),
        ({"generations": ("hopper", "ada"), "formats": ("fp8",), "mixers": ("latent",), "modes": ("chat",)}, True),
        ({"generations": ("ada",), "formats": ("fp8",)}, False),
        ({"generations": ("hopper",), "formats": ("bf16",)}, False),
        ({"mixers": ("softmax",)}, False),
        ({"modes": ("batch",)}, False),
        ({"spans": {"tp": (2, 4), "ep": (1, 1)}}, True),
        ({"spans": {"tp": (4, 4)}}, True),
        ({"spans": {"tp": (2, 3)}}, False),
        ({"spans": {"tp": (5, 8)}}, False),
        ({"spans": {"tp": (2, 4), "ep": (2, 8)}}, False),
    ],
)
def test_a_rule_holds_where_all_of_its_conditions_do(conditions, accepts):
    """On Hopper, FP8, latent attention, chat, four ranks."""
    at = Situation(generation="hopper", format="fp8", mixer="latent", mode="chat", degrees={"tp": 4})
    assert BackendRule(kind="moe", backend="b", fact=None, **conditions).accepts(at) == accepts


# --- an overlap of nano-batches


def test_halving_costs_its_extra_once_for_every_further_nano_batch():
    """Links bind: 10 s and 1 s for each of three further parts are 13, of 24 with 10.5 s of computing and 0.5 of
    memory; one of 4 x 5 turns has nothing beside it. What the whole takes is never passed."""
    technique = OVERLAPS.get("nano-batches")
    full = {f"{kind}_at_{at}_frac": 1.0 for kind in ("memory", "network") for at in (10, 20, 40, 80, 90)}
    knobs = knob_array(technique, num_batches=4, **full)  # a tenth of a device is as fast as all of it
    assert technique.rule(21.0, 10.0, 0.5, 0.0, 1.0, 5.0, knobs) == pytest.approx(24 / 20 + 19 / 20 * 13)
    assert technique.rule(11.5, 10.0, 0.5, 0.0, 1.0, 5.0, knobs) == 11.5


# --- where experts lie, and layers that are fetched


def test_the_fullest_device_of_every_layer():
    """Loads of 0.4, 0.2, 0.1 and 0.3, each going to itself: 0.6 on the first device, or 0.7 where they are mixed."""
    moves = np.zeros((1, 4, 4))
    moves[0, 0, 0], moves[0, 1, 1], moves[0, 2, 2], moves[0, 3, 3] = 0.4, 0.2, 0.1, 0.3
    in_two, mixed = np.array([0, 0, 1, 1]), np.array([0, 1, 1, 0])
    assert fullest(moves, np.array([in_two, in_two])) == pytest.approx(0.6 * 2)
    assert fullest(moves, np.array([in_two, mixed])) == pytest.approx((0.6 + 0.7) / 2 * 2)
    assert in_order(2, 4, 2).tolist() == [[0, 0, 1, 1]] * 2
    assert distances(4, 2).tolist() == [[0, 1, 2, 2], [1, 0, 2, 2], [2, 2, 0, 1], [2, 2, 1, 0]]
    assert hops(moves, np.array([in_two, mixed]), 1) == pytest.approx((0.2 + 0.3, 0.2 + 0.3))
    assert hops(moves, np.array([[0, 1, 2, 3], [1, 0, 2, 2]]), 2) == pytest.approx((0.4 + 0.2 + 0.3, 0.0))


@pytest.mark.parametrize(("depth", "fetched"), [(1, [0, 2, 4, 6]), (2, [0, 0, 2, 4]), (3, [0, 0, 0, 2])])
def test_layers_are_fetched_into_buffers_as_they_become_free(depth, fetched):
    """Layers of 2 s each, there at once: a buffer is free when the layer that was in it is done."""
    tiers = Tiers(gpu_bytes=1.0, gpu_memory_bytes_per_s=1.0)
    asked = []
    end = walk(Lanes(tiers), 4, 2.0, lambda free_s: asked.append(free_s) or free_s, lambda done_s: None, depth=depth)
    assert (asked, end) == (fetched, 8)


@pytest.mark.parametrize("depth", [1, 2])
def test_drives_are_read_ahead_of_the_buffers(depth):
    """Reads may begin when a buffer so many layers before became free; the copy waits for both."""
    asked, copied = [], []
    fetch = staged(lambda s: asked.append(s) or s + 5, lambda s: copied.append(s) or s, depth)
    for free_s in (0.0, 1.0, 20.0, 30.0):
        fetch(free_s)
    assert asked == {1: [0, 0, 1, 20], 2: [0, 0, 0, 1]}[depth]
    assert copied == [max(f, a + 5) for f, a in zip((0, 1, 20, 30), asked, strict=True)]


@pytest.mark.parametrize(
    ("name", "knobs", "seconds"),
    [
        ("plain-copy", {}, 0.5 + 100 / 10),
        ("encrypted-serial", {"core_bytes_per_s": 5.0, "num_cores": 4, "call_s": 0.25}, 0.5 + 0.25 + 100 / 20 + 10),
        # a hit shows the slower of the link's 10 s and 20 - 4 s of encrypting; a miss 20 s, a tenth of 10 and the flush
        (
            "encrypted-pipelined",
            {"core_bytes_per_s": 5.0, "num_cores": 1, "call_s": 0.25, "hit_frac": 0.75, "flush_s": 2.0, "ahead_s": 4.0}
            | {"piece_bytes": 10.0},
            0.5 + 0.25 + 0.75 * 16 + 0.25 * (20 + 1 + 2),
        ),
        (
            "encrypted-pipelined",
            {"core_bytes_per_s": 50.0, "num_cores": 1, "call_s": 0.0, "hit_frac": 0.5, "flush_s": 0.0}
            | {"piece_bytes": 1000.0},
            0.5 + 0.5 * 10 + 0.5 * (10 + 2),
        ),
    ],
)
def test_transfers_of_a_hundred_bytes(name, knobs, seconds):
    """Ten bytes a second over the link, half a second until it starts; nothing takes no time."""
    technique = TRANSFERS.get(name)
    values = knob_array(technique, **knobs)
    assert technique.rule(100.0, 10.0, 0.5, values) == pytest.approx(seconds)
    assert technique.rule(0.0, 10.0, 0.5, values) == 0


def test_tables_of_operations(tmp_path):
    path = tmp_path / "program.csv"
    head = "operation,out_bytes,reads,flops,weight_bytes\n"
    path.write_text(head + "a,4,,0,\nb,1e18,a,7,5\nc,2,a b,,\n")
    found = read_program(path)
    assert [(o.name, o.out_bytes, o.reads, o.flops, dict(o.weights)) for o in found] == [
        ("a", 4, (), 0, {}),
        ("b", 1e18, ("a",), 7, {"b weights": 5}),
        ("c", 2, ("a", "b"), 0, {}),
    ]
    for row, says in (
        ("a,0,,0,", "out_bytes above 0"),
        ("a b,1,,0,", "without spaces"),
        (",1,,0,", "without spaces"),
        ("a,1.1e18,,0,", "write a number"),
        ("a,-1,,0,", "write a number"),
        ("a,x,,0,", "write a number"),
        ("a,1,b,0,", "no row above writes 'b'"),
        ("a,1,,0,\na,1,,0,", "stands twice"),
        ("", "has no operations"),
    ):
        path.write_text(head + row + "\n")
        with pytest.raises(Exception, match=says):
            read_program(path)
    path.write_text("operation,out_bytes\na,1\n")
    with pytest.raises(Exception, match="has no column reads"):
        read_program(path)
