"""Recurrent mixers: the state streams in decode, chunks multiply in prefill."""

import numpy as np
import pytest

from orrery.catalog.devices import device_names, get_device
from orrery.kernels.ops import Recurrent
from orrery.kernels.recurrent import calibration, predict
from orrery.kernels.recurrent.rule import ASSUMED

STATE = 128 * 64 * 128  # Mamba-2 of a 7B-class hybrid: heads x head size x state size


def decode(sequences) -> Recurrent:
    """One token for every sequence."""
    return Recurrent(tokens=sequences, sequences=sequences, state_elements=STATE, flops_per_token=5.0 * STATE)


def test_decode_moves_the_state_twice():
    device = get_device("h100-sxm")
    timing = predict(decode(64), device)
    assert timing.bytes == 64 * STATE * 4 * 2
    assert timing.time_s >= timing.memory_s


def test_decode_grows_with_sequences_and_starts_at_a_launch():
    device = get_device("h100-sxm")
    time = predict(decode(np.array([0, 1, 2, 8, 64, 512])), device).time_s
    assert time[0] == 0.0
    assert (np.diff(time) > 0).all()
    assert time[5] == pytest.approx(8 * time[4], rel=0.05)


def test_decode_does_not_know_how_long_the_context_is_but_prefill_does():
    device = get_device("h100-sxm")
    sizes = {"sequences": 1, "state_elements": STATE, "flops_per_token": 5.0 * STATE, "is_decode": False}
    time = predict(Recurrent(tokens=np.array([256, 4096, 65536]), **sizes), device)
    assert (time.time_s >= time.compute_s).all()
    assert time.time_s[2] == pytest.approx(16 * time.time_s[1], rel=0.1)


def test_chunks_of_one_sequence_follow_each_other():
    device = get_device("h100-sxm")
    sizes = {"tokens": 8192, "state_elements": 64, "flops_per_token": 1.0, "is_decode": False}
    one, many = (float(predict(Recurrent(sequences=s, **sizes), device).time_s) for s in (1, 32))
    assert one - many == pytest.approx(ASSUMED.step_s * (8192 / ASSUMED.chunk_tokens - 1), rel=0.3)


def test_arrays_and_single_numbers_agree():
    device = get_device("b200")
    many = predict(decode(np.array([1, 9, 300])), device).time_s
    assert many.tolist() == [float(predict(decode(s), device).time_s) for s in (1, 9, 300)]


def test_every_device_of_the_catalogue_answers_and_admits_that_it_guesses():
    for name in device_names():
        device = get_device(name)
        assert predict(decode(8), device).time_s > 0
    spread = calibration(decode(8), get_device("h100-sxm")).spread
    assert spread.high_80_ratio / spread.low_80_ratio > 2
    assert "no measurement" in spread.because
