"""A predictor on the simulated order of swaps: its hits, what they are worth, and that no swap costs nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import orrery
from orrery.base.errors import ScenarioError
from orrery.execution.transfer import TRANSFERS, knob_array
from orrery.serving.simulation.admission._kernel import _guess_return
from orrery.serving.simulation.tables import _kernel as k

FULL = {
    "model": "llama-3.1-8b",
    "device": "l4",
    "weights": "fp8",
    "input_tokens": 900,
    "output_tokens": 600,
    "input_tokens_std": 500,
    "output_tokens_std": 300,
    "concurrency": 64,
    "num_requests": 150,
    "preemption": "swap",
}


class _World:
    """What the predictor reads and writes."""

    def __init__(self, away):
        self.req = np.zeros((10, len(k.REQUEST)), np.int64)
        self.lanes = np.zeros((1, 40), np.int64)
        self.swapped = np.array([*away, 0, 0], np.int64)
        self.guesses = np.array([len(away), 0, 0], np.int64)
        self.knobs, self.totals = np.zeros((8, 4)), np.zeros(len(k.TOTALS))
        self.rules = type("Rules", (), {"guess_knob": 3})


def test_returns_by_hand():
    """1, 2, 3 left. 3 (newest, hit), then 1 (oldest, miss: the newest is guessed), then 2 (both, hit)."""
    world, hits = _World([1, 2, 3]), []
    for i in (3, 1, 2):
        _guess_return(world, i)
        hits.append(world.knobs[k.SWAP, 3])
    assert hits == [1.0, 0.0, 1.0]
    assert (world.totals[k.GUESSED], world.totals[k.RIGHT], world.guesses[0]) == (3.0, 2.0, 0)


def test_the_predictor_turns_to_the_oldest_where_they_come_first():
    world, hits = _World([1, 2, 3, 4]), []
    for i in (1, 2, 3, 4):
        _guess_return(world, i)
        hits.append(world.knobs[k.SWAP, 3])
    assert hits == [0.0, 1.0, 1.0, 1.0]


def test_a_hit_rate_comes_out_and_lies_between_none_and_all():
    found = orrery.simulate(**FULL, swap="encrypted-pipelined")
    counters = found.simulated.counters
    assert counters["guessed_swaps"] > 20
    assert 0.0 <= counters["swap_hit_frac"] == counters["right_guesses"] / counters["guessed_swaps"] <= 1.0
    none, every = (
        orrery.simulate(**FULL, swap="encrypted-pipelined", knob=[f"swap.hit_frac={h}"]).simulated for h in (0, 1)
    )
    assert every.counters["swapped_s"] <= counters["swapped_s"] <= none.counters["swapped_s"]
    assert none.counters["guessed_swaps"] == every.counters["guessed_swaps"] == 0.0
    assert any("returns from the host were guessed" in note for note in found.notes)


@given(st.sampled_from(["plain-copy", "encrypted-serial", "encrypted-pipelined"]), st.integers(1, 16))
@settings(max_examples=8, deadline=None)
def test_without_swaps_nothing_is_lost(swap, users):
    few = FULL | {"concurrency": users, "num_requests": 30, "device": "h100-sxm"}
    plain = orrery.simulate(**{k: v for k, v in few.items() if k != "preemption"}).simulated
    found = orrery.simulate(**few, swap=swap).simulated
    assert found.duration_s == plain.duration_s
    assert found.counters["swapped_bytes"] == found.counters["guessed_swaps"] == 0.0


def test_the_hosts_cipher_is_a_field():
    quick, slow = (
        orrery.simulate(**FULL, swap="encrypted-serial", cipher_bytes_per_s=rate).simulated.counters["swapped_s"]
        for rate in (3.4e9, 3.4e8)
    )
    assert orrery.simulate(**FULL, swap="encrypted-serial").simulated.counters["swapped_s"] == quick
    assert slow > 3 * quick
    with pytest.raises(ScenarioError, match="nothing is encrypted"):
        orrery.simulate(**FULL, cipher_bytes_per_s=1e9)


def test_a_miss_is_encrypted_in_pieces():
    """1 GB at 10 GB/s behind two cores of 4 GB/s: 125 ms of cipher, and the last megabyte's copy of 0.1 ms."""
    technique = TRANSFERS.get("encrypted-pipelined")
    knobs = knob_array(technique, core_bytes_per_s=4e9, num_cores=2, call_s=0.0, hit_frac=0.0, flush_s=0.0)
    assert technique.rule(1e9, 1e10, 0.0, knobs) == pytest.approx(0.125 + 0.0001)
    whole = knob_array(
        technique, core_bytes_per_s=4e9, num_cores=2, call_s=0.0, hit_frac=0.0, flush_s=0.0, piece_bytes=1e9
    )
    assert technique.rule(1e9, 1e10, 0.0, whole) == pytest.approx(0.225)  # in one piece both follow each other
