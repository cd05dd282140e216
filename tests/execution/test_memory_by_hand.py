"""Memory of a device of 100,000 bytes, and caches on their way, with round numbers in place of a model's."""

from dataclasses import dataclass, replace
from math import inf
from types import SimpleNamespace

import pytest

from orrery.base.errors import ScenarioError
from orrery.execution import memory, transfer
from orrery.execution.layout import Layout
from orrery.execution.memory import (
    Infeasible,
    activation_bytes,
    communication_bytes,
    forward_bytes,
    max_num_batched_tokens,
    max_num_seqs,
    memory_of,
    recv_interval,
    sampling_bytes,
)
from orrery.execution.shard import Cache
from orrery.execution.transfer import Transfer, holders, host_link, link_between, num_parallel, pieces_of
from orrery.models.model import Experts, RecurrentMixer, SoftmaxAttention

CACHE = Cache(bytes_per_token=2.0, windows=(), bytes_per_sequence=0.0)


def deployed(capacity=100_000.0, frac=0.0, tp=1, pp=1, dp=1, ep=1, cp=1, **engine):
    usual = {
        "name": "vllm",
        "max_num_seqs": 8,
        "max_num_server_seqs": {},
        "max_num_drafted_seqs": 0,
        "window_room_frac": 0.0,
        "window_room_fracs": {},
        "state_room_frac": 0.0,
        "num_states_each": 1,
        "max_num_batched_tokens": 10,
        "num_steps_per_recv": 3,
        "memory_utilization_frac": 0.9,
        "context_bytes": 500.0,
        "is_static_share": False,
        "is_utilization_of_free": False,
        "block_tokens": 16,
        "sampling_logit_bytes": 6.0,
        "cache_pieces": "layers",
    }
    return SimpleNamespace(
        cluster=SimpleNamespace(device=SimpleNamespace(name="d", memory_capacity_bytes=capacity)),
        engine=SimpleNamespace(**(usual | engine)),
        model=SimpleNamespace(name="m", family="f", hidden_size=7, vocab_size=100),
        formats=SimpleNamespace(weights="bf16", activations="bf16"),
        layout=Layout(tp=tp, pp=pp, dp=dp, ep=ep, cp=cp),
        memory_utilization_frac=frac,
        max_num_seqs=0,
        max_num_batched_tokens=0,
        scheduler_recv_interval=0,
        draft_head=None,
        adapters=None,
        weight_offload=None,
    )


@pytest.fixture
def held(monkeypatch):
    """Weights of 30,000 bytes, activations of 4,000, buffers of 2,000."""
    parts = {"cache": CACHE, "weights": 30_000.0}
    monkeypatch.setattr(memory, "shard", lambda d: SimpleNamespace(weight_bytes=parts["weights"]))
    monkeypatch.setattr(memory, "cache_of", lambda d: parts["cache"])
    monkeypatch.setattr(memory, "activation_bytes", lambda d: 4_000.0)
    monkeypatch.setattr(memory, "forward_bytes", lambda d: 0.0)
    monkeypatch.setattr(memory, "communication_bytes", lambda d: 2_000.0)
    return parts


def test_what_engines_leave_to_the_cache(held):
    """A process finds 99,000 bytes. vLLM fills 0.9 of them; SGLang leaves activations beside; TensorRT-LLM takes 0.9 of
    what is free."""
    vllm = memory_of(deployed())
    assert vllm.kv_capacity_bytes == pytest.approx(89_100 - 36_500)
    assert vllm.usable_bytes == pytest.approx(89_100)
    assert vllm.kv_capacity_tokens == 1643 * 16  # 52,600 bytes are 1643.75 blocks of 32
    assert (vllm.capacity_bytes, vllm.max_num_seqs, vllm.max_num_batched_tokens) == (100_000.0, 8, 10)
    sglang = memory_of(deployed(is_static_share=True))
    assert sglang.kv_capacity_bytes == pytest.approx(89_100 - 32_500)
    assert sglang.usable_bytes == pytest.approx(89_100 + 4_000)
    trt = memory_of(deployed(is_utilization_of_free=True))
    assert trt.kv_capacity_bytes == pytest.approx(0.9 * (99_000 - 36_500))
    assert memory_of(deployed(frac=0.5)).kv_capacity_bytes == pytest.approx(49_500 - 36_500)
    assert vllm.sequences(100.0) == pytest.approx(52_600 / 200)
    held["cache"] = replace(CACHE, windows=((100, 5.0),), bytes_per_sequence=100.0)
    bounded = memory_of(deployed())
    assert bounded.kv_capacity_tokens == 1625 * 16  # 600 bytes less
    held["cache"] = Cache(bytes_per_token=0.0, windows=(), bytes_per_sequence=0.0)
    assert memory_of(deployed()).kv_capacity_tokens == inf
    assert memory_of(deployed()).sequences(5.0) == inf


