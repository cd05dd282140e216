"""``image_count`` and ``image_resolution``: the tokens and the time that images add."""

import pytest

from orrery.base.errors import ScenarioError
from orrery.scenario.ask import Answer, estimate, plan
from orrery.scenario.images import image_size
from orrery.scenario.simulate import simulate

SMALL = {"model": "qwen3-vl-8b", "device": "h100-sxm", "input_tokens": 256, "output_tokens": 65}


def _estimated(**settings) -> Answer:
    found = estimate(**(SMALL | settings))
    assert isinstance(found, Answer)
    return found


def test_no_images_are_no_setting():
    none, without = _estimated(concurrency=4, image_count=0).to_json(), _estimated(concurrency=4).to_json()
    assert {k: v for k, v in none.items() if k != "settings"} == {k: v for k, v in without.items() if k != "settings"}


def test_one_image_alone():
    """448 x 448 is 196 tokens beside 256: the first token takes as long as that of 452 tokens and the tower."""
    seen, read = _estimated(batch=1, image_count=1, image_resolution="448x448"), _estimated(batch=1, input_tokens=452)
    (tower,) = (p for p in seen.estimate.prefill_cost.parts if p.name == "vision tower")
    assert tower.time_s > 0
    assert seen.estimate.ttft_s == pytest.approx(read.estimate.ttft_s + tower.time_s, rel=1e-6)
    assert seen.estimate.tpot_s == pytest.approx(read.estimate.tpot_s, rel=1e-12)


def test_more_images_take_longer():
    found = [_estimated(concurrency=8, image_count=n).estimate for n in range(4)]
    assert [e.ttft_s for e in found] == sorted(e.ttft_s for e in found)
    assert [-e.requests_per_s for e in found] == sorted(-e.requests_per_s for e in found)


def test_the_simulator_says_the_same():
    inputs = {"image_count": 1, "image_resolution": "720p", "concurrency": 8}
    found = simulate(**SMALL, **inputs, num_requests=160).to_json()
    closed = _estimated(**inputs).estimate
    assert found["mean_tpot_ms"] / 1e3 == pytest.approx(closed.tpot_s, rel=0.1)
    assert found["mean_ttft_ms"] / 1e3 == pytest.approx(closed.ttft_s, rel=0.25)
    assert found["total_input_tokens"] / found["completed"] == pytest.approx(256 + 22 * 40, rel=0.05)


def test_a_plan_sees_too():
    inputs = {**SMALL, "rate": 1.0, "max_devices": 1}
    first, seen = (plan(**inputs, **more).to_json()["plans"][0] for more in ({}, {"image_count": 4}))
    assert seen["ttft_s"] > 2 * first["ttft_s"]


def test_what_is_asked_is_said():
    notes = _estimated(concurrency=4, image_count=2, image_resolution="1080p").notes
    assert any("2 of 1080p, 2,040 tokens each (8,160 patches)" in n and "4,336 tokens" in n for n in notes)
    assert any(
        "changes nothing without image_count" in n for n in _estimated(concurrency=4, image_resolution="4k").notes
    )


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"image_count": 1, "model": "llama-3.1-8b"}, "it reads text alone"),
        ({"image_count": 1, "model": "gemma-4-31b-it"}, "not known layer by layer"),
        ({"image_count": 1, "image_resolution": "huge"}, "HEIGHTxWIDTH"),
        ({"image_count": 1, "image_resolution": "1x9999"}, "HEIGHTxWIDTH"),
        ({"image_count": 200}, "write shorter"),
    ],
)
def test_what_cannot_be_is_refused(settings, says):
    with pytest.raises(ScenarioError, match=says):
        estimate(**({**SMALL, "concurrency": 4} | settings))


def test_traces_have_prompts_of_their_own():
    with pytest.raises(ScenarioError, match="not with a trace"):
        estimate(model="qwen3-vl-8b", device="h100-sxm", trace="chat", image_count=1)


def test_sizes_by_name():
    assert image_size("1080p") == (1080, 1920)
    assert image_size("640X480") == (640, 480)
