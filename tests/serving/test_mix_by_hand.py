"""The mix of steps on a few round numbers: chunks that are binomial, queues, waits, and what comes closer together."""

from math import erf, exp, inf, pi, sqrt
from types import SimpleNamespace

import numpy as np
import pytest

from orrery.serving import mix as mixing
from orrery.serving.mix import MOMENTS, WAVE_ROUNDS, Waves, _chunks, _queue, _settle, apart, mixed, waves_of


def one(*values):
    return np.array([float(v) for v in values])


def wave(*densities, weights):
    return Waves(dense=one(densities[0]), densities=one(*densities)[:, None], weights=one(*weights)[:, None])


EVEN = wave(1.0, weights=[1.0])


def chunked(slots, rate, capacity, load=0.0, alone=1.0, waves=EVEN):
    chunks, shares = _chunks(one(slots), one(rate), waves, one(capacity), one(load), one(alone))
    return chunks.ravel().tolist(), shares.ravel().tolist()


def test_two_slots_that_come_at_half_of_all_steps():
    """Binomial: a prompt in half of the steps, two in a quarter."""
    chunks, shares = chunked(2, 1.0, inf)
    assert chunks == pytest.approx([1.0, 2.0])
    assert shares == pytest.approx([0.5, 0.25])


def test_many_slots_in_two_chunks_with_the_mean_and_the_variance_of_all():
    """Four of 8 slots a step: one in 256 steps has none; mean and square of the others are 4 and 18, times 256/255."""
    chunks, shares = chunked(8, 4.0, inf)
    busy, mean = 255 / 256, 4 * 256 / 255
    assert sum(shares) == pytest.approx(busy)
    assert np.dot(shares, chunks) == pytest.approx(4.0)
    assert np.dot(shares, np.square(chunks)) == pytest.approx(18.0)
    assert chunks[0] == pytest.approx(mean - sqrt(18 / busy - mean**2))


def test_chunks_end_at_the_room_of_a_step():
    """No more than 4.5 of 8: the large chunk is that, and the mean stays."""
    chunks, shares = chunked(8, 4.0, 4.5)
    assert chunks[1] == 4.5
    assert np.dot(shares, chunks) == pytest.approx(4.0)


def test_where_prompts_wait_fewer_steps_are_empty():
    """A step has room for one: load 0.5 leaves 1 - 0.5^(1.3 sqrt(4)) of those steps in which nobody comes."""
    _, shares = chunked(2, 1.0, 1.0, load=0.5)
    assert sum(shares) == pytest.approx(1.0)  # at least the flow, a prompt a step
    _, shares = chunked(2, 0.5, 1.0, load=0.5)
    assert sum(shares) == pytest.approx(1 - 0.75**2 * (1 - 0.5**2.6))


def test_prompts_longer_than_a_step_take_several():
    """2.5 steps each, one in ten steps: alone in three, of which the last is half of a step's 0.4 of a prompt."""
    chunks, shares = chunked(10, 0.1, 0.4, alone=3.0)
    assert sum(shares) == pytest.approx(0.3)
    assert chunks == pytest.approx([1 - 2 * 0.4, 0.4])
    assert np.dot(shares, chunks) == pytest.approx(0.1)
    # among others they take 1 / 0.4 steps
    _, shares = chunked(10, 0.1, 0.4, load=0.25, alone=3.0)
    assert sum(shares) == pytest.approx(0.1 * (0.75 * 3 + 0.25 * 2.5))
    # a last piece is a twentieth of a step at least, and chunks are no larger than the mean at most
    chunks, _ = chunked(10, 0.1, 0.4, alone=3.5)
    assert chunks[0] == pytest.approx(0.05 * 0.4)
    full, shares = chunked(10, 0.4, 0.4, alone=2.5)
    assert full == pytest.approx([0.4, 0.4])
    assert sum(shares) == pytest.approx(1.0)


@pytest.fixture
def settled(monkeypatch):
    """A queue of a test's choosing, and how much closer together prompts come."""
    asked = []

    def use(dense=1.0, **given):
        usual = {"load": 0.5, "level": 2.0, "excess": 1.0, "size": 1.0, "alone": 1.0, "own_steps": 1.0} | given
        found = SimpleNamespace(**{name: one(value) for name, value in usual.items()})

        def settle(slots, prompt, steps, budget, life, spread_frac):
            asked.append(float(np.ravel(life)[0]))
            return found

        def bunched(*args):
            asked.append([float(np.asarray(x).ravel()[0]) for x in args])
            return wave(dense, weights=[1.0 / dense])

        monkeypatch.setattr(mixing, "_settle", settle)
        monkeypatch.setattr(mixing, "waves_of", bunched)

    use.asked = asked
    return use


