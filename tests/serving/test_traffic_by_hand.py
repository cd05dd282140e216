"""Traffic from streams whose numbers a test chooses: arrivals, lengths, sessions, block ids, and fits."""

from dataclasses import replace
from math import exp, inf, log, sqrt
from statistics import NormalDist

import numpy as np
import pytest

from orrery.serving.arrivals.techniques import diurnal, gamma, mmpp, ramp
from orrery.serving.synthesis import fitted, growing, lengths, prefixes
from orrery.serving.synthesis.agents import Agents
from orrery.serving.synthesis.blocks import ranges, shared_then_own
from orrery.serving.synthesis.clipped import lognormal_centre, lognormal_mean, normal_centre, normal_mean
from orrery.serving.synthesis.fitted import Fitted, _lognormal, _ranks, fit, rank_correlation
from orrery.serving.synthesis.growing import (
    Sharing,
    Turns,
    _blocks,
    filled,
    grown,
    pauses,
    prompts,
    turn_numbers,
    within,
)
from orrery.serving.synthesis.lengths import Length, draw, fit_lognormal
from orrery.serving.synthesis.prefixes import Prefixes, _groups, repeated, shared_prefixes
from orrery.serving.synthesis.sessions import Conversations

NORMAL = NormalDist()


class Stream:
    """A stream of random numbers that are known: each kind from its list, over and over."""

    def __init__(self, **given):
        self.given = given

    def _next(self, name, size):
        return np.resize(np.array(self.given[name], float), size)

    def random(self, size):
        return self._next("random", size)

    def standard_normal(self, size):
        return self._next("normal", size)

    def standard_exponential(self, size):
        return self._next("exponential", size)

    def standard_gamma(self, shape, size):
        return self._next("gamma", size) * shape


# --- arrivals


def test_gamma_gaps_end_at_count_over_rate():
    """Gaps 1, 2, 3, 2 of four requests at 2/s: a unit is a quarter of a second. Gaps of nothing are one long one."""
    found = gamma.rule(4, 2.0, Stream(gamma=[1, 2, 3, 2]), gamma.Gamma(burstiness=0.5))
    assert found.tolist() == [0.25, 0.75, 1.5, 2.0]
    assert gamma.rule(4, 2.0, Stream(), gamma.Gamma(burstiness=inf)).tolist() == [0.5, 1.0, 1.5, 2.0]
    assert gamma.rule(4, 2.0, Stream(gamma=[0.0]), gamma.Gamma(burstiness=0.5)).tolist() == [0.0, 0.0, 0.0, 2.0]
    assert gamma.Gamma().burstiness == 1.0


@pytest.fixture
def even(monkeypatch):
    """Unit arrivals at 1, 2, 3, …"""
    for module in (ramp, diurnal, mmpp):
        monkeypatch.setattr(module, "unit_arrivals", lambda count, stream: np.arange(1.0, count + 1))


def test_a_ramp_is_the_root_of_its_area(even):
    """From 1/s to 3/s over 4 s, 8 requests: after t seconds t + t^2 / 4; beyond it 3/s."""
    times = ramp.rule(8, 2.0, None, ramp.Ramp(end_to_start_ratio=3.0))
    assert (times + times**2 / 4).tolist() == pytest.approx(list(range(1, 9)))
    assert times[-1] == pytest.approx(4.0)
    falling = ramp.rule(8, 2.0, None, ramp.Ramp(end_to_start_ratio=1 / 3))
    assert (3 * falling - falling**2 / 4).tolist() == pytest.approx(list(range(1, 9)))
    assert ramp.Ramp().end_to_start_ratio == 4.0


def test_beyond_the_ramp_its_last_rate_goes_on(monkeypatch):
    monkeypatch.setattr(ramp, "unit_arrivals", lambda count, stream: np.array([8.0, 9.5]))
    found = ramp.rule(8, 2.0, None, ramp.Ramp(end_to_start_ratio=3.0))
    assert found.tolist() == pytest.approx([4.0, 4.5])


