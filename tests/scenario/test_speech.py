"""Speech to text by orrery estimate: published sizes, the arithmetic by hand, limits and refusals."""

import json
from pathlib import Path

import pytest

import orrery
from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.catalog.speech import find_speech, get_speech, speech_names
from orrery.catalog.speech_runtimes import fitted_constants
from orrery.evidence.accuracy import read_tables
from orrery.execution.speech import Windows, transcribe
from orrery.models.speech import SpeechModel

PAGE = (Path(__file__).parents[2] / "docs" / "speech.md").read_text(encoding="utf-8")
ASKED = {"model": "whisper-large-v3", "device": "l4", "batch": 4, "audio_s": 90, "engine": "kernels"}


def test_models_have_their_published_sizes():
    # millions, as the paper's table 1 and the model cards state them
    stated = {"tiny": 39, "base": 74, "small": 244, "medium": 769, "large-v2": 1550, "large-v3-turbo": 809}
    for name, millions in stated.items():
        assert get_speech(f"whisper-{name}").num_parameters / 1e6 == pytest.approx(millions, rel=0.035), name
    assert get_speech("distil-large-v3").num_parameters / 1e6 == pytest.approx(756, rel=0.01)
    assert find_speech("OpenAI/Whisper-Large_v3") == "openai/whisper-large-v3"
    assert find_speech("llama-3.1-8b") is None
    assert len(speech_names()) == 8


def test_operations_by_hand():
    # two features, one layer each side, one head; a window of one sequence and two tokens
    model = SpeechModel(name="toy", width=128, encoder_layers=1, decoder_layers=1, num_heads=2, vocab=1000, mels=80)
    encoder, cross, decoder = transcribe(model, get_device("l4"), Windows(count=1, tokens=2)).stages
    d = 128
    stem = 3000 * 240 * d + 1500 * 3 * d * d
    products = 1500 * 12 * d * d
    attention = 2 * 1500**2 * d
    plain = 2.0 * (stem + products + attention)
    assert encoder.flops == pytest.approx(plain, rel=0.02)  # norms and additions beside
    assert cross.flops == 2.0 * 2 * 1500 * d * d
    # six products of d x d, a feed-forward part of 8 d x d and the head; text of one token and 1,500 positions
    step = 14 * d * d + 1000 * d + 2 * (1 + 1500) * d
    assert decoder.flops == pytest.approx(2 * 2.0 * step, rel=0.1)


def test_parts_add_up_and_windows_follow_each_other():
    found = orrery.estimate(**ASKED, output_tokens=80)
    one = orrery.estimate(**{**ASKED, "audio_s": 30}, output_tokens=80)
    assert found.num_windows == 3
    assert found.latency_s == pytest.approx(3 * one.latency_s)
    assert one.latency_s == pytest.approx(sum(stage.time_s for stage in one.transcribed.stages))
    assert found.audio_s_per_s == pytest.approx(4 * 90 / found.latency_s)
    answer = found.to_json()
    assert answer["real_time_factor"] * answer["audio_s_per_s"] == pytest.approx(1.0)
    assert answer["energy_j_per_audio_hour"] == pytest.approx(answer["power_w"] * 3600 / answer["audio_s_per_s"])
    assert answer["usd_per_audio_hour"] > 0.0
    json.dumps(answer, allow_nan=False)


def test_batches_share_the_weights_and_fewer_layers_take_less():
    rates = [orrery.estimate(**{**ASKED, "batch": b}).audio_s_per_s for b in (1, 4, 16)]
    assert rates[0] < rates[1] < rates[2] < 16 * rates[0]
    whole, turbo, distilled = (
        orrery.estimate(**{**ASKED, "model": name}).latency_s
        for name in ("whisper-large-v3", "whisper-large-v3-turbo", "distil-large-v3")
    )
    assert distilled < turbo < whole
    more, fewer = (orrery.estimate(**ASKED, output_tokens=n).transcribed.stages for n in (200, 50))
    assert more[:2] == fewer[:2]
    assert more[2].time_s > 3 * fewer[2].time_s


def test_a_device_that_is_too_small_says_so():
    found = orrery.estimate(model="whisper-large-v3", device="jetson-nano", batch=16)
    assert found.infeasible.need > found.infeasible.have


