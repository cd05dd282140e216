"""A prompt through a pipeline that waits for all its stages after so many tokens."""

from dataclasses import replace

import pytest

from orrery.execution.memory import memory_of
from orrery.serving.runs import static_run


@pytest.fixture
def prefill_s(deploy):
    """Seconds of a prompt of 4,096 tokens on four stages, 512 at a time."""

    def found(pass_tokens):
        made = deploy(model="llama-3.1-8b", device="rtx-4090", engine="llama.cpp", pp=4, weights="fp16")
        d = replace(made, engine=replace(made.engine, pass_tokens=pass_tokens))
        return static_run(d, memory_of(d), 1.0, 4096.0, 1.0)

    return found


def test_each_pass_fills_and_empties_the_pipeline(prefill_s):
    """Eight pieces: in one pass T + 7 S, in two passes 2 T + 6 S, in eight 8 T; T is four stages of S."""
    whole = prefill_s(0)
    times = whole.ticks
    step_s, stage_s = float(times.time_s[3]), float(times.stage_s[3])
    assert stage_s == pytest.approx(step_s / 4, rel=0.05)
    assert whole.ttft_s == pytest.approx(whole.latency_s)
    for pass_tokens, drains in ((0, 1), (4096, 1), (8192, 1), (2048, 2), (512, 8)):
        expected = drains * step_s + (8 - drains) * stage_s
        assert prefill_s(pass_tokens).latency_s == pytest.approx(expected, rel=1e-9)


def test_one_device_has_nothing_to_wait_for(deploy):
    made = deploy(model="llama-3.1-8b", device="rtx-4090", engine="llama.cpp", weights="q4_k_m")
    each = [replace(made, engine=replace(made.engine, pass_tokens=n)) for n in (0, 2048)]
    once, often = (static_run(d, memory_of(d), 1.0, 4096.0, 1.0).latency_s for d in each)
    assert often == pytest.approx(once)