def test_a_day_is_the_inverse_of_its_area(even):
    """Three times as busy at noon as at midnight: 1 - cos / 2 of 2/s. 20 requests a day of 10 s, from midnight."""
    times = diurnal.rule(25, 2.0, None, diurnal.Day(peak_to_trough_ratio=3.0, day_s=10.0))
    area = 2.0 * (times - 0.5 * 10.0 / (2 * np.pi) * np.sin(2 * np.pi * times / 10.0))
    assert area.tolist() == pytest.approx(list(range(1, 26)), rel=1e-6)
    noon = diurnal.rule(20, 2.0, None, diurnal.Day(peak_to_trough_ratio=3.0, day_s=10.0, start_frac=0.5))
    assert noon.tolist() == pytest.approx([t - 5.0 for t in times if t > 5.0] + noon[15:].tolist(), rel=1e-6)
    assert noon[-1] == pytest.approx(10.0)


def test_spells_in_turn(even):
    """Calm for 4 s at 1 and busy for 1 s at 6: 10 a round of 5 s at a rate of 2/s. It starts busy, for its mean times
    1, then calm for twice its mean, then busy again."""

    class Path(Stream):
        def spawn(self, count):
            return [self] * count

        def choice(self, size, p):
            assert p.tolist() == pytest.approx([0.8, 0.2])
            return 1

    path = Path(exponential=[1.0, 2.0])
    found = mmpp.rule(20, 2.0, path, mmpp.MmppStates(rates_ratio=(1.0, 6.0), dwells_s=(4.0, 1.0)))
    # busy 1 s at 6/s, calm 8 s at 1/s, busy 1 s at 6/s
    assert found.tolist() == pytest.approx(
        [i / 6 for i in range(1, 7)] + [1.0 + i for i in range(1, 9)] + [9.0 + i / 6 for i in range(1, 7)]
    )
    assert (mmpp.MmppStates().rates_ratio, mmpp.MmppStates().dwells_s) == ((1.0, 10.0), (60.0, 6.0))


# --- lengths


def test_lengths_from_known_numbers():
    """Uniform: 100 +- 20 % are 80 to 120, both included; normal and lognormal: the centre and so many deviations."""
    uniform = Length(mean_tokens=100, law="uniform", range_ratio=0.2)
    assert draw(uniform, 3, Stream(random=[0.0, 0.5, 0.9999])).tolist() == [80, 100, 120]
    short = Length(mean_tokens=1, law="uniform", range_ratio=0.9)
    assert draw(short, 2, Stream(random=[0.0, 0.9999])).tolist() == [1, 2]
    normal = Length(mean_tokens=1000, std_tokens=50, law="normal")
    assert draw(normal, 3, Stream(normal=[0.0, 2.0, -1.0])).tolist() == [1000, 1100, 950]
    log_normal = Length(mean_tokens=1000, std_tokens=1000)
    sigma = sqrt(log(2.0))
    expected = [round(1000 * exp(sigma * z - sigma**2 / 2)) for z in (0.0, 1.0)]
    assert draw(log_normal, 2, Stream(normal=[0.0, 1.0])).tolist() == pytest.approx(expected, abs=1)
    assert draw(Length(mean_tokens=7, law="constant"), 2, Stream()).tolist() == [7, 7]
    capped = Length(mean_tokens=100, std_tokens=80, law="normal", most_tokens=120)
    assert draw(capped, 2, Stream(normal=[9.0, -9.0])).tolist() == [120, 1]


def test_means_of_clipped_laws():
    """A normal around 1 with deviation 2: half is 1, the rest 1 + 2 sqrt(2 / pi) / 2 on average. A lognormal of median
    1: half is 1, the rest the mean above it. A bound at the middle makes of both halves one."""
    assert normal_mean(1.0, 2.0, 1e9) == pytest.approx(1.0 + 2.0 / sqrt(2 * np.pi))
    assert normal_mean(5.0, 2.0, 5.0) == pytest.approx(5.0 - 2.0 / sqrt(2 * np.pi), rel=0.02)
    above = exp(0.5) * NORMAL.cdf(1.0)
    assert lognormal_mean(0.0, 1.0, 1e9) == pytest.approx(0.5 + above)
    middle = 0.5 * 100 + 0.5 * 100 * exp(0.005) * NORMAL.cdf(-0.1) / 0.5
    assert lognormal_mean(log(100.0), 0.1, 100.0) == pytest.approx(middle)
    assert normal_mean(normal_centre(5.0, 3.0, 40.0), 3.0, 40.0) == pytest.approx(5.0)
    assert lognormal_mean(lognormal_centre(5.0, 1.5, 40.0), 1.5, 40.0) == pytest.approx(5.0)
    assert normal_centre(1.001, 9.0, 1e4) < -9.0  # far below: all but some are cut off


