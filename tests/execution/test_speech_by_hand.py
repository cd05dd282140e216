"""Transcription of windows: every kernel of a small model counted by hand, and what a batch of them adds up to."""

from dataclasses import replace

import numpy as np
import pytest

from orrery import kernels
from orrery.catalog.devices import get_device
from orrery.execution import speech
from orrery.execution.speech import FORMAT, WORD_BYTES, Windows, transcribe
from orrery.execution.speech_runtime import KERNELS_ALONE
from orrery.kernels.ops import AttentionDecode, AttentionPrefill, Elementwise, Gemm
from orrery.models.speech import SpeechModel

SMALL = SpeechModel(
    name="small", width=128, encoder_layers=2, decoder_layers=3, num_heads=2, vocab=1000, mels=80, source=""
)
DEVICE = get_device("h100-sxm")
NUM_TOKENS, BATCH = 40, 2


def windows(tokens=NUM_TOKENS, **more):
    return Windows(count=BATCH, tokens=tokens, **more)


ALONE = replace(KERNELS_ALONE, waits_for_longest=False)


def gemm(m, n, k):
    return Gemm(m=m, n=n, k=k, format="fp16", quantises_input=False)


def streams(rows, norms, times):
    return [
        (times * norms, Elementwise(kind="norm", tokens=rows, width=128)),
        (times * norms, Elementwise(kind="add", tokens=rows, width=128)),
        (times, Elementwise(kind="norm", tokens=rows, width=512)),
    ]


def heads(kind, **sizes):
    return kind(batch=BATCH, num_heads=2, num_kv_heads=2, head_size=64, format="fp16", kv_format="fp16", **sizes)


ENCODER = [
    (1, gemm(2 * 3000, 128, 3 * 80)),
    (1, gemm(2 * 1500, 128, 3 * 128)),
    (2 * 4, gemm(3000, 128, 128)),
    (2, gemm(3000, 512, 128)),
    (2, gemm(3000, 128, 512)),
    (2, heads(AttentionPrefill, query_tokens=1500, context_tokens=1500, is_causal=False)),
    *streams(3000, 2, 2),
]
CROSS = [(3 * 2, gemm(3000, 128, 128))]
STEP = [
    (3 * 6, gemm(2, 128, 128)),
    (3, gemm(2, 512, 128)),
    (3, gemm(2, 128, 512)),
    (3, heads(AttentionDecode, context_tokens=20)),  # half of the text on average
    (3, heads(AttentionDecode, context_tokens=1500)),
    *streams(2, 3, 3),
    (1, gemm(2, 1000, 128)),
    (1, Elementwise(kind="sample", tokens=2, width=1000)),
]


def summed(ops, column):
    return sum(count * float(np.sum(getattr(kernels.predict(op, DEVICE), column))) for count, op in ops)


def test_every_kernel_of_a_window_is_counted():
    done = transcribe(SMALL, DEVICE, windows(), ALONE)
    assert [stage.name for stage in done.stages] == ["encoder", "keys and values", "decoder"]
    for stage, ops, times in zip(done.stages, (ENCODER, CROSS, STEP), (1, 1, NUM_TOKENS), strict=True):
        assert stage.time_s == pytest.approx(times * summed(ops, "time_s"), rel=1e-12)
        assert stage.flops == pytest.approx(times * summed(ops, "flops"), rel=1e-12)
        assert stage.moved_bytes == pytest.approx(times * summed(ops, "bytes"), rel=1e-12)
    assert (FORMAT, WORD_BYTES) == ("fp16", 16 / 8)
    assert done.step_s == pytest.approx(summed(STEP, "time_s"), rel=1e-12)
    assert done.window_s == pytest.approx(sum(s.time_s for s in done.stages), rel=1e-12)


