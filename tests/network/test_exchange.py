"""What must hold for every dispatch and combine, whatever its constants."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.network import TokenExchange, predict, spread
from orrery.network.exchange import exchange_plan, time_of, token_bytes, workers_of
from orrery.network.group import Group
from orrery.network.routing import Routing
from orrery.network.techniques import per_device

LIBRARIES = ("deepep-low-latency", "tensorrt-llm-two-sided")
libraries = st.sampled_from(LIBRARIES)
kinds = st.sampled_from(("moe_dispatch", "moe_combine"))
counts = st.sampled_from((2, 4, 8, 16, 64))
amounts = st.floats(1.0, 1e6)


def ask(kind="moe_dispatch", n=8, tokens=128, **more):
    sizes = {"hidden_size": 7168, "num_experts": 256, "experts_per_token": 8} | more
    return TokenExchange(kind=kind, num_devices=n, tokens=tokens, **sizes)


@given(kind=kinds, n=counts, tokens=amounts, factor=st.floats(1.0, 100.0), library=libraries)
def test_more_tokens_never_take_less_time(make_device, kind, n, tokens, factor, library):
    device = make_device()
    few, many = (predict(ask(kind, n, t, library=library), device) for t in (tokens, tokens * factor))
    assert many.time_s >= few.time_s
    assert few.time_s >= few.wire_s
    assert few.time_s >= few.latency_s


@given(kind=kinds, n=counts, tokens=amounts, library=libraries, power=st.integers(-8, 8))
def test_a_change_of_the_second_changes_every_answer_alike(make_device, kind, n, tokens, library, power):
    ratio = 2.0**power
    one = predict(ask(kind, n, tokens, library=library), make_device())
    other = predict(ask(kind, n, tokens, library=library), make_device(time_ratio=ratio))
    assert (other.time_s, other.wire_s, other.sent_bytes) == (ratio * one.time_s, ratio * one.wire_s, one.sent_bytes)


@given(kind=kinds, n=counts, tokens=amounts, library=libraries)
def test_twice_the_rate_is_never_slower(make_device, kind, n, tokens, library):
    slow, fast = (predict(ask(kind, n, tokens, library=library), make_device(rate_ratio=r)) for r in (1.0, 2.0))
    assert fast.time_s <= slow.time_s


@pytest.mark.parametrize("library", LIBRARIES)
def test_nothing_to_send_or_nobody_to_send_to_is_free(make_device, library):
    device = make_device()
    assert predict(ask(tokens=0, library=library), device).time_s == 0.0
    assert predict(ask(n=1, library=library), device).time_s == 0.0
    assert predict(ask(tokens=np.array([0, 8]), library=library), device).time_s[0] == 0.0


def test_arrays_say_what_numbers_say(make_device):
    device, tokens = make_device(), np.array([1, 17, 4096])
    together = predict(ask(tokens=tokens), device)
    for i, t in enumerate(tokens):
        alone = predict(ask(tokens=int(t)), device)
        for name in ("time_s", "wire_s", "latency_s", "sent_bytes"):
            assert getattr(together, name)[i] == pytest.approx(getattr(alone, name), rel=1e-12)


def test_one_copy_a_device_saves_bytes_when_experts_share_devices(make_device):
    device = make_device()
    each, shared = (predict(ask(tokens=4096, library=lib, format="fp8_block"), device) for lib in LIBRARIES)
    assert shared.sent_bytes < each.sent_bytes
    assert (each.algorithm, shared.algorithm) == ("per-expert", "per-device")


def test_results_return_in_sixteen_bits(make_device):
    device = make_device()
    sent = {kind: predict(ask(kind, tokens=64), device).sent_bytes for kind in ("moe_dispatch", "moe_combine")}
    assert sent["moe_combine"] / sent["moe_dispatch"] == pytest.approx(2.0 / 1.03125)


def test_few_experts_leave_most_of_the_device_idle(make_device):
    assert [workers_of(e, 132) for e in (8, 128, 132, 256, 288, 512)] == [8, 128, 132, 128, 96, 128]
    device = make_device()
    few, many = (predict(ask(tokens=1024, num_experts=e, experts_per_token=1), device) for e in (8, 128))
    assert few.time_s > 2 * many.time_s


def test_the_interval_is_wider_between_nodes(make_device):
    device = make_device()
    assert spread(ask(n=16), device).high_80_ratio > spread(ask(n=8), device).high_80_ratio


@pytest.mark.parametrize(
    ("kind", "library", "format", "each"),
    [
        ("moe_dispatch", "deepep-low-latency", "bf16", 1.03125),  # fp8, and 4 bytes of scale for 128 channels
        ("moe_dispatch", "tensorrt-llm-two-sided", "bf16", 2.0),
        ("moe_dispatch", "tensorrt-llm-two-sided", "fp8", 1.0),
        ("moe_combine", "deepep-low-latency", "fp8", 2.0),  # results are summed in bf16
        ("moe_prepare", "deepep-low-latency", "bf16", 0.0),  # counts only
    ],
)
def test_bytes_of_a_copy(kind, library, format, each):
    assert token_bytes(kind, library, 4096, format) == 4096 * each


def test_nobody_to_send_to_has_an_empty_plan(make_device):
    group = Group(kind="all_to_all", num_devices=1, per_node=1)
    plan = exchange_plan(
        Routing(group=group, num_experts=8, experts_per_token=2), "moe_dispatch", 1e3, make_device(), {}
    )
    numbers = plan.latency_s, plan.slope_s_per_tokens, plan.roof_s_per_tokens, plan.sent_bytes_per_tokens
    assert (plan.name, plan.exponent_ratio, numbers) == ("none", 1.0, (0.0, 0.0, 0.0, 0.0))


@pytest.mark.parametrize(("topology", "crowd"), [("switch", 1.0), ("mesh", 7 / 3)])
def test_one_exchange_by_hand(make_device, topology, crowd):
    """Two nodes of four, 16 experts, 3 a token, 1000 bytes a copy. Of 3 copies 3/8 x 3 stay on the node's links, half
    cross. All 3 are copied once more in memory, at 0.2 each. A mesh of 7 links with 4 members has 3 of them in use.
    """
    device = make_device(topology=topology)
    group = Group(kind="all_to_all", num_devices=8, per_node=4, topology=topology, links=7)
    routing = Routing(group=group, num_experts=16, experts_per_token=3)
    constants = {
        "launch_s": 1e-5,
        "expert_s": 2e-8,
        "token_s": 1.6e-6,
        "wire_rate_frac": 0.5,
        "staging_ratio": 0.2,
        "scaleout_rate_frac": 0.9,
        "per_expert": 1.0,
    }
    plan = exchange_plan(routing, "moe_dispatch", 1000.0, device, constants)
    near = (3 * 3 / 8 + 0.2 * 3) * crowd * 1000 / (0.5 * 400e9)
    far = 3 * 4 / 8 * 1000 / (0.9 * 50e9)
    assert plan.slope_s_per_tokens == pytest.approx(1.6e-6 / 16 + max(near, far))  # a block for each of 16 experts
    assert plan.latency_s == pytest.approx(1e-5 + 16 * 2e-8 + 5e-6)  # the link's own step between nodes
    assert plan.roof_s_per_tokens == pytest.approx(1000 * max(9 / 8 * crowd / 400e9, 3 / 2 / 50e9))
    assert plan.sent_bytes_per_tokens == pytest.approx(1000 * (9 / 8 + 3 / 2))
    assert plan.exponent_ratio == 1.0
    inside = Group(kind="all_to_all", num_devices=4, per_node=4, topology=topology, links=7)
    alone = exchange_plan(
        Routing(group=inside, num_experts=16, experts_per_token=3), "moe_dispatch", 1000.0, device, constants
    )
    assert alone.slope_s_per_tokens == pytest.approx(1e-7 + (3 * 3 / 4 + 0.6) * crowd * 1000 / (0.5 * 400e9))
    assert alone.latency_s == pytest.approx(1e-5 + 16 * 2e-8)


@pytest.mark.parametrize(("num_sms", "workers"), [(0, 20), (24, 24)])
def test_a_throughput_kernel_has_the_units_that_it_is_given(make_device, num_sms, workers):
    """132 units, of which it takes so many: 1/(0.5 rate) + 132 / (workers x 0.8 rate) a byte; eight in one node."""
    group = Group(kind="all_to_all", num_devices=8, per_node=8)
    routing = Routing(group=group, num_experts=8, experts_per_token=1)
    constants = {
        "launch_s": 1e-5,
        "token_s": 1e-6,
        "wire_rate_frac": 0.5,
        "sm_rate_frac": 0.8,
        "per_device": 1.0,
        "overlap_power": 2.0,
    }
    plan = exchange_plan(routing, "moe_dispatch", 1e4, make_device(), constants, num_sms)
    per_byte = 1 / (0.5 * 400e9) + 132 / (workers * 0.8 * 400e9)
    assert plan.slope_s_per_tokens == pytest.approx(1e-6 / workers + 7 / 8 * 1e4 * per_byte)
    tokens = 8.0
    joined = (plan.latency_s**2 + (tokens * plan.slope_s_per_tokens) ** 2) ** 0.5
    assert time_of(plan, np.array([tokens])) == pytest.approx([joined])


def test_copies_across_three_nodes():
    """Six devices, two a node, 6 experts, 1 a token: of one node hit on average, two thirds are other nodes."""
    group = Group(kind="all_to_all", num_devices=6, per_node=2)
    copies = per_device.rule(Routing(group=group, num_experts=6, experts_per_token=1))
    assert copies.across_ratio == pytest.approx(2 / 3)
    assert (copies.inside_ratio, copies.local_ratio) == (pytest.approx(1 / 2), pytest.approx(1.0))
    assert copies.num_out_steps == 2 * 2  # counts, and the end: log2 of three nodes, rounded up