def test_a_lognormal_with_its_mean_and_nearest_quantiles():
    """Sigma on a grid of 1500 points from 0.01 to 3: at the 501st point the quantiles fit exactly."""
    step = 2.99 / 1499
    sigma = 0.01 + 500 * step
    mu = log(800.0) - sigma**2 / 2
    quantiles = {p: exp(mu + sigma * NORMAL.inv_cdf(p)) for p in (0.5, 0.9, 0.99)}
    assert fit_lognormal(quantiles, 800.0) == pytest.approx((mu, sigma))
    drawn = lengths.lognormal_lengths(2, 3.0, 0.5, 30.0, Stream(normal=[0.0, 1.0]))
    assert drawn.tolist() == [20, 30]


# --- fits


def test_ranks_are_shared_by_equals():
    assert _ranks(np.array([5, 1, 5, 9])).tolist() == [2.5, 1.0, 2.5, 4.0]
    assert rank_correlation(np.array([1, 2, 3]), np.array([10, 30, 20])) == pytest.approx(0.5)
    assert rank_correlation(np.array([1, 1, 1]), np.array([10, 30, 20])) == 0.0


def test_a_fit_of_four_requests():
    """Gaps 1, 1, 4 s: mean 2, deviation sqrt(2). Ranks in reverse: r = -1, rho = 2 sin(-pi / 6) = -1."""
    found = fit(
        np.array([0.0, 1.0, 2.0, 6.0]), np.array([10, 20, 40, 80]), np.array([9, 9, 7, 3]) + np.array([0, -1, 0, 0])
    )
    assert found.request_rate_per_s == 0.5
    assert found.interarrival_cv_ratio == pytest.approx(sqrt(2.0) / 2.0)
    assert found.correlation_ratio == pytest.approx(-1.0)
    assert (found.input_most_tokens, found.output_most_tokens) == (80, 9)
    together = fit(np.zeros(2), np.array([10, 20]), np.array([9, 9]))
    assert (together.request_rate_per_s, together.interarrival_cv_ratio) == (0.0, 0.0)
    assert (together.output_log_mean_ratio, together.output_log_std_ratio) == (pytest.approx(log(9)), 0.0)
    assert _lognormal(np.array([500, 501]))[1] == 0.01


def test_requests_like_those_of_a_fit(monkeypatch):
    """The second normal is 0.6 of the first and 0.8 of its own."""
    told = []

    def arriving(law, count, rate, seed, burstiness):
        told.append((law, rate, burstiness))
        return np.zeros(count)

    streams = {"lengths/input": Stream(normal=[1.0]), "lengths/output": Stream(normal=[2.0])}
    monkeypatch.setattr(fitted, "stream", lambda seed, name: streams[name])
    monkeypatch.setattr(fitted, "arrivals", arriving)
    like = Fitted(
        request_rate_per_s=3.0,
        interarrival_cv_ratio=0.5,
        input_log_mean_ratio=log(100.0),
        input_log_std_ratio=log(2.0),
        input_most_tokens=1000,
        output_log_mean_ratio=log(10.0),
        output_log_std_ratio=log(4.0),
        output_most_tokens=1000,
        correlation_ratio=0.6,
    )
    made = like.requests(1)
    assert (made.input_tokens[0], made.output_tokens[0]) == (200, round(10 * 4**2.2))
    like.requests(1, 7.0)
    assert told == [("gamma", 3.0, 4.0), ("gamma", 7.0, 4.0)]


# --- sessions


def test_numbers_of_turns(monkeypatch):
    """Mean 2: a number u gives 1 + floor(log(1 - u) / log(1 / 2)) turns: 1, 2 and 3 of u = 0.4, 0.6, 0.8."""
    assert turn_numbers(7, 3.0, "constant", 0).tolist() == [0, 1, 2, 0, 1, 2, 0]
    assert turn_numbers(3, 1.0, "geometric", 0).tolist() == [0, 0, 0]
    monkeypatch.setattr(growing, "stream", lambda seed, name: Stream(random=[0.4, 0.6, 0.8]))
    assert turn_numbers(8, 2.0, "geometric", 0).tolist() == [0, 0, 1, 0, 1, 2, 0, 0]
    assert turn_numbers(6, 2.0, "geometric", 0).tolist() == [0, 0, 1, 0, 1, 2]