def test_products_of_a_window_are_its_multiply_adds():
    """Stem 6000 x 128 x 240 and 3000 x 128 x 384; a layer 12 d^2 a position; cross 2 d^2 a position and layer."""
    done = transcribe(SMALL, DEVICE, windows(), ALONE)
    products = 2 * (6000 * 128 * 240 + 3000 * 128 * 384 + 2 * 3000 * 12 * 128**2)
    scores = 2 * 2 * 2 * 2 * 1500**2 * 128  # layers, windows, scores and values, two operations
    assert done.stages[0].flops == pytest.approx(products + scores, rel=0.02)  # norms beside them
    assert done.stages[1].flops == 2 * 3 * 2 * 3000 * 128**2


def test_power_is_that_of_the_mean_rates():
    done = transcribe(SMALL, DEVICE, windows(), ALONE)
    rates = [sum(getattr(s, name) for s in done.stages) / done.window_s for name in ("flops", "moved_bytes")]
    assert done.power_w == pytest.approx(float(np.squeeze(kernels.energy.power_w(DEVICE, "fp16", *rates))))
    assert DEVICE.idle_power_w < done.power_w < DEVICE.power_limit_w


def test_a_text_of_one_token_attends_to_one():
    one = transcribe(SMALL, DEVICE, windows(1), ALONE)
    ops = [
        (n, heads(AttentionDecode, context_tokens=1) if getattr(op, "context_tokens", 0) == 20 else op)
        for n, op in STEP
    ]
    assert one.step_s == pytest.approx(summed(ops, "time_s"), rel=1e-12)
    assert one.stages[2].time_s == one.step_s


@pytest.mark.parametrize(
    ("columns", "bound"),
    [
        ({"time_s": 4.0, "compute_s": 1.0, "memory_s": 1.9, "overhead_s": 2.0}, "memory"),
        ({"time_s": 4.0, "compute_s": 1.9, "memory_s": 1.0, "overhead_s": 2.0}, "compute"),
        ({"time_s": 4.0, "compute_s": 1.9, "memory_s": 1.0, "overhead_s": 2.1}, "launch"),
    ],
)
def test_a_stage_is_bound_by_what_takes_most_of_it(monkeypatch, columns, bound):
    """A launch counts where it is more than half of a kernel."""
    plain = kernels.predict(gemm(8, 8, 8), DEVICE)
    monkeypatch.setattr(speech.kernels, "predict", lambda op, device: replace(plain, **columns))
    assert {s.bound_by for s in transcribe(SMALL, DEVICE, windows(), ALONE).stages} == {bound}


def test_a_stage_is_bound_by_what_most_of_its_seconds_wait_for(monkeypatch):
    """Of a step 3 x 6 products compute for 1 s each; all others wait for memory: fewer kernels, but 20 s in all."""
    plain = kernels.predict(gemm(8, 8, 8), DEVICE)
    others = sum(n for n, op in STEP) - 18

    def predict(op, device):
        is_square = isinstance(op, Gemm) and (op.n, op.k) == (128, 128)
        time_s = 1.0 if is_square else 20.0 / others
        bound = {"compute_s": 1.0, "memory_s": 0.0} if is_square else {"compute_s": 0.0, "memory_s": 1.0}
        return replace(plain, time_s=time_s, overhead_s=0.0, **bound)

    monkeypatch.setattr(speech.kernels, "predict", predict)
    assert transcribe(SMALL, DEVICE, windows(), ALONE).stages[2].bound_by == "memory"
    assert transcribe(SMALL, DEVICE, windows(), ALONE).stages[1].bound_by == "compute"


def test_beams_read_the_encoder_once_where_the_runtime_shares_it():
    """Three beams of two windows: six rows of every product; cross-attention for two windows, or for six."""
    beams = windows(beams=3)
    rows = {"batch": 6, "num_heads": 2, "num_kv_heads": 2, "head_size": 64, "format": "fp16", "kv_format": "fp16"}
    for shares, batch in ((True, 2), (False, 6)):
        done = transcribe(SMALL, DEVICE, beams, replace(ALONE, shares_cross_keys=shares))
        step = [
            (18, gemm(6, 128, 128)),
            (3, gemm(6, 512, 128)),
            (3, gemm(6, 128, 512)),
            (3, AttentionDecode(context_tokens=20, **rows)),
            (3, AttentionDecode(context_tokens=1500, **{**rows, "batch": batch})),
            *streams(6, 3, 3),
            (1, gemm(6, 1000, 128)),
            (1, Elementwise(kind="sample", tokens=6, width=1000)),
        ]
        assert done.step_s == pytest.approx(summed(step, "time_s"), rel=1e-12)


