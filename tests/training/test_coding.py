"""Gradient codes on real vectors: what is tolerated is decoded to the exact sum, and the rest is refused."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.base.errors import OutOfRange, ScenarioError
from orrery.training.coding import (
    CodingKnobs,
    Multiplexed,
    Plain,
    SelectiveRepetition,
    WorkerPace,
    gilbert_elliott,
    gradient_code,
    is_bursty,
    run_s,
    worker_times_s,
)
from orrery.training.coding.techniques import gradient_coding, multiplexed_coding, selective_repetition

WIDTH = 3


def whole(rng, *shape):
    """Partial gradients in whole numbers, so that plain sums have no rounding."""
    return rng.integers(-1000, 1000, (*shape, WIDTH)).astype(np.float64)


@st.composite
def codes(draw):
    n = draw(st.integers(1, 14))
    return n, draw(st.integers(0, n - 1))


@settings(deadline=None, max_examples=80)
@given(codes(), st.sampled_from(["", "cyclic"]), st.integers(0, 2**32 - 1))
def test_any_s_workers_may_be_missing(size, kind, seed):
    n, s = size
    rng = np.random.default_rng(seed)
    code = gradient_code(n, s, kind=kind)
    chunks = whole(rng, n)
    answered = np.ones(n, dtype=bool)
    answered[rng.permutation(n)[: rng.integers(0, s + 1)]] = False
    answers = code.encode(chunks)
    answers[~answered] = np.nan  # what never came must not be read
    assert code.decode(answers, answered) == pytest.approx(chunks.sum(axis=0), rel=1e-6, abs=1e-3)


@settings(deadline=None, max_examples=60)
@given(codes(), st.integers(0, 2**32 - 1))
def test_one_more_is_refused_by_the_cyclic_code(size, seed):
    n, s = size
    code = gradient_code(n, s, kind="cyclic")
    answered = np.ones(n, dtype=bool)
    answered[np.random.default_rng(seed).permutation(n)[: s + 1]] = False
    with pytest.raises(OutOfRange, match=f"{s + 1} of {n} workers are missing"):
        code.decode(np.zeros((n, WIDTH)), answered)


def test_repetition_is_exact_and_refuses_a_lost_group():
    code = gradient_code(6, 2)
    chunks = whole(np.random.default_rng(1), 6)
    answered = np.array([0, 0, 1, 0, 1, 0], dtype=bool)  # four are missing, but one of each group answered
    assert (code.decode(code.encode(chunks), answered) == chunks.sum(axis=0)).all()
    with pytest.raises(OutOfRange):
        code.decode(code.encode(chunks), np.array([1, 1, 1, 0, 0, 0], dtype=bool))


@settings(deadline=None, max_examples=50)
@given(codes())
def test_every_worker_holds_s_plus_one_chunks_and_every_chunk_has_s_plus_one_holders(size):
    n, s = size
    for kind in ("", "cyclic"):
        held = gradient_code(n, s, kind=kind).matrix_ratio != 0.0
        assert (held.sum(axis=0) == s + 1).all()
        assert (held.sum(axis=1) == s + 1).all()


def test_a_code_for_256_workers_decodes_with_28_consecutive_ones_missing():
    rng = np.random.default_rng(3)
    code = gradient_code(256, 28, kind="cyclic")
    chunks = whole(rng, 256)
    for late in (np.arange(28), rng.permutation(256)[:28]):
        answered = np.ones(256, dtype=bool)
        answered[late] = False
        assert code.decode(code.encode(chunks), answered) == pytest.approx(chunks.sum(axis=0), rel=1e-6, abs=1e-3)


def bursty(rng, n, rounds, knobs):
    """A random pattern inside the model, as full as a greedy draw makes it."""
    late = np.zeros((rounds, n), dtype=bool)
    for r in range(rounds):
        for w in rng.permutation(n):
            late[r, w] = rng.random() < 0.7
            if late[r, w] and not is_bursty(late[: r + 1], knobs):
                late[r, w] = False
    return late


@st.composite
def sequential(draw):
    b = draw(st.integers(1, 3))
    knobs = CodingKnobs(
        num_stragglers=draw(st.integers(0, 5)), burst_rounds=b, window_rounds=b * draw(st.integers(1, 2)) + 1
    )
    return draw(st.integers(6, 8)), knobs, draw(st.integers(0, 2**32 - 1))


@settings(deadline=None, max_examples=60)
@given(sequential(), st.sampled_from([SelectiveRepetition, Multiplexed]))
def test_sequential_schemes_decode_every_bursty_pattern(drawn, kind):
    n, knobs, seed = drawn
    rng = np.random.default_rng(seed)
    scheme = kind.of(n, knobs)
    chunks = whole(rng, 7, scheme.num_chunks)
    late = bursty(rng, n, 7 + scheme.delay_rounds, knobs)
    assert scheme.decode(chunks, late) == pytest.approx(chunks.sum(axis=1), rel=1e-6, abs=1e-3)


@settings(deadline=None, max_examples=80)
@given(sequential(), st.sampled_from([SelectiveRepetition, Multiplexed]), st.floats(0.0, 0.6))
def test_whatever_happens_a_decoded_gradient_is_the_sum(drawn, kind, share):
    n, knobs, seed = drawn
    rng = np.random.default_rng(seed)
    scheme = kind.of(n, knobs)
    chunks = whole(rng, 6, scheme.num_chunks)
    late = rng.random((6 + scheme.delay_rounds, n)) < share
    try:
        decoded = scheme.decode(chunks, late)
    except OutOfRange:
        assert not is_bursty(late, knobs)
    else:
        assert decoded == pytest.approx(chunks.sum(axis=1), rel=1e-6, abs=1e-3)


def test_multiplexed_without_a_code_repeats_whatever_is_lost():
    knobs = CodingKnobs(num_stragglers=5, burst_rounds=2, window_rounds=4)
    scheme = Multiplexed.of(5, knobs)
    assert scheme.num_chunks == 15
    chunks = whole(np.random.default_rng(0), 4, 15)
    late = np.zeros((4 + scheme.delay_rounds, 5), dtype=bool)
    late[1:3] = True  # everybody for two rounds
    assert (scheme.decode(chunks, late) == chunks.sum(axis=1)).all()
    late[3] = True
    with pytest.raises(OutOfRange, match="uncoded chunks"):
        scheme.decode(chunks, late)


def test_sizes_of_chunks_make_the_load():
    """n own (lambda + 1) + n B small chunks are the job; a worker computes own + B slots of lambda + 1 small chunks."""
    n, lam, b, w = 12, 3, 2, 4
    scheme = Multiplexed.of(n, CodingKnobs(num_stragglers=lam, burst_rounds=b, window_rounds=w))
    small = 1.0 / (n * (w - 1) * (lam + 1) + n * b)
    assert scheme.load_frac == pytest.approx((w - 1 + b) * (lam + 1) * small)


def test_loads_of_the_papers_schemes():
    """The loads that the authors' parameter search prints for 256 workers."""
    plain = Plain(code=gradient_code(256, 15))
    selective = SelectiveRepetition.of(256, CodingKnobs(num_stragglers=23, burst_rounds=2, window_rounds=3))
    multiplexed = Multiplexed.of(256, CodingKnobs(num_stragglers=27, burst_rounds=1, window_rounds=2))
    assert plain.load_frac == 0.0625
    assert selective.load_frac == 0.05078125
    assert multiplexed.load_frac == pytest.approx(0.007543103448275862)
    assert (plain.delay_rounds, selective.delay_rounds, multiplexed.delay_rounds) == (0, 2, 1)


