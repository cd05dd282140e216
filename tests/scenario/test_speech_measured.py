"""Published transcriptions beside the kernels: windows by hand, ratios as the page tells them."""

from math import ceil
from pathlib import Path

import pytest

import orrery
from orrery.catalog.devices import get_device
from orrery.catalog.speech import get_speech, published_speech
from orrery.execution.speech import transcribe
from orrery.scenario.speech_measured import published_note, scored_speech

PAGE = (Path(__file__).parents[2] / "docs" / "speech.md").read_text(encoding="utf-8")


def test_a_recording_is_windows_side_by_side():
    # 9,000 s are 300 windows: 13 batches of 24, each with 99 tokens
    first = scored_speech()[0]
    once = transcribe(get_speech("whisper-large-v3"), get_device("a100-sxm-80gb"), 24, 99)
    assert ceil(300 / 24) == 13
    assert first.predicted_s == pytest.approx(13 * once.window_s)
    assert first.ratio == pytest.approx(98 / first.predicted_s)


def test_every_run_cites_its_place_and_no_kernel_is_slower_than_a_run():
    for run in published_speech():
        assert run.fact.source
        assert run.fact.at
    ratios = [scored.ratio for scored in scored_speech()]
    assert len(ratios) == 6
    assert min(ratios) > 1.0


def test_the_page_and_the_answer_tell_the_ratios():
    ratios = sorted(scored.ratio for scored in scored_speech())
    for scored in scored_speech():
        assert f"| {scored.ratio:.2g} |" in PAGE
    assert f"took {ratios[0]:.1f} to {ratios[-1]:.0f} times as long" in PAGE
    assert published_note() in orrery.estimate(model="whisper-large-v3", device="l4").notes
