"""Settings that change no number of a run: each says so, and is silent where it acts."""

import pytest

from orrery.scenario.simulate import simulate

RUN = {"model": "llama-3.1-8b", "device": "h100-sxm", "input_tokens": 256, "output_tokens": 16, "num_requests": 20}


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({}, "nothing leaves the device"),
        ({"preemption": "swap"}, "no request is preempted"),
        ({"host_cache_bytes": 1e9}, ""),
    ],
)
def test_a_way_to_the_host_that_nothing_takes(settings, why):
    notes = simulate(**RUN, rate=1, swap="encrypted-serial", **settings).notes
    found = [note for note in notes if note.startswith("swap = encrypted-serial: no effect")]
    assert [why in note for note in found] == [True] * bool(why)