def test_techniques_build_their_schemes():
    knobs = CodingKnobs(num_stragglers=3)
    made = [t.TECHNIQUE.rule(8, knobs) for t in (gradient_coding, selective_repetition, multiplexed_coding)]
    assert [type(scheme) for scheme in made] == [Plain, SelectiveRepetition, Multiplexed]
    assert [scheme.load_frac for scheme in made] == [4 / 8, 3 / 8, 8 / (8 * 5)]


def test_bursts_are_told_from_the_rest():
    knobs = CodingKnobs(num_stragglers=2, burst_rounds=2, window_rounds=4)
    late = np.zeros((8, 3), dtype=bool)
    late[[0, 1], 0] = True
    assert is_bursty(late, knobs)
    late[2, 0] = True  # three in a row
    assert not is_bursty(late, knobs)
    late[2, 0] = False
    late[4, 0] = True  # rounds 1 and 4 share a window
    assert not is_bursty(late, knobs)
    late[4, 0], late[5, 0] = False, True  # rounds 1 and 5 do not
    assert is_bursty(late, knobs)
    late[[1, 1], [1, 2]] = True  # three workers in one window
    assert not is_bursty(late, knobs)


def test_trace_has_the_share_and_the_bursts_that_were_asked_for():
    trace = gilbert_elliott(256, 4000, late_frac=0.05, leave_frac=0.4, seed=1)
    assert trace.mean() == pytest.approx(0.05, rel=0.03)
    starts = (trace[1:] & ~trace[:-1]).sum()
    assert trace[1:].sum() / starts == pytest.approx(1 / 0.4, rel=0.03)
    assert (trace == gilbert_elliott(256, 4000, late_frac=0.05, leave_frac=0.4, seed=1)).all()