def test_waiting_prompts_and_the_rate(settled):
    """At load 0.5 with room for one: 2 at the level and half of the chance's one wait. Of 101 slots the others are in a
    life of 90 + 1 + 7.5 steps."""
    settled()
    found = mixed(one(101.0), 100.0, 90.0, 1000.0, 7.5)
    assert found.waiting[0] == pytest.approx(2.0 + 1.0 * 0.5 ** (sqrt(4) - 1))
    assert found.prompts[0] == pytest.approx(98.5 / 98.5)
    assert found.wait_steps[0] == pytest.approx(2.5)
    assert (found.decoding[0], found.room_tokens[0]) == (pytest.approx(90.0), 100.0)
    assert settled.asked[0] == 98.5  # first with one own step, then with as many as there are
    assert settled.asked[1] == 98.5


def test_own_steps_lengthen_a_life_and_gathered_ends_are_told_as_shares_of_it(settled):
    settled(own_steps=2.5)
    mixed(one(101.0), 100.0, 90.0, 1000.0, 7.5, 0.2, 6.0, 0.5, 25.0)
    assert settled.asked[:2] == [98.5, 100.0]
    assert settled.asked[2] == pytest.approx([0.5, 0.1, 6.0, 0.25, 0.01])


def test_there_is_room_for_so_many_a_step(settled):
    settled(size=0.125)
    found = mixed(one(101.0), 100.0, 1.0, 1000.0, 0.0)
    assert found.waiting[0] == pytest.approx(2.0 + 0.5 ** (sqrt(18) - 1))
    assert found.prompts[0] == 8.0
    assert found.room_tokens[0] == 800.0


def test_prompts_longer_than_a_step_wait_for_those_ahead(settled):
    """A prompt of two steps: half of the three that wait are in the way, each for two steps."""
    settled(size=2.0, own_steps=2.0)
    found = mixed(one(101.0), 100.0, 90.0, 1000.0, 8.0)
    assert found.waiting[0] == 3.0
    assert found.prompts[0] == pytest.approx(min((101 - 0.5 * 3) / 100, 0.5))
    assert found.wait_steps[0] == 6.0
    many = mixed(one(11.0), 100.0, 90.0, 1000.0, 8.0)
    assert many.prompts[0] == pytest.approx((11 - 1.5) / 100)


def test_those_that_come_together_wait_for_each_other(settled):
    """1.5 times as close at load 0.5: a queue at 0.75, 0.75 / (2 x 0.25) = 1.5 long while they come, which are 1 / 1.5
    of the time: one, of which a step's end leaves 0.75."""
    settled(dense=1.5, level=0.0, excess=0.0)
    found = mixed(one(101.0), 100.0, 90.0, 1000.0, 9.0)
    assert found.waiting[0] == pytest.approx(1.0 * 0.75)
    assert found.dense[0] == 1.5
    settled(dense=1.5)
    found = mixed(one(101.0), 100.0, 90.0, 1000.0, 9.0)
    assert found.waiting[0] == pytest.approx(2.0 + 0.75)  # more wait anyhow
    settled(dense=1.5, level=0.0, excess=0.0, size=2.0)
    found = mixed(one(101.0), 100.0, 90.0, 1000.0, 9.0)
    assert found.waiting[0] == pytest.approx(1.5)


def test_more_at_once_than_fit_wait_for_half_of_the_rest(settled):
    """Four times as close at load 0.5 are twice what fits: half of 100 others wait on average for half of the time, and
    chance adds no more than 0.4 x 10; they come in half of the time that they would take."""
    settled(dense=4.0, level=0.0, excess=0.0)
    found = mixed(one(101.0), 100.0, 90.0, 1000.0, 9.0)
    assert found.waiting[0] == pytest.approx(np.hypot(4.0, 25.0) / 2.0, rel=1e-5)