def test_weights_that_leave_no_room(held):
    """82,600 bytes of weights leave nothing of 89,100; a half of them on two devices is enough."""
    held["weights"] = 82_568.0
    found = memory_of(deployed())
    assert isinstance(found, Infeasible)
    assert (found.need, found.have, found.unit) == (89_068.0, pytest.approx(89_100.0), "bytes")
    assert "Cut it over 2 devices" in found.smallest_change
    held["weights"] = 82_567.0  # a block of 16 tokens and a byte
    assert not isinstance(memory_of(deployed()), Infeasible)
    held["weights"] = 300_000.0
    # on eight devices 75,000 and 6,500, more than 0.9 of 89,100
    assert "Cut it over 16 devices" in memory_of(deployed(tp=2)).smallest_change
    held["weights"] = 1e12
    assert memory_of(deployed()).smallest_change.startswith("Store the weights in fewer bits, or use")
    free = memory_of(deployed(is_utilization_of_free=True))
    assert free.have == pytest.approx(99_000.0)


def linear(name, n, k, groups=1, is_head=False):
    return SimpleNamespace(name=name, n=n, k=k, groups=groups, is_head=is_head)


def test_the_widest_layer_and_sampling(monkeypatch):
    """Ten tokens of two bytes: twice 7 wide, and the widest product: 30 + 7 in and out, or 40 and 20 after a gate."""
    linears = [linear("qkv", 30, 7), linear("head", 999, 7, is_head=True)]
    cut = SimpleNamespace(linears=linears, experts=[])
    monkeypatch.setattr(memory, "shard", lambda d: cut)
    assert forward_bytes(deployed()) == 2 * 10 * (14 + 37)
    linears.append(linear("gate_up", 40, 7))
    assert forward_bytes(deployed()) == 2 * 10 * (14 + 60)
    linears.append(linear("out", 20, 10, groups=3))
    assert forward_bytes(deployed()) == 2 * 10 * (14 + 90)
    experts = Experts(num_experts=8, experts_per_token=4, hidden_size=7, ffn_size=50)
    cut.experts.append(SimpleNamespace(experts=experts, tp=2, ep=2))
    assert forward_bytes(deployed()) == 2 * 10 * (14 + 2 * 4 * (25 + 7) // 2)
    assert sampling_bytes(deployed()) == 8 * 100 * 6.0
    assert activation_bytes(deployed()) == 4800.0
    assert activation_bytes(deployed(sampling_logit_bytes=1.0)) == forward_bytes(deployed())
    asked = deployed()
    asked.max_num_seqs, asked.max_num_batched_tokens, asked.scheduler_recv_interval = 2, 30, 7
    assert (max_num_seqs(asked), max_num_batched_tokens(asked), recv_interval(asked)) == (2, 30, 7)
    assert (max_num_seqs(deployed()), recv_interval(deployed()), recv_interval(deployed(num_steps_per_recv=0))) == (
        8,
        3,
        1,
    )


def test_ranks_share_a_limit_that_an_engine_sets_for_a_family():
    """12 of a server on 4 attention ranks: 3 each, never fewer than one, nor more than a rank's own."""
    limited = {"max_num_server_seqs": {"f": 12}}
    assert max_num_seqs(deployed(dp=4, **limited)) == 3
    assert max_num_seqs(deployed(dp=16, **limited)) == 1
    assert max_num_seqs(deployed(**limited)) == 8
    assert max_num_seqs(deployed(dp=4, max_num_server_seqs={"g": 12})) == 8
    asked = deployed(dp=4, **limited)
    asked.max_num_seqs = 5
    assert max_num_seqs(asked) == 5


def test_ranks_share_a_limit_of_drafted_answers():
    """20 of a server on 4 attention ranks, where answers are drafted; a family's own limit goes first."""
    drafted = deployed(dp=4, max_num_drafted_seqs=20)
    assert max_num_seqs(drafted) == 8
    drafted.draft_head = object()
    assert max_num_seqs(drafted) == 5
    family = deployed(dp=4, max_num_drafted_seqs=20, max_num_server_seqs={"f": 12})
    family.draft_head = object()
    assert max_num_seqs(family) == 3
    none = deployed(dp=4)
    none.draft_head = object()
    assert max_num_seqs(none) == 8
    asked = deployed(max_num_drafted_seqs=2)
    asked.draft_head, asked.max_num_seqs = object(), 5
    assert max_num_seqs(asked) == 5


def test_layers_with_a_window_have_a_pool_of_their_own(held):
    """52,600 bytes; 2 a token of layers that keep all, 5 of those with a window of 100: at a half of the room 4.5 a
    token of the first. 200 tokens take 200 of them and 100 of the others, 150 and 100 what 200 do, 50 what 100 do."""
    held["cache"] = replace(CACHE, windows=((100, 5.0),), bytes_per_sequence=100.0)
    parted = memory_of(deployed(window_room_frac=0.5))
    assert [parted.taken_bytes(n) for n in (50, 100, 150, 200, 1000)] == [550.0, 1000.0, 1000.0, 1000.0, 4600.0]
    assert parted.sequences(1000.0) == pytest.approx(52_600 / 4600)
    assert parted.kv_capacity_tokens == 729 * 16  # 52,500 bytes are 729.17 blocks of 72
    whole = memory_of(deployed(window_room_frac=1.0))
    assert [whole.taken_bytes(n) for n in (50, 200)] == [450.0, 1500.0]  # every layer keeps every token
    as_needed = memory_of(deployed())
    assert [as_needed.taken_bytes(n) for n in (50, 200)] == [450.0, 1000.0]
    other = memory_of(deployed(window_room_frac=1.0, window_room_fracs={"f": 0.5}))
    assert other.taken_bytes(200) == 1000.0
    assert memory_of(deployed(window_room_frac=1.0, window_room_fracs={"g": 0.5})).taken_bytes(200) == 1500.0
    held["cache"] = CACHE
    assert memory_of(deployed(window_room_frac=0.5)).taken_bytes(200) == 400.0  # no windows
    held["cache"] = Cache(bytes_per_token=0.0, windows=((100, 5.0),), bytes_per_sequence=0.0)
    assert memory_of(deployed(window_room_frac=0.5)).taken_bytes(200) == 500.0  # windows alone


def test_recurrent_states_have_a_pool_of_their_own(held):
    """52,600 bytes parted 1 to 0.25: 42,080 for 2 a token, 10,520 for states of 100 of which a sequence takes two. 53
    sequences fit, and 21 of 1,000 tokens."""
    held["cache"] = replace(CACHE, bytes_per_sequence=100.0)
    parted = memory_of(deployed(state_room_frac=0.25, num_states_each=2))
    assert parted.sequences(100.0) == pytest.approx(10_520 / 200)
    assert parted.sequences(1000.0) == pytest.approx(42_080 / 2000)
    assert parted.kv_capacity_tokens == 1315 * 16  # 42,080 bytes are 1,315 blocks of 32
    assert memory_of(deployed()).sequences(1000.0) == pytest.approx(52_600 / 2100)  # as needed
    held["cache"] = replace(CACHE, bytes_per_sequence=100.0, windows=((100, 5.0),))
    both = memory_of(deployed(state_room_frac=0.25, num_states_each=2, window_room_frac=0.5))
    assert both.taken_bytes(1000.0) == 1.25 * 4500
    held["cache"] = CACHE
    assert memory_of(deployed(state_room_frac=0.25)).taken_bytes(100.0) == 200.0  # no states
    held["cache"] = Cache(bytes_per_token=0.0, windows=(), bytes_per_sequence=100.0)
    assert memory_of(deployed(state_room_frac=0.25)).taken_bytes(100.0) == 100.0  # states alone


def test_buffers_of_collectives():
    """A message of ten tokens, 7 wide, in two bytes, twice; none on a single device."""
    assert communication_bytes(deployed()) == 0.0
    assert communication_bytes(deployed(dp=2)) == 0.0
    for degrees in ({"tp": 2}, {"pp": 2}, {"dp": 2, "ep": 2}):
        assert communication_bytes(deployed(**degrees)) == 2 * 2 * 10 * 7


@dataclass(frozen=True)
class Cut:
    """Two of four layers of attention on the fullest stage, beside two that keep a state."""

    stage_share: float = 0.5

    @property
    def mixers(self):
        heads = SoftmaxAttention(num_heads=1, num_kv_heads=1, head_size=1, value_head_size=1)
        state = RecurrentMixer(kind="x", num_heads=1, state_elements=1, conv_elements=1, flops_per_token=1.0)
        return [SimpleNamespace(mixer=m, count=4.0) for m in (heads, state)]


@pytest.fixture
def links(monkeypatch):
    """Inside a node 100 B/s after 1 s, between nodes 10 B/s after 2 s."""
    monkeypatch.setattr(transfer, "shard", lambda d: Cut())
    monkeypatch.setattr(transfer, "cache_of", lambda d: replace(CACHE, windows=((9, 1.0),)))
    monkeypatch.setattr(transfer, "PIECE_S", 0.25)
    rates = {True: Transfer(100.0, 1.0), False: Transfer(10.0, 2.0)}
    monkeypatch.setattr(transfer, "_point_to_point", lambda device, same_node: rates[same_node])


def test_pieces_of_a_cache(links):
    """Keys and values of two layers; a block of 16 tokens of three bytes is 48, or 12 of each piece."""
    assert pieces_of(deployed()) == (4.0, inf)
    assert pieces_of(deployed(cache_pieces="blocks")) == (1.0, 48.0)
    assert pieces_of(deployed(cache_pieces="layers and blocks")) == (4.0, 12.0)


def test_caches_between_replicas(links):
    """Four devices on one side, two on the other: two pairs; four pieces start after one another."""
    wide, narrow = deployed(tp=2, pp=2), deployed(tp=2)
    assert (num_parallel(wide), num_parallel(deployed(tp=2, pp=3, cp=2))) == (4, 12)
    assert (holders(wide), holders(deployed(tp=2, cp=3))) == (4.0, 12.0)
    assert link_between(wide, narrow, same_node=True) == Transfer(pytest.approx(200.0), 2.0)
    assert link_between(wide, narrow, same_node=False) == Transfer(pytest.approx(20.0), 3.0)
    blocks = deployed(tp=2, cache_pieces="blocks")
    assert link_between(blocks, wide, same_node=False)[0] == pytest.approx(2 / (0.1 + 0.25 / 48))
    assert transfer.kv_bytes(wide, 100.0) == (200 + 9) * 4.0
    assert transfer.kv_bytes_per_token(wide) == 8.0


def test_links_to_the_host():
    given = deployed(tp=4)
    given.cluster.device.host = SimpleNamespace(each_way_bytes_per_s=10.0, latency_s=3.0)
    share = transfer.HOST_RATE_FRAC
    assert host_link(given) == Transfer(pytest.approx(40 * share), 3.0)
    assert host_link(given, host_memory_bytes_per_s=7.0) == Transfer(7.0, 3.0)
    with pytest.raises(ScenarioError, match="write more than 0"):
        host_link(given, host_memory_bytes_per_s=0.0)
