"""Networks cut over a link, weights that stream through a window, and speech: from parts of round numbers."""

from math import inf
from types import SimpleNamespace

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.scenario import split, split_parts, split_session, weight_window
from orrery.scenario.schema import read_scenario
from orrery.scenario.speech import SpeechAnswer

# --- a session over a link


def cut(name):
    return SimpleNamespace(name=name)


def network():
    """Units a, b and c of 10, 20 and 30 weights; an encoder of n channels after b has 5 n."""

    def unit(name, weights):
        return SimpleNamespace(
            name=name,
            num_weights=weights,
            squeezed=lambda n: SimpleNamespace(encoder=SimpleNamespace(num_weights=5 * n)),
        )

    return SimpleNamespace(units=[unit("a", 10), unit("b", 20), unit("c", 30)], num_elements=8)


def test_weights_that_the_device_holds_for_each_cut():
    """None where the server does all; units up to the cut, and the encoder; all where the device does all."""
    cuts = [cut(split_session.SERVER), cut("a"), cut("b:4"), cut("c"), cut(split_session.DEVICE)]
    assert split_session.head_bytes(cuts, network(), 2.0) == [0, 20, 100, 120, 120]


def test_the_quality_of_a_cut_is_its_channels():
    assert split_session._quality(cut("b:4")) == 4.0
    assert split_session._quality(cut("b")) == split_session.LOSSLESS


def test_the_cut_for_a_whole_session():
    """In time most often, then (with a limit) the widest, then the soonest; both ends stand beside it."""
    cuts = [cut(split_session.SERVER), cut("b:4"), cut("b:2"), cut(split_session.DEVICE)]
    delays = np.array([[1.0, 2.0, 1.5, 9.0], [9.0, 2.5, 2.0, 9.0]])
    quality = np.array([1e18, 4.0, 2.0, 1e18])
    assert split_session._throughout(cuts, delays, quality, 3.0) == [1, 0, 3]
    assert split_session._throughout(cuts, delays, quality, inf) == [2, 0, 3]
    assert split_session._throughout(cuts, delays, quality, 2.0) == [2, 0, 3]  # the wide one is late once
    assert split_session._throughout(cuts, delays, quality, 9.0) == [0, 3]


def test_how_long_a_battery_lasts():
    """6 J in 2 s of every 5, and 3 s at 1 W: 1.8 W. Frames that take longer than their pace follow each other."""
    inputs = SimpleNamespace(battery_j=90.0, watts=SimpleNamespace(idle_w=1.0))
    busy = SimpleNamespace(mean_s=2.0, mean_energy_j=6.0)
    assert split_session._battery_s(busy, inputs, 5.0) == pytest.approx(90 / 1.8)
    assert split_session._battery_s(busy, inputs, 1.0) == pytest.approx(90 / 3.0)
    inputs.battery_j = 0.0
    assert split_session._battery_s(busy, inputs, 5.0) is None


def test_bounds_that_are_none():
    assert split._bound(inf) is None
    assert split._bound(5.0) == 5.0


@pytest.mark.parametrize("text", ["8,4,8", "8, 1,3,8"])
def test_widths_of_a_converter(text):
    assert split_parts.widths_of(text, network()) == [int(word) for word in text.split(",")]


@pytest.mark.parametrize("text", ["8,8", "8,0,8", "7,4,8", "8,4,7", "8,x,8", "8,-4,8", "8,4", "8,12345678,8"])
def test_widths_that_are_none(text):
    with pytest.raises(ScenarioError, match="such as 8,1,8"):
        split_parts.widths_of(text, network())


def test_rates_are_bytes_of_megabits():
    assert split_parts.rates_of("8,0.8") == [1e6, 1e5]
    for text in ("0", "-1", "1,inf", "1,x", ""):
        with pytest.raises(ScenarioError, match="write Mbit/s above 0"):
            split_parts.rates_of(text)


# --- weights that stream


