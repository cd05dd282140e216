"""Messages that are compressed, a game that they still solve, and electing a leader on a ring."""

import numpy as np
import pytest

from orrery.engine.streams import stream
from orrery.fleet.decentral import COMPRESSORS
from orrery.fleet.decentral.guarantee import guaranteed_gain
from orrery.fleet.decentral.saddle import compressed, extragradient, game


def send(name, vector, **knobs):
    technique = COMPRESSORS.get(name)
    return technique.rule(vector, technique.knobs(**knobs), stream(0, "test"))


def test_random_numbers_are_right_in_the_mean_and_cost_their_share():
    vector = np.arange(1.0, 41.0)
    technique = COMPRESSORS.get("send-random")
    draw = stream(0, "test")
    sent = [technique.rule(vector, technique.knobs(kept_frac=0.25), draw) for _ in range(4000)]
    assert np.mean([m.received for m in sent], axis=0) == pytest.approx(vector, rel=0.15)
    assert sent[0].num_bits == 10 * 32
    assert np.count_nonzero(sent[0].received) == 10


def test_the_largest_numbers_travel_with_their_positions():
    message = send("send-largest", np.array([0.1, -5.0, 3.0, 0.2]), kept_frac=0.5)
    assert message.received.tolist() == [0.0, -5.0, 3.0, 0.0]
    assert message.num_bits == 2 * (32 + 2)


def test_everything_travels_as_it_is():
    message = send("send-all", np.array([1.0, 2.0]))
    assert message.received.tolist() == [1.0, 2.0]
    assert message.num_bits == 64


GAME = game(4, 8, 0.05, 0.1)


def test_the_solution_solves_the_game():
    gradient = GAME.matrices.mean(axis=0) @ GAME.solution + GAME.offsets.mean(axis=0)
    assert gradient == pytest.approx(np.zeros(16), abs=1e-12)
    assert GAME.error(GAME.solution) == 0.0
    assert GAME.error(np.zeros(16)) == 1.0


def test_whole_messages_solve_it():
    path = extragradient(GAME, 0.7, 1000, 1e-6)
    assert path.error_frac[-1] <= 1e-6
    assert path.num_bits[1] == 4 * 32 * 16


@pytest.mark.parametrize(("name", "remembers"), [("send-random", False), ("send-largest", True)])
def test_compressed_messages_solve_it_too(name, remembers):
    technique = COMPRESSORS.get(name)
    path = compressed(
        GAME,
        technique,
        technique.knobs(kept_frac=0.5),
        remembers=remembers,
        move_frac=0.5,
        step_ratio=0.4,
        num_steps=2000,
        until_frac=1e-4,
    )
    assert path.error_frac[-1] <= 1e-4
    assert np.diff(path.num_bits).min() < 4 * 32 * 16  # a step is cheaper than a whole one
    assert np.isfinite(path.bits_to(1e-2))


def test_what_theory_allows_is_worked_out_by_hand():
    """A quarter kept by 16 workers: L'^2 = 1 + 3 / 16, the reference moves with chance 1/4, and 2 - 1/4 times as many
    steps; a step sends 1/4 and, one time in four, a whole message, where extragradient sends two."""
    steps_ratio = 1.75 * (1.1875 / 0.25) ** 0.5
    assert guaranteed_gain(0.25, 16, compresses_down=False) == pytest.approx(2.0 / (0.5 * steps_ratio))
    assert guaranteed_gain(0.25, 16) == pytest.approx(4.0 / (1.0 * steps_ratio * 2.0))  # a quarter once more: 1 / k
    assert guaranteed_gain(0.25, 16, 0.5, compresses_down=False) == pytest.approx(
        2.0 / (0.375 * 1.75 * (1.375 / 0.25) ** 0.5)
    )


@pytest.mark.parametrize("num_workers", [1, 5, 1000])
def test_keeping_all_saves_nothing_and_both_ways_never_do(num_workers):
    assert guaranteed_gain(1.0, num_workers) == pytest.approx(1.0)
    assert guaranteed_gain(1.0, num_workers, compresses_down=False) == pytest.approx(1.0)
    assert guaranteed_gain(0.1, num_workers) < 1.0


def test_what_theory_allows_grows_with_the_workers_to_a_root_of_the_share():
    found = [guaranteed_gain(0.04, n, compresses_down=False) for n in (1, 10, 100, 10**9)]
    assert found == sorted(found)
    assert found[0] == pytest.approx(1.0 / 1.96)
    assert found[-1] == pytest.approx(5.0 / 1.96)


def test_steps_of_the_length_that_theory_allows_keep_what_it_says():
    """Steps of whole messages at 1 / L, of compressed ones at sqrt(p) / L': workers alike, a weak pull."""
    of, technique = game(8, 8, 0.05, 0.02), COMPRESSORS.get("send-random")
    whole = extragradient(of, 1.0, 4000, 1e-3)
    found = compressed(
        of,
        technique,
        technique.knobs(kept_frac=0.25),
        remembers=False,
        move_frac=0.25,
        step_ratio=(0.25 / (1.0 + 3.0 / 8.0)) ** 0.5,
        num_steps=4000,
        until_frac=1e-3,
        compresses_down=False,
    )
    gain = 0.5 * whole.bits_to(1e-3) / found.bits_to(1e-3)  # of an extragradient step's four messages two go up
    assert gain == pytest.approx(guaranteed_gain(0.25, 8, compresses_down=False), rel=0.15)


def test_a_step_too_long_is_lost_and_stops():
    technique = COMPRESSORS.get("send-random")
    path = compressed(
        GAME,
        technique,
        technique.knobs(kept_frac=0.07),
        remembers=False,
        move_frac=0.07,
        step_ratio=1.0,
        num_steps=20_000,
        until_frac=1e-6,
    )
    assert path.bits_to(1e-6) == float("inf")
    assert path.error_frac.size < 20_000
