"""Which of host and device decides a step, by size: ranges in words, and where an estimate says so."""

from types import SimpleNamespace

import numpy as np
import pytest

import orrery
from orrery.serving import estimate, host_turn
from orrery.serving.host_turn import SIZES, slow_ranges, turn_notes


@pytest.mark.parametrize(
    ("slow", "words"),
    [
        ([], []),
        ([1], ["1"]),
        ([1, 2, 4, 8], ["up to 8"]),
        ([64, 128, 256, 512, 1024], ["64 and more"]),
        ([1, 2, 16, 512, 1024], ["up to 2", "16", "512 and more"]),
        ([4, 8], ["4 to 8"]),
        (SIZES.tolist(), ["up to 1,024"]),
    ],
)
def test_ranges_in_words(slow, words):
    assert slow_ranges(np.isin(SIZES, slow)) == words


def test_a_host_of_ten_milliseconds_by_hand(monkeypatch):
    """Kernels of a millisecond a sequence: the host of 10 ms is slower up to 8; of 3 ms a prompt, up to 2."""

    def tick(deployment, batch):
        each = np.where(batch.prompt_sequences > 0, 3e-3 * batch.prompt_sequences, 1e-3 * batch.decode_sequences)
        return SimpleNamespace(host_s=np.full(SIZES.size, 10e-3), done=SimpleNamespace(time_s=each))

    monkeypatch.setattr(host_turn, "tick", tick)
    (said,) = turn_notes(None, 512.0, 600.0)
    assert "decode steps of up to 8 sequences, and in prefill steps of up to 2 prompts" in said


def test_an_estimate_says_it_where_its_host_binds_and_nowhere_else():
    asked = {"model": "llama-3.2-1b", "engine": "transformers", "input_tokens": 512, "output_tokens": 32, "batch": 1}
    bound = orrery.estimate(**asked, device="gh200-96gb")
    assert bound.estimate.bound_by == "host"
    assert any(note.startswith("host: slower than the device in decode steps") for note in bound.notes)
    free = orrery.estimate(model="llama-3.1-70b", device="h100-sxm", tp=4, input_tokens=512, output_tokens=32, batch=8)
    assert free.estimate.bound_by != "host"
    assert not any(note.startswith("host:") for note in free.notes)


def test_the_steps_are_worked_out_where_notes_are_read(monkeypatch):
    """Numbers alone cost none; notes ask for the prompt's tokens, and for decodes behind half of the answer."""
    seen = []
    monkeypatch.setattr(estimate, "turn_notes", lambda _, *tokens: seen.append(tokens) or ("host: slower",))
    asked = {"model": "llama-3.2-1b", "engine": "transformers", "input_tokens": 512, "output_tokens": 32, "batch": 1}
    one = orrery.estimate(**asked, device="gh200-96gb").estimate
    seen.clear()
    again = estimate.estimate(one.deployment, one.workload)
    assert not seen
    assert again.notes == (*again.own_notes, "host: slower")
    assert seen == [(512.0, 528.0)]
