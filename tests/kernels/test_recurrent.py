"""Recurrent mixers: the state streams in decode, chunks follow each other in prefill, a convolution comes before."""

from math import ceil

import numpy as np
import pytest

from orrery.catalog.devices import device_names, get_device
from orrery.kernels.ops import Recurrent
from orrery.kernels.recurrent import _kernel as kernel
from orrery.kernels.recurrent import calibration, predict

HEADS = 32
STATE = HEADS * 128 * 128  # a gated delta net's: heads x key size x value size
SIZES = {
    "state_elements": STATE,
    "flops_per_token": 7.0 * STATE,
    "num_heads": HEADS,
    "width": 64 * 128,
    "conv_elements": 3 * 64 * 128,
}


def decode(sequences, **more) -> Recurrent:
    """One token for every sequence."""
    return Recurrent(tokens=sequences, sequences=sequences, **(SIZES | more))


def prefill(tokens, sequences=1, **more) -> Recurrent:
    """Prompts of equal length."""
    return Recurrent(tokens=tokens, sequences=sequences, is_decode=False, **(SIZES | more))


def norm(a, b, p):
    return (a**p + b**p) ** (1 / p)


MACHINE = np.array([1e15, 2e12, 100.0, 50e6])  # FLOP/s, bytes/s, units, bytes of cache


def test_a_decode_by_hand():
    """8 sequences of 2 MiB: 33.6 MB in and out at 0.8 x 2 TB/s are 20.97 us, joined with a launch of 4 us."""
    held = 8 * 2.0**21
    constants = np.array([4e-6, 0.8, 1.5, 3.0])
    time, launch = kernel.decode_s(8.0, 2.0**21, True, constants, MACHINE)
    work = 2 * held / 1.6e12
    assert time == pytest.approx(norm(4e-6, work, 1.5), rel=1e-12)
    assert launch == pytest.approx(time - work)
    warm, _ = kernel.decode_s(8.0, 2.0**21, False, constants, MACHINE)
    hit = 1 / (1 + (held / 50e6) ** 4)
    assert warm == pytest.approx(norm(4e-6, work * (1 - hit + hit / 3), 1.5), rel=1e-12)


def test_a_prefill_by_hand():
    """3 prompts of 1000 tokens, 64 heads on 100 units: 16 chunks in a row, in two waves.

    State: 3 x 4 MiB in and out at 0.5 x 2 TB/s; tokens: 3000 x 12288 x 2 bytes in and out at 0.1 x 2 TB/s.
    """
    constants = np.array([1e-5, 0.5, 0.1, 3e-6, 1.3, 1.7, 2.0])
    time, _ = kernel.prefill_s(3000.0, 3.0, 2.0**22, 12288.0, 64.0, True, constants, MACHINE)
    stream = 2 * 3 * 2.0**22 / 1e12 + 2 * 3000 * 12288 * 2 / 2e11
    chain = 3e-6 * ceil(1000 / 64) * ceil(3 * 64 / 100)
    assert time == pytest.approx(norm(1e-5, norm(stream, chain, 1.7), 1.3), rel=1e-12)


def test_a_convolution_by_hand():
    """100 MB at 0.7 x 2 TB/s, joined with a launch of 2 us."""
    time, _ = kernel.convolution_s(1e8, True, np.array([2e-6, 0.7, 1.0, 2.0]), MACHINE)
    assert time == pytest.approx(2e-6 + 1e8 / 1.4e12, rel=1e-12)


def test_a_layer_is_its_convolution_and_its_recurrence():
    device = get_device("h100-sxm")
    both = float(predict(decode(64), device, "sglang").time_s)
    alone = float(predict(decode(64, conv_elements=0), device, "sglang").time_s)
    assert both > alone
    moved = 2 * 64 * 64 * 128 * 2.0 + 2 * 64 * 3 * 64 * 128 * 2.0
    c = device.calibrations["convolution_decode", "any", "sglang"].constants
    work = moved / (c["token_frac"] * device.memory_bandwidth_bytes_per_s)
    assert both - alone == pytest.approx(norm(c["overhead_s"], work, c["overlap_power"]), rel=1e-9)


def test_decode_moves_the_state_twice_and_the_tokens_once_each_way():
    timing = predict(decode(64, conv_elements=0), get_device("h100-sxm"))
    assert timing.bytes == 64 * STATE * 4 * 2 + 64 * 2 * 64 * 128 * 2
    assert timing.time_s >= timing.memory_s


def test_decode_grows_with_sequences_and_starts_at_a_launch():
    time = predict(decode(np.array([0, 1, 2, 8, 64, 512])), get_device("h100-sxm")).time_s
    assert time[0] == 0.0
    assert (np.diff(time) > 0).all()
    assert time[5] == pytest.approx(8 * time[4], rel=0.12)


def test_decode_does_not_know_how_long_the_context_is_but_prefill_does():
    time = predict(prefill(np.array([256, 4096, 65536])), get_device("h100-sxm"))
    assert (time.time_s >= time.compute_s).all()
    assert time.time_s[2] == pytest.approx(16 * time.time_s[1], rel=0.1)


@pytest.mark.parametrize("name", ["h100-sxm", "b200", "l40s", "mi300x"])
@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm"])
def test_more_tokens_or_sequences_never_take_less_time(name, engine):
    device = get_device(name)
    tokens = np.unique(np.geomspace(1, 65536, 60).astype(np.int64))
    assert (np.diff(predict(prefill(tokens), device, engine).time_s) >= 0).all()
    assert (np.diff(predict(decode(np.arange(1, 300)), device, engine).time_s) >= 0).all()


def test_arrays_and_single_numbers_agree():
    device = get_device("b200")
    many = predict(decode(np.array([1, 9, 300])), device).time_s
    assert many.tolist() == [float(predict(decode(s), device).time_s) for s in (1, 9, 300)]


def test_a_model_reads_its_states_from_memory_and_a_loop_may_not():
    device = get_device("l40s")
    cold, warm = (float(predict(decode(4, is_cold=c), device, "vllm").time_s) for c in (True, False))
    assert warm < cold


@pytest.mark.parametrize("kind", ["gated-delta-net", "kimi-delta", "mamba2", "mamba1", "lightning"])
def test_every_device_of_the_catalogue_answers(kind):
    for name in device_names():
        device = get_device(name)
        assert predict(decode(8, kind=kind), device).time_s > 0
        assert predict(prefill(1000, kind=kind), device).time_s > 0


def test_what_was_never_measured_says_whose_constants_it_borrows():
    device = get_device("h100-sxm")
    own, mamba = (calibration(decode(8, kind=k), device, "vllm") for k in ("gated-delta-net", "mamba2"))
    assert mamba.constants == own.constants
    assert mamba.spread.high_80_ratio > own.spread.high_80_ratio
    assert "borrowed from recurrence_decode in gated-delta-net by vllm" in mamba.spread.because
    assert "borrowed" not in own.spread.because