def machine(monkeypatch, tp=2, **more):
    """A model of 2 blocks of 100 + 60 weights, an embedding of 40 and a head of 40; every product takes 1 s for each
    thousand multiply-adds, attention 7 s of a prompt and 3 s of a token."""
    asked = []

    def predict(op, device):
        asked.append(op)
        if isinstance(op, weight_window.Gemm):
            return SimpleNamespace(time_s=op.m * op.n * op.k / 1000.0)
        return SimpleNamespace(time_s=7.0 if isinstance(op, weight_window.AttentionPrefill) else 3.0)

    monkeypatch.setattr(weight_window, "kernels", SimpleNamespace(predict=predict))

    def linear(role, out, into):
        return SimpleNamespace(role=role, out_features=out, in_features=into, num_parameters=out * into)

    block = SimpleNamespace(
        count=2, linears=[linear("attention", 10, 6), linear("attention", 4, 10), linear("mlp", 6, 10)]
    )
    model = SimpleNamespace(
        weights_format="bf16",
        hidden_size=10,
        embedding_parameters=40,
        blocks=[block],
        head=linear("head", 4, 10),
    )
    device = SimpleNamespace(scaleout=SimpleNamespace(each_way_bytes_per_s=100.0, latency_s=0.25))
    settings = {"tp": tp, "drive_bytes_per_s": 10.0, "input_tokens": 3, "output_tokens": 9} | more
    found = weight_window._Machine(read_scenario(settings), model, device)
    monkeypatch.setattr(found, "_attention_s", lambda block, is_prompt: 7.0 if is_prompt else 3.0)
    return found, asked


def test_blocks_of_a_pass_through_the_window(monkeypatch):
    """Two bytes a weight in the file, four in memory, 10 bytes/s from the drive, half of a block on each machine."""
    one, _ = machine(monkeypatch)
    monkeypatch.setitem(weight_window.WAYS, "star", lambda devices, message, wait_s, rate: message / rate + wait_s)
    prompt, later = (list(one.blocks(is_prompt=is_prompt)) for is_prompt in (True, False))
    elements = [40, 50, 30, 50, 30, 40]
    for blocks in (prompt, later):
        assert [b.held_bytes for b in blocks] == [4 * n for n in elements]
        assert [b.copied_bytes for b in blocks] == [2 * n for n in elements]
        assert [b.load_s for b in blocks] == [0.2 * n for n in elements]
    sum_s = 10 * 4 / 100 + 0.25  # of one token
    attention, mlp = (5 * 6 + 2 * 10) / 1000, 3 * 10 / 1000
    both = [attention + 3.0 + sum_s, mlp + sum_s]
    assert [b.busy_s for b in later] == pytest.approx([0.0, *both, *both, 0.04])
    sum_s = 3 * 10 * 4 / 100 + 0.25
    both = [3 * attention + 7.0 + sum_s, 3 * mlp + sum_s]
    assert [b.busy_s for b in prompt] == pytest.approx([0.0, *both, *both, 0.04])


def test_links_and_widths_as_they_are_said(monkeypatch):
    plain, _ = machine(monkeypatch)
    assert (plain.link_bytes_per_s, plain.link_s, plain.held_bytes, plain.exchange) == (100.0, 0.25, 4.0, "star")
    told, _ = machine(monkeypatch, link_bytes_per_s=7.0, link_s=0.0, weights="fp16", exchange="ring", tp=None)
    assert (told.link_bytes_per_s, told.link_s, told.held_bytes, told.exchange) == (7.0, 0.0, 2.0, "ring")
    assert told.num_devices == 1


# --- speech


def transcribed(**more):
    """Six recordings of 60 s in windows of 30, five at a time: 12 windows, 3 rounds of 4 s at 50 W; a tenth of the
    seconds of speech is prepared at 10 W."""
    usual = {
        "batch": 6,
        "audio_s": 60.0,
        "num_windows": 12,
        "window_batch": 5,
        "runtime": SimpleNamespace(preparation_ratio=0.1, spread=None),
        "transcribed": SimpleNamespace(window_s=4.0, power_w=50.0),
        "device": SimpleNamespace(idle_power_w=10.0),
        "tariff": SimpleNamespace(usd_per_s=lambda n, w: 0.001 * n),
    }
    return SimpleNamespace(**usual | more)


def figure(name, of):
    return getattr(SpeechAnswer, name).fget(of)


def test_a_batch_of_recordings_by_hand():
    one = transcribed()
    for name in ("num_rounds", "preparation_s", "latency_s", "audio_s_per_s", "energy_j_per_audio_hour", "power_w"):
        setattr(one, name, figure(name, one))
    assert (one.num_rounds, one.preparation_s, one.latency_s) == (3, 36.0, 48.0)
    assert one.audio_s_per_s == 360 / 48
    joules = 50 * 12 + 10 * 36
    assert one.energy_j_per_audio_hour == pytest.approx(joules * 10)
    assert one.power_w == pytest.approx(joules / 48)
    assert figure("usd_per_audio_hour", one) == pytest.approx(0.001 * 3600 / 7.5)
    one.tariff = SimpleNamespace(usd_per_s=lambda n, w: None)
    assert figure("usd_per_audio_hour", one) is None