def test_scores_that_are_not_fused_go_through_memory():
    """Two products of 2 x 2 x 1500 rows, and a softmax of as many rows of 1500, in place of attention."""
    done = transcribe(SMALL, DEVICE, windows(), replace(ALONE, fuses_attention=False))
    apart = [
        (2, gemm(6000, 1500, 64)),
        (2, Elementwise(kind="softmax", tokens=6000, width=1500)),
        (2, gemm(6000, 64, 1500)),
    ]
    fused = [pair for pair in ENCODER if isinstance(pair[1], AttentionPrefill)]
    expected = summed(ENCODER, "time_s") - summed(fused, "time_s") + summed(apart, "time_s")
    assert done.stages[0].time_s == pytest.approx(expected, rel=1e-12)


def test_cast_weights_are_read_in_32_bits_and_written_in_16():
    """A layer of the decoder has 14 squares of 128: (4 + 2) bytes each, one and a half passes of (2 + 2)."""
    plain, cast = (transcribe(SMALL, DEVICE, windows(), replace(ALONE, casts_weights=c)) for c in (False, True))
    square = Elementwise(kind="norm", tokens=14 * 128, width=128)
    assert cast.step_s - plain.step_s == pytest.approx(3 * 1.5 * summed([(1, square)], "time_s"), rel=1e-9)


def test_the_host_is_waited_for_where_it_is_slower():
    """3 layers of 10 operators, 4 of a step, 2 windows of 3: 40 of 1 ms; 2 x 5 of the encoder; 7 ms between steps."""
    slow = replace(
        ALONE,
        operator_s=1e-3,
        step_s=7e-3,
        num_encoder_operators=5,
        num_decoder_operators=10,
        num_step_operators=4,
        num_window_operators=3,
    )
    done = transcribe(SMALL, DEVICE, windows(), slow)
    assert [stage.bound_by for stage in done.stages][::2] == ["host", "host"]
    assert done.stages[0].time_s == pytest.approx(0.010)
    assert done.step_s == pytest.approx(0.040 + 0.007)
    assert done.stages[2].time_s == pytest.approx(NUM_TOKENS * 0.047)
    quick = transcribe(SMALL, DEVICE, windows(), replace(slow, operator_s=1e-12, step_s=0.0))
    assert quick == transcribe(SMALL, DEVICE, windows(), ALONE)
    bare = transcribe(SMALL, DEVICE, windows(), replace(slow, window_operator_ratio=0.25))
    assert bare.step_s == pytest.approx(0.030 + 4e-3 + 2 * 3 * 0.25e-3 + 0.007)  # rules that are called on tensors
    layers = transcribe(SMALL, DEVICE, windows(), replace(ALONE, layer_s=1e-3))
    assert layers.step_s == pytest.approx(quick.step_s + 3e-3)


def test_a_graph_is_waited_for_before_the_device_works():
    """3 layers of 10 operators, 4 of a step, 2 windows of 3: 40 of 1 ms, beside nothing; 2 x 5 of the encoder."""
    counted = {"num_encoder_operators": 5, "num_decoder_operators": 10, "num_step_operators": 4}
    counted |= {"num_window_operators": 3}
    alone = transcribe(SMALL, DEVICE, windows(), replace(ALONE, **counted))
    graph = transcribe(SMALL, DEVICE, windows(), replace(ALONE, node_s=1e-3, **counted))
    assert graph.step_s == pytest.approx(alone.step_s + 0.040)
    assert graph.stages[0].time_s == pytest.approx(alone.stages[0].time_s + 0.010)
    assert graph.stages[1] == alone.stages[1]
    assert [stage.bound_by for stage in graph.stages][::2] == ["host", "host"]