def test_refusals_say_what_to_write():
    for change, words in (
        ({"device": None}, "device: missing"),
        ({"output_tokens": 500}, "ends after 448 tokens"),
        ({"input_tokens": 5}, "input_tokens: not of speech"),
        ({"devices": 2}, "runs on one device"),
        ({"engine": "nemo"}, "no runtime of speech .nemo."),
        ({"weights": "int4"}, "weights: got 'int4'; write fp32"),
        ({"weights": "int8", "device": "m4-max"}, "multiplies no int8"),
        ({"engine": "faster-whisper", "device": "m4-max"}, 'no kernels for m4-max; write engine = "whisper.cpp"'),
        ({"engine": "tensorrt-llm", "device": "mi300x"}, 'no kernels for mi300x; write engine = "faster-whisper"'),
        ({"model": "llama-3.1-8b", "output_tokens": 5, "input_tokens": 5}, "takes no speech"),
    ):
        settings = {k: v for k, v in {**ASKED, **change}.items() if v is not None}
        with pytest.raises(ScenarioError, match=words):
            orrery.estimate(**settings)


def test_a_recording_s_windows_run_side_by_side():
    """An hour is 120 windows: one after the other, or 8 rounds of 16; by transformers 180, in 12 rounds of 16."""
    hour = {"model": "whisper-large-v3", "device": "rtx-3090", "audio_s": 3600}
    alone, batched = (orrery.estimate(**hour, window_batch=n) for n in (1, 16))
    assert (alone.num_windows, alone.num_rounds, batched.num_rounds) == (120, 120, 8)
    assert batched.latency_s < alone.latency_s / 2
    piped = orrery.estimate(**hour, window_batch=16, engine="transformers")
    assert (piped.num_windows, piped.num_rounds) == (180, 12)
    one = orrery.estimate(**{**hour, "audio_s": 30}, window_batch=16)
    assert one.window_batch == 1
    assert one.preparation_s == pytest.approx(30 * one.runtime.preparation_ratio)
    assert one.latency_s == pytest.approx(one.preparation_s + one.transcribed.window_s)


def test_no_runtime_is_faster_than_the_kernels_alone():
    for device in ("rtx-3090", "h100-sxm", "t4"):
        asked = {"model": "whisper-large-v3", "device": device, "audio_s": 600, "num_beams": 1, "output_tokens": 100}
        least = orrery.estimate(**asked, engine="kernels")
        assert least.intervals() == {}
        for engine in ("openai-whisper", "transformers", "faster-whisper", "whisper.cpp", "vllm", "tensorrt-llm"):
            found = orrery.estimate(**asked, engine=engine)
            assert found.latency_s > least.latency_s, (engine, device)
            interval = found.intervals()["latency_s"]
            assert interval.low_80 < found.latency_s < interval.high_80


def test_more_beams_and_wider_weights_take_longer():
    asked = {"model": "whisper-large-v2", "device": "rtx-3090", "audio_s": 60, "engine": "kernels"}
    times = [orrery.estimate(**asked, num_beams=n, window_batch=2).latency_s for n in (1, 5, 20)]
    assert times[0] < times[1] < times[2]
    assert orrery.estimate(**asked, window_batch=2, weights="fp32").latency_s > times[0]
    assert orrery.estimate(**asked).windows.beams == 1
    assert orrery.estimate(**{**asked, "engine": "faster-whisper"}).windows.beams == 5


def test_the_page_tells_the_errors_that_were_found():
    found = read_tables()["speech, a campaign left out"]
    for metric, title in (("latency_s", "whole recordings"), ("encoder_s", "encoder of one window")):
        whole = found[metric]["all"]
        cells = " | ".join(f"{100 * whole[k]:.0f} %" for k in ("median", "mean", "p90"))
        assert f"| {title} | all | {whole['rows']} | {cells} | {100 * whole['bias']:+.0f} % |" in PAGE
    assert found["latency_s"]["all"]["median"] <= 0.30
    assert found["latency_s"]["all"]["rows"] >= 15
    fitted = fitted_constants()
    assert f"{1e6 * fitted['eager_operator_s']:.0f} µs in an eager framework" in PAGE
    assert f"an eager framework's loop {1e3 * fitted['eager_step_s']:.1f} ms" in " ".join(PAGE.split())
    assert f"{1e6 * fitted['native_operator_s']:.1f} µs in CTranslate2" in PAGE
    assert f"{1e6 * fitted['graph_node_s']:.1f} µs in a graph" in PAGE
    assert f"{1e3 * fitted['native_step_s']:.1f} ms between two steps" in " ".join(PAGE.split())