def test_no_more_wait_than_there_are_others(settled):
    settled(level=50.0)
    assert mixed(one(11.0), 100.0, 90.0, 1000.0, 9.0).waiting[0] == 10.0
    assert mixed(one(0.5), 100.0, 90.0, 1000.0, 9.0).waiting[0] == 0.0


def test_steps_with_prompts_are_fewer_where_these_come_together():
    """Half as many steps have prompts of twice the rate: 4 of 8 slots in each of them."""
    chunks, shares = chunked(8, 2.0, inf, waves=wave(2.0, weights=[0.5]))
    evenly, among_evenly = chunked(8, 4.0, inf)
    assert chunks == pytest.approx(evenly)
    assert shares == pytest.approx([x / 2 for x in among_evenly])


def test_no_fewer_steps_have_prompts_than_the_flow_needs():
    """Four times 4 a step are more than a step's 8: they take half of all steps, full."""
    chunks, shares = chunked(8, 4.0, 8.0, waves=wave(4.0, weights=[0.25]))
    assert chunks == pytest.approx([8.0, 8.0])
    assert sum(shares) == pytest.approx(0.5)
    chunks, shares = chunked(2, 2.0, 2.0, waves=wave(3.0, 1.0, weights=[0.2, 0.4]))
    assert (chunks, sum(shares)) == (pytest.approx([2.0, 2.0]), pytest.approx(1.0))


def test_waves_of_two_densities():
    """Of two slots one prompt in half of all steps: in a tenth of them 3 times as dense, in 7 tenths once. Binomial
    with chances 3/4 and 1/4: 15/16 and 7/16 of those steps have one; a square is the rate and half of its square more.
    """
    chunks, shares = chunked(2, 0.5, inf, waves=wave(3.0, 1.0, weights=[0.1, 0.7]))
    assert sum(shares) == pytest.approx(0.1 * 15 / 16 + 0.7 * 7 / 16)
    assert np.dot(shares, chunks) == pytest.approx(0.5)
    assert np.dot(shares, np.square(chunks)) == pytest.approx(0.5 + 0.1 * 1.5**2 / 2 + 0.7 * 0.5**2 / 2)


def test_prompts_apart_that_come_together(settled):
    """32 slots in a life of 8: 4 a step, 8 at a look every second step; 3.2 times as close 25.6 come at a third of the
    looks (of 32 at four fifths each, so that none is without); no more than all slots do."""
    settled(dense=3.2)
    found = apart(one(32.0), 100.0, 6.0, 1000.0, 2.0, 0.2, 6.0, 0.5, 4.0, interval=2.0)
    assert settled.asked[0] == pytest.approx([0.0, 0.1, 6.0, 0.5, 0.125])
    assert (found.prompts[0], found.decoding[0], found.dense[0]) == (4.0, 24.0, 3.2)
    assert found.shares.sum() == pytest.approx(1 / 3.2 / 2)
    assert (found.shares * found.chunks).sum() == pytest.approx(400.0)
    settled(dense=9.0)
    found = apart(one(32.0), 100.0, 6.0, 1000.0, 2.0, interval=2.0)
    assert found.dense[0] == 4.0
    assert found.chunks.ravel().tolist() == pytest.approx([3200.0, 3200.0])
    assert apart(one(32.0), 100.0, 0.0, 1000.0, 0.25).prompts[0] == 32.0


def test_waves_of_a_round_are_normal():
    """Widths of 0.1 are added in squares: of a round a deviation of 0.1 / sqrt(12) at its start, and more to its end.
    Nothing comes four deviations away; the densest of 8 moments is a quarter of one from the middle."""
    found = waves_of(one(0.0), 0.05, 2.0)
    deviations = [0.1 * sqrt(0.5 + (i + 0.5) / WAVE_ROUNDS) / sqrt(12) for i in range(WAVE_ROUNDS)]
    assert (found.weights * found.densities).sum() == pytest.approx(1.0)
    assert found.weights.sum() == pytest.approx(8 * np.mean(deviations))
    assert found.densities.max() == pytest.approx(exp(-(0.25**2) / 2) / (deviations[0] * sqrt(2 * pi)), rel=1e-3)
    assert found.weights[-1, 0] == 0.0, "the last width is not reached"


