"""The mix of steps, against queues that can be worked out by hand and a scheduler played step by step."""

from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.serving.mix import apart, mixed, waves_of


def one(slots: float, prompt: float, steps: float, budget: float, **more):
    return mixed(np.array([float(slots)]), prompt, steps, budget, more.pop("away", 0.0), **more)


def test_a_lone_request_lives_its_own_steps():
    """A prompt of 100 in a budget of 1,000 is one step; then 49 decode steps: one prompt in 50 steps."""
    found = one(1, 100, 49, 1000)
    assert found.prompts[0] == pytest.approx(1 / 50)
    assert found.decoding[0] == pytest.approx(49 / 50)
    assert found.waiting[0] == pytest.approx(0.0, abs=1e-4)
    assert (found.shares * found.chunks).sum() == pytest.approx(100 / 50)


def test_where_prompts_fill_every_step_flow_decides():
    """1,000 slots, prompts of 400, 9 decode steps each, budget 1,000. In balance D decodes leave 1,000 - D tokens, so
    (1,000 - D) / 400 prompts a step, and D = 9 of these: D = 9,000 / 409 = 22.0, 2.445 prompts a step; the rest wait.
    """
    found = one(1000, 400, 9, 1000)
    assert found.decoding[0] == pytest.approx(9000 / 409, rel=0.02)
    assert found.prompts[0] == pytest.approx(1000 / 409, rel=0.02)
    assert found.load[0] == 1.0
    assert (found.shares * found.chunks).sum() == pytest.approx(1000 - 9000 / 409, rel=0.02)


def test_few_prompts_among_many_slots_wait_as_the_queue_m_d_1_says():
    """A prompt of exactly a step, load 0.5 from 2,000 slots: M/D/1 has rho / (2 (1 - rho)) = 0.5 steps of waiting.

    In whole steps half of it is for those that came in the same step (rho / 2 = 0.25), so 0.25 prompts are left over
    when a step ends: rho^2 / (2 (1 - rho)).
    """
    slots, steps, budget = 2000.0, 3999.0, 1e9
    found = one(slots, 0.999 * budget, steps, budget, spread_frac=0.0)
    assert found.load[0] == pytest.approx(0.5, abs=0.01)
    assert found.waiting[0] == pytest.approx(0.25, rel=0.06)
    assert found.own_steps[0] == 1.0
    longer = one(slots, 1.001 * budget, steps, budget, spread_frac=0.0)
    assert longer.wait_steps[0] == pytest.approx(0.5, rel=0.06), "beyond a step, those of the same step are ahead too"


def test_no_time_away_and_no_prompts_ahead_is_all_decoding():
    found = apart(np.array([8.0]), 100, 64, 1000, 0.0)
    assert found.decoding[0] == pytest.approx(8.0)
    assert found.prompts[0] == pytest.approx(8 / 64)
    assert (found.shares * found.chunks).sum() == pytest.approx(100 * 8 / 64)


def test_a_run_that_starts_at_once_is_bunched_and_a_long_one_is_not():
    """Spread 0.5: the first later round is 1 wide, so even already; spread 0.05: 0.1 sqrt(k) wide after k rounds."""
    zero = np.zeros(1)
    assert waves_of(zero, 0.5, 10.0).dense[0] == pytest.approx(1.0, abs=0.3)
    by_hand = np.mean([1 / (0.1 * np.sqrt(k)) for k in range(1, 10)])
    assert waves_of(zero, 0.05, 10.0).dense[0] == pytest.approx(by_hand, rel=0.05)
    assert waves_of(zero, 0.05, 1e6).dense[0] == pytest.approx(1.0, abs=0.01)


