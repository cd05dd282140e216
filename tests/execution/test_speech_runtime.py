"""Runtimes of speech by hand: operators of a step, windows of a recording, and the longest text of a batch."""

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.execution.speech_runtime import KERNELS_ALONE, LENGTH_SPREAD, SpeechRuntime, longest

RUNTIME = SpeechRuntime(
    name="toy",
    operator_s=1e-5,
    sequence_s=1e-4,
    num_encoder_operators=20,
    num_decoder_operators=30,
    num_beam_operators=4,
    num_step_operators=10,
    num_window_operators=2,
    advance_s=20.0,
)


def test_operators_of_a_step_by_hand():
    # 8 layers of 30, 10 of the step, 3 windows of 2: 256 operators; with beams 4 more a layer
    assert RUNTIME.decoder_host_s(8, 3, 1) == pytest.approx(256e-5 + 3e-4)
    assert RUNTIME.decoder_host_s(8, 3, 5) == pytest.approx(288e-5 + 15e-4)
    assert RUNTIME.encoder_host_s(8) == pytest.approx(160e-5)
    assert KERNELS_ALONE.decoder_host_s(32, 64, 5) == KERNELS_ALONE.encoder_host_s(32) == 0.0


def test_a_graph_is_made_before_the_device_begins():
    graph = SpeechRuntime(
        name="g", node_s=2e-6, num_encoder_operators=20, num_decoder_operators=30, num_step_operators=10
    )
    # 8 layers of 30 and 10 of the step, at 2 us each; the encoder has 8 of 20
    assert graph.decoder_graph_s(8, 1, 1) == pytest.approx(500e-6)
    assert graph.encoder_graph_s(8) == pytest.approx(320e-6)
    assert graph.decoder_host_s(8, 1, 1) == 0.0  # nothing is launched beside it
    assert RUNTIME.decoder_graph_s(8, 3, 5) == RUNTIME.encoder_graph_s(8) == 0.0


def test_windows_that_overlap_are_more():
    # 90 s: 0-30, 20-50, 40-70, 60-90 with 20 s between starts; three of 30 s without overlap
    assert RUNTIME.num_windows(90.0) == 4
    assert KERNELS_ALONE.num_windows(90.0) == 3
    assert RUNTIME.num_windows(5.0) == RUNTIME.num_windows(30.0) == 1
    assert RUNTIME.num_windows(30.1) == 2
    assert RUNTIME.num_windows(9000.0) == 450


def test_the_longest_of_some_texts_is_what_draws_say():
    draw = random.Random(7)
    for count in (2, 8, 24):
        drawn = statistics.fmean(
            max(draw.gauss(100.0, 100.0 * LENGTH_SPREAD) for _ in range(count)) for _ in range(4000)
        )
        assert longest(100.0, count) == pytest.approx(drawn, rel=0.01)
    assert longest(100.0, 1) == 100.0


def test_only_batches_that_wait_end_with_the_longest():
    assert RUNTIME.tokens(100.0, 1, 448) == 100.0
    assert RUNTIME.tokens(100.0, 8, 448) == longest(100.0, 8)
    assert RUNTIME.tokens(440.0, 8, 448) == 448.0
    served = SpeechRuntime(name="served", waits_for_longest=False)
    assert served.tokens(100.0, 64, 448) == 100.0


@given(st.integers(1, 500), st.floats(1.0, 448.0))
def test_more_texts_never_end_sooner(count, mean):
    assert mean <= longest(mean, count) <= longest(mean, count + 1) < mean * (1 + 4 * LENGTH_SPREAD)
    assert math.isfinite(longest(mean, count))