def test_a_run_by_hand():
    """Fastest 1 s, mu = 1: who takes over 2 s is late; s = 1 tolerates one of them, not two."""
    times_s = np.array([[1.0, 1.5, 9.0, 1.2], [1.0, 5.0, 9.0, 1.2], [1.0, 1.5, 1.6, 1.2]])
    rounds_s, late = run_s(Plain(code=gradient_code(4, 1)), times_s, 1.0)
    assert rounds_s.tolist() == [2.0, 5.0, 1.6]
    assert late.tolist() == [[False, False, True, False], [False, False, True, False], [False] * 4]


@pytest.mark.parametrize("kind", [SelectiveRepetition, Multiplexed])
def test_whom_the_master_gives_up_on_is_decoded_without(kind):
    knobs = CodingKnobs(num_stragglers=4, burst_rounds=2, window_rounds=3)
    scheme = kind.of(16, knobs)
    slow = gilbert_elliott(16, 20 + scheme.delay_rounds, late_frac=0.15, leave_frac=0.6, seed=4)
    pace = WorkerPace(fixed_s=1.0, per_load_s=1.0, slow_ratio=4.0)
    times_s = worker_times_s(pace, scheme.load_frac, slow)
    rounds_s, late = run_s(scheme, times_s, 1.0)
    assert late.any()
    assert (late <= slow).all()
    chunks = whole(np.random.default_rng(0), 20, scheme.num_chunks)
    assert scheme.decode(chunks, late) == pytest.approx(chunks.sum(axis=1), rel=1e-6, abs=1e-3)
    assert (rounds_s <= times_s.max(axis=1)).all()


def seconds(scheme, pace, slow):
    times_s = worker_times_s(pace, scheme.load_frac, slow[: 100 + scheme.delay_rounds])
    return run_s(scheme, times_s, 1.0)[0].sum()


@pytest.mark.parametrize(
    ("knobs", "leave_frac"),
    [
        (CodingKnobs(num_stragglers=27, burst_rounds=1, window_rounds=2), 0.99),
        (CodingKnobs(num_stragglers=27, burst_rounds=2, window_rounds=3), 0.9),
    ],
)
def test_a_trace_of_256_workers_costs_the_multiplexed_scheme_less(knobs, leave_frac):
    plain, multiplexed = Plain(code=gradient_code(256, 15)), Multiplexed.of(256, knobs)
    slow = gilbert_elliott(256, 100 + multiplexed.delay_rounds, late_frac=0.01, leave_frac=leave_frac, seed=0)
    pace = WorkerPace(fixed_s=0.6, per_load_s=2.2, slow_ratio=2.5)
    assert multiplexed.load_frac < plain.load_frac / 4
    assert seconds(multiplexed, pace, slow) < 0.95 * seconds(plain, pace, slow)


def test_without_stragglers_only_loads_and_delay_matter():
    plain, multiplexed = Plain(code=gradient_code(256, 15)), Multiplexed.of(256, CodingKnobs(num_stragglers=27))
    slow = np.zeros((101, 256), dtype=bool)
    pace = WorkerPace(fixed_s=0.6, per_load_s=2.2, slow_ratio=2.5, scatter_ratio=1.0)
    assert seconds(plain, pace, slow) == pytest.approx(100 * (0.6 + 2.2 * 16 / 256))
    assert seconds(multiplexed, pace, slow) == pytest.approx(101 * (0.6 + 2.2 * multiplexed.load_frac))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: gradient_code(4, 4), "write 0 to 3"),
        (lambda: gradient_code(4, 2, kind="repetition"), "does not divide"),
        (lambda: gradient_code(4, 1, kind="fourier"), "'cyclic'"),
        (lambda: CodingKnobs(num_stragglers=1, burst_rounds=2, window_rounds=2), "window_rounds > burst_rounds"),
        (lambda: SelectiveRepetition.of(6, CodingKnobs(burst_rounds=2, window_rounds=4, num_stragglers=1)), "x B"),
        (lambda: gilbert_elliott(4, 4, late_frac=1.0, leave_frac=0.5), "late"),
        (lambda: gilbert_elliott(4, 4, late_frac=0.9, leave_frac=0.9), "smaller leave"),
        (lambda: Plain(code=gradient_code(4, 1)).decode(np.zeros((2, 3, 1)), np.zeros((2, 4), bool)), r"\(jobs, 4"),
    ],
)
def test_what_makes_no_sense_is_refused(make, says):
    with pytest.raises(ScenarioError, match=says):
        make()


def test_no_coding_waits_for_everyone():
    rng = np.random.default_rng(0)
    times_s = rng.random((5, 8)) + 0.1
    rounds_s, late = run_s(Plain(code=gradient_code(8, 0)), times_s, 0.0)
    assert rounds_s.tolist() == times_s.max(axis=1).tolist()
    assert not late.any()
    assert math.isclose(gradient_code(8, 0).load_frac, 1 / 8)