def test_the_front_end_keeps_short_answers_together():
    """Widths, in shares of a life: lengths add w = 0.2 in squares, the front end takes g from the sum. At g = 0.1 that
    comes to rest where x = sqrt(x^2 + 0.04) - 0.1: x = 0.03 / 0.2 = 0.15, so prompts come 1 / 0.15 = 6.7 times closer
    together for ever; at g = 0.2 and more all that ended come back in one step, 0.02 of a life."""
    zero = np.zeros(1)
    assert waves_of(zero, 0.1, 1e6, 0.1).dense[0] == pytest.approx(1 / 0.15, rel=0.01)
    assert waves_of(zero, 0.1, 1e6, 0.2, 0.02).dense[0] == pytest.approx(50, rel=0.01)
    assert waves_of(zero, 0.1, np.inf, 0.2, 0.02).dense[0] == 1.0, "arrivals at random have no rounds"
    assert waves_of(zero + 0.5, 0.1, 1e6, 0.2, 0.02).dense[0] == pytest.approx(1 / (np.hypot(0.5, 0.2) - 0.2), rel=0.01)


def played(slots: int, prompt: int, steps: int, budget: int, rounds: int = 4000) -> tuple[float, float, float]:
    """Decodes, prompts a step, and prompts that have no token yet or not all: a scheduler in plain Python."""
    draw = np.random.default_rng(0)
    queue = deque([prompt] * slots)
    ends: dict[int, int] = {}
    decoding, seen = 0, []
    for now in range(rounds):
        left, done = budget - decoding, 0
        while queue and left > 0:
            took = min(left, queue[0])
            left -= took
            queue[0] -= took
            if not queue[0]:
                queue.popleft()
                done += 1
        if now > rounds // 4:
            seen.append((decoding, done, len(queue)))
        for _ in range(done):
            due = now + max(1, round(draw.uniform(0.6, 1.4) * steps))
            ends[due] = ends.get(due, 0) + 1
        decoding += done
        back = ends.pop(now, 0)
        decoding -= back
        queue.extend([prompt] * back)
    return tuple(float(x) for x in np.mean(seen, axis=0))


@pytest.mark.parametrize(
    ("slots", "prompt", "steps", "budget"),
    [(4, 500, 100, 2048), (64, 300, 120, 2048), (64, 1500, 120, 2048), (200, 1500, 60, 2048), (30, 5000, 400, 2048)],
)
def test_the_mix_is_that_of_a_scheduler_played_step_by_step(slots, prompt, steps, budget):
    decoding, prompts, waiting = played(slots, prompt, steps, budget)
    found = one(slots, prompt, steps, budget)
    assert found.decoding[0] == pytest.approx(decoding, rel=0.05)
    assert found.prompts[0] == pytest.approx(prompts, rel=0.05)
    assert found.waiting[0] == pytest.approx(waiting, rel=0.35, abs=1.0)


@given(
    st.floats(1, 2000),
    st.floats(1, 20000),
    st.floats(0, 3000),
    st.floats(512, 16384),
    st.floats(0, 20),
    st.sampled_from([2.0, 10.0, np.inf]),
    st.booleans(),
)
def test_tokens_and_slots_are_conserved(slots, prompt, steps, budget, away, rounds, mixes):
    each = np.array([slots])
    found = (mixed if mixes else apart)(each, prompt, steps, budget, away, rounds=rounds)
    assert found.decoding[0] == pytest.approx(steps * found.prompts[0])
    assert (found.shares >= -1e-12).all()
    assert found.shares.sum() <= 1 + 1e-9
    assert (found.shares * found.chunks).sum() == pytest.approx(prompt * found.prompts[0], rel=0.02)
    assert found.decoding[0] <= slots * (1 + 1e-9)
    if mixes:
        assert (found.chunks <= found.room_tokens * (1 + 1e-6)).all()


def test_what_lasts_as_long_for_everybody_keeps_requests_together():
    """Lengths within a fifth that make up half of a life spread it as lengths within a tenth that are all of it do."""
    slots = np.array([4.0, 32.0, 200.0])
    half = apart(slots, 512.0, 40.0, 8192.0, 40.0, 0.2, 10.0, 0.5)
    whole = apart(slots, 512.0, 40.0, 8192.0, 40.0, 0.1, 10.0, 1.0)
    np.testing.assert_allclose(half.chunks, whole.chunks)
    np.testing.assert_allclose(half.shares, whole.shares)
    more = apart(slots, 512.0, 40.0, 8192.0, 40.0, 0.2, 10.0, 1.0)
    assert (more.chunks[1] <= half.chunks[1]).all(), "the more they spread, the fewer come at once"
