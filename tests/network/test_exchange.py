"""What must hold for every dispatch and combine, whatever its constants."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.network import TokenExchange, predict, spread
from orrery.network.exchange import workers_of

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
        assert together.time_s[i] == pytest.approx(predict(ask(tokens=int(t)), device).time_s, rel=1e-12)


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