def test_wide_waves_are_even():
    """A life wide they meet those before and after them, two fifths from even; a run without an end has no waves."""
    late = waves_of(one(0.0), 0.5, 1e6)
    assert (late.densities[-1, 0], late.weights[-1, 0]) == (1.0, pytest.approx(1.0, abs=1e-5))
    wide = waves_of(one(0.9), 0.3, 2.0)
    assert wide.densities[:-1] == pytest.approx(1.0, abs=0.4)
    endless = waves_of(one(0.3), 0.2, inf)
    assert (endless.densities, endless.weights) == (1.0, 1.0)
    some = waves_of(np.array([0.3, 0.3]), 0.2, np.array([inf, 10.0]))  # beside one that has an end
    assert (some.densities[:, 0] == 1.0).all()
    assert some.weights[:, 0].sum() == pytest.approx(1.0)
    assert len(some.weights) == MOMENTS * WAVE_ROUNDS + 1


def test_widths_of_starts():
    """Prompts take up 0.3 of a life; widths 0.4 are added in squares to 0.5, then 0.64, … up to a life."""
    first = waves_of(one(0.3), 0.2, 2.0).dense[0]
    assert first == pytest.approx(2 * (sqrt(0.09 + 0.16 * 1.5) - sqrt(0.09 + 0.16 * 0.5)) / 0.16)
    # in later rounds too, until they are even: after (1 - 0.09) / 0.16 of them
    even = (1 - 0.09) / 0.16
    together = 2 * (sqrt(0.09 + 0.16 * (even + 0.5)) - sqrt(0.09 + 0.08)) / 0.16
    assert waves_of(one(0.3), 0.2, 101.0).dense[0] == pytest.approx((together + (100 - even)) / 100)
    assert waves_of(one(0.3), 0.2, inf).dense[0] == 1.0
    assert waves_of(one(0.3), 0.2, 0.0).dense[0] == pytest.approx(first)  # a later round there is


def test_starts_that_the_front_end_gathers():
    """Of widths 0.2 a gathered 0.1 leaves (0.04 - 0.01) / 0.2 = 0.15; where prompts fill 0.18, those."""
    start = 0.0
    last = sqrt(0.15**2 + 0.04) - 0.1
    until = (last**2 - start) / 0.04
    together = 2 * (sqrt(0.04 * (until + 0.5)) - sqrt(0.02)) / 0.04
    expected = (together + (99 - until) / last) / 99
    assert waves_of(one(0.0), 0.1, 100.0, 0.1).dense[0] == pytest.approx(expected)
    wide = waves_of(one(0.18), 0.1, 1e6, 0.1).dense[0]
    assert wide == pytest.approx(1 / (sqrt(0.18**2 + 0.04) - 0.1), rel=1e-3)


def test_a_queue_near_its_room():
    """A slot more than keeps it busy: the level is 1, and half of the chance's spread is cut off."""
    fits = 2.5 * 10 / (1 + 9 / 400)
    load, level, excess = _queue(one(fits + 2.0), 400.0, 9.0, 1000.0, one(10.0))
    assert (load[0], level[0]) == (1.0, pytest.approx(1.0))
    spread = sqrt(fits / (2 * (1 + 9 / 400)))
    z = 1 / spread
    above = 0.5 * (1 + erf(z / sqrt(2)))
    mean = spread * (z + exp(-z * z / 2) / sqrt(2 * pi) / above)
    assert excess[0] == pytest.approx(mean - 1.0, rel=0.03)


def test_decodes_leave_room_where_prompts_wait():
    """Of 1,000 slots 24.45 are not waiting: 9 / 10 of those decode beside prompts of 400 in 1,000 tokens."""
    found = _settle(one(1000.0), 400.0, 9.0, 1000.0, one(10.0), 0.0)
    active = 1 + 2.5 * 10 / (1 + 9 / 400)
    assert found.size[0] == pytest.approx(400 / (1000 - 0.9 * active))
    tight = _settle(one(1e6), 100.0, 300.0, 400.0, one(2.0), 0.0)
    assert tight.size[0] == pytest.approx(2.0)  # half of what a prompt and its decodes share stays
    # lengths between 0.855 and 1.045 steps: those above one take two
    long = _settle(one(1.0), 950.0, 1.0, 1000.0, one(1e6), 0.1)
    assert long.own_steps[0] == pytest.approx((0.145 + 2 * 0.045) / 0.19, rel=1e-4)
    short = _settle(one(1.0), 890.0, 1.0, 1000.0, one(1e6), 0.1)
    assert short.own_steps[0] == 1.0