def test_pauses_from_known_numbers(monkeypatch):
    monkeypatch.setattr(growing, "stream", lambda seed, name: Stream(exponential=[0.5, 2.0], normal=[0.0, 1.0]))
    assert pauses(2, 10.0, 1.0, "exponential", 0).tolist() == [5.0, 20.0]
    assert pauses(2, 10.0, 0.0, "lognormal", 0).tolist() == [10.0, 10.0]
    assert pauses(2, 10.0, 1.0, "constant", 0).tolist() == [10.0, 10.0]
    found = pauses(2, 10.0, 1.0, "lognormal", 0)
    assert found.tolist() == pytest.approx([10 / sqrt(2), 10 * exp(sqrt(log(2)) - log(2) / 2)])


TURNS = Turns(
    turn=np.array([0, 1, 2, 0, 1]),
    new_tokens=np.array([10, 20, 30, 40, 50]),
    answer_tokens=np.array([1, 2, 3, 4, 5]),
    pause_s=np.array([9.0, 7.0, 5.0, 9.0, 3.0]),
)


def test_prompts_grow_by_what_was_said():
    """System 100: 110; 110 + 1 + 20; 131 + 2 + 30. The second session: 140; 140 + 4 + 50."""
    sharing = Sharing(system_tokens=100, context_tokens=166, block_tokens=16)
    assert prompts(TURNS, sharing).tolist() == [110, 131, 163, 140, 194]
    assert within(TURNS, sharing).tolist() == [True, True, True, True, False]
    assert within(TURNS, Sharing(system_tokens=100, context_tokens=0, block_tokens=16)).all()
    assert within(TURNS, Sharing(system_tokens=100, context_tokens=165, block_tokens=16)).tolist()[2] is False


def test_sessions_as_requests(monkeypatch):
    """Two sessions in five requests at 5/s begin at 2/s. Blocks of 50: two of the system prompt of 100 are everybody's;
    the first session has one of its own from its second request on (133 and 166 tokens: 2 and 3 blocks)."""
    told = []

    def arriving(law, count, rate, seed):
        told.append((law, count, rate))
        return np.array([1.0, 4.0])

    monkeypatch.setattr(growing, "arrivals", arriving)
    made = grown(TURNS, Sharing(system_tokens=100, context_tokens=0, block_tokens=50), 5.0, 0, "poisson", {})
    assert told == [("poisson", 2, 2.0)]
    assert made.arrive_s.tolist() == [1.0, 7.0, 5.0, 4.0, 3.0]
    assert made.after.tolist() == [-1, 0, 1, -1, 3]
    assert made.session.tolist() == [0, 0, 0, 1, 1]
    assert made.prefix_start.tolist() == [0, 2, 4, 7, 9, 12]
    assert made.prefix_ids.tolist() == [0, 1, 0, 1, 0, 1, 2, 0, 1, 0, 1, 3]
    start, ids = _blocks(
        np.array([0, 0, 1]), np.array([30, 60, 40]), Sharing(system_tokens=25, context_tokens=0, block_tokens=10)
    )
    assert start.tolist() == [0, 3, 9, 13]
    assert ids.tolist() == [0, 1, 2, 0, 1, 2, 3, 4, 5, 0, 1, 6, 7]


def test_more_are_drawn_for_those_that_are_dropped():
    """The context holds half: 4 are wanted, 2 of 4 fit; of 4 x 1.1 x 4 / 2 = 8.8, 9 then, more than 4 do."""
    asked = []

    def make(requested):
        asked.append(requested)
        turn = np.zeros(requested, np.int64)
        new = np.where(np.arange(requested) % 2 == 0, 10, 100)
        return Turns(turn=turn, new_tokens=new, answer_tokens=turn + 1, pause_s=turn + 0.5)

    found = filled(4, make, Sharing(system_tokens=0, context_tokens=50, block_tokens=16))
    assert asked == [4, 9]
    assert found.new_tokens.tolist() == [10] * 4
    assert (found.answer_tokens.tolist(), found.pause_s.tolist()) == ([1] * 4, [0.5] * 4)

    def nearly(requested):
        asked.append(requested)
        few = make(requested)
        new = np.full(requested, 10)
        new[: max(0, 11 - requested)] = 100
        return Turns(turn=few.turn, new_tokens=new, answer_tokens=few.answer_tokens, pause_s=few.pause_s)

    asked.clear()
    filled(10, nearly, Sharing(system_tokens=0, context_tokens=50, block_tokens=16))
    assert asked[::2] == [10, 13]  # 10 x 1.1 x 10 / 9 = 12.2


def test_decks_of_prefixes(monkeypatch):
    """Two decks of three: order 2, 0, 1, then 0, 1, 2; numbered by first use the first deck is 0, 1, 2."""
    monkeypatch.setattr(prefixes, "stream", lambda seed, name: Stream(random=[0.5, 0.9, 0.1, 0.1, 0.5, 0.9]))
    assert _groups(5, 3, 0).tolist() == [0, 1, 2, 1, 2]
    assert _groups(3, 3, 0).tolist() == [0, 1, 2]
    assert _groups(3, 7, 0).tolist() == [0, 1, 2]


def test_groups_of_requests_that_begin_alike(monkeypatch):
    """Prefixes of 40 tokens are two blocks of 16; suffix and answer of 20 and 10 tokens make 70: four blocks in all."""
    monkeypatch.setattr(prefixes, "arrivals", lambda law, count, rate, seed: np.arange(float(count)))
    monkeypatch.setattr(prefixes, "_groups", lambda count, num, seed: np.array([0, 1, 0]))
    like = Prefixes(
        num_prefixes=2,
        prefix_tokens=40,
        suffix=Length(mean_tokens=20, law="constant"),
        answer=Length(mean_tokens=10, law="constant"),
    )
    made = shared_prefixes(3, 1.0, traffic=like)
    assert made.input_tokens.tolist() == [60, 60, 60]
    assert made.prefix_ids.tolist() == [0, 1, 4, 5, 2, 3, 6, 7, 0, 1, 8, 9]
    assert made.prefix_start.tolist() == [0, 4, 8, 12]
    assert made.prefix_block_tokens == 16


def test_prompts_asked_in_turn():
    """17 and 48 tokens: one and two whole blocks of 16 before the last token; the third asks the first again."""
    made = shared_prefixes(3, 1.0)
    asked = repeated(replace(made, input_tokens=np.array([17, 48, 17])), 2, 16)
    assert asked.prefix_start.tolist() == [0, 1, 3, 4]
    assert asked.prefix_ids.tolist() == [0, 2, 3, 0]


def test_runs_of_ids():
    assert ranges(np.array([5, 9, 0]), np.array([2, 0, 3])).tolist() == [5, 6, 0, 1, 2]
    assert ranges(np.array([5]), np.array([0])).tolist() == []
    start, ids = shared_then_own(np.array([0, 3]), np.array([2, 1]), np.array([9, 7]), np.array([1, 0]), 16)
    assert (start.tolist(), ids.tolist()) == ([0, 3, 4], [0, 1, 9, 3])


def test_what_traffic_is_where_nobody_says():
    """Prefixes as in vLLM's ``prefix_repetition``; conversations and agents as their pages say."""
    told = Prefixes()
    assert (told.num_prefixes, told.prefix_tokens, told.suffix.mean_tokens, told.answer.mean_tokens) == (
        10,
        256,
        256,
        128,
    )
    talk, agent = Conversations(), Agents()
    assert (talk.num_turns, talk.think_s, talk.think_cv_ratio, talk.system_tokens) == (4.0, 30.0, 1.0, 0)
    assert (talk.question.mean_tokens, talk.question.std_tokens) == (100.0, 100.0)
    assert (talk.answer.mean_tokens, talk.answer.std_tokens) == (250.0, 200.0)
    assert (agent.num_calls, agent.tool_s, agent.tool_cv_ratio, agent.system_tokens) == (8.0, 1.0, 1.0, 2000)
    means = [(x.mean_tokens, x.std_tokens) for x in (agent.task, agent.result, agent.call, agent.answer)]
    assert means == [(500.0, 500.0), (800.0, 1200.0), (100.0, 80.0), (400.0, 300.0)]
    assert {x.context_tokens for x in (talk, agent)} == {0}
    assert {x.block_tokens for x in (told, talk, agent)} == {16}
    assert (diurnal.Day().peak_to_trough_ratio, diurnal.Day().day_s, diurnal.Day().start_frac) == (3.0, 86400.0, 0.0)
    assert Length(mean_tokens=1).law == "lognormal"
