"""Pipeline schedules: each rule says what its order, played out, takes and holds; and refuses what it cannot run."""

import itertools

import numpy as np
import pytest
from even_pieces import even_seconds

from orrery.base.errors import ScenarioError
from orrery.training.schedules.registry import SCHEDULES, get_schedule, refusal
from orrery.training.schedules.schedule import numbered
from orrery.training.schedules.timeline import play_schedule

NAMES = sorted(SCHEDULES.techniques)
SIZES = list(itertools.product(range(1, 7), range(1, 4), (1, 2, 3, 4, 5, 7, 8, 11, 12, 14)))
TIMES = [(1, 1, 1), (2, 3, 1), (1, 1.25, 0.75)]
ODD_TIMES = [(2, 1, 1), (1, 0.5, 2.5), (1.25, 1, 1.5)]  # F > B, or W > B


def allowed(name):
    """The small sizes that a schedule takes."""
    return [size for size in SIZES if not refusal(name, *size)]


def played(name, pp, vp, m, times):
    schedule = get_schedule(name)
    return play_schedule(schedule, pp, vp, m, even_seconds(schedule, pp, vp, *times))


def test_all_are_found():
    assert NAMES == [
        "1f1b",
        "dualpipe",
        "gpipe",
        "interleaved",
        "zero-bubble-h1",
        "zero-bubble-h2",
        "zero-bubble-v",
    ]


@pytest.mark.parametrize("name", NAMES)
def test_the_rule_is_what_the_order_takes(name):
    """The makespan of the order is m (F + B + W) + idle, for every small size."""
    times = TIMES if name == "zero-bubble-v" else TIMES + ODD_TIMES
    for (pp, vp, m), (f, b, w) in itertools.product(allowed(name), times):
        timeline = played(name, pp, vp, m, (f, b, w))
        idle_s = float(get_schedule(name)(pp, vp, m).idle_s(f, b, w))
        assert timeline.makespan_s == pytest.approx(m * (f + b + w) + idle_s), (pp, vp, m, f, b, w)
        assert timeline.idle_s == pytest.approx(np.full(pp, idle_s)), (pp, vp, m, f, b, w)


def test_zero_bubble_v_is_no_faster_than_its_rule_where_forward_or_weights_are_longest():
    for (pp, vp, m), (f, b, w) in itertools.product(allowed("zero-bubble-v"), ODD_TIMES):
        timeline = played("zero-bubble-v", pp, vp, m, (f, b, w))
        numbers = get_schedule("zero-bubble-v")(pp, vp, m)
        slack_s = (pp - 1) * (max(f - b, 0) + max(w - b, 0))
        over_s = timeline.makespan_s - m * (f + b + w) - float(numbers.idle_s(f, b, w))
        assert -1e-9 <= over_s <= slack_s
        own_s = float(timeline.own_idle_s.max() - numbers.idle_s(f, b, w, is_synchronous=False))
        assert -1e-9 <= own_s <= slack_s


@pytest.mark.parametrize("name", ["zero-bubble-h2", "zero-bubble-v"])
def test_a_parallelogram_idles_less_within_its_own_step(name):
    for (pp, vp, m), times in itertools.product(allowed(name), TIMES):
        own_s = float(get_schedule(name)(pp, vp, m).idle_s(*times, is_synchronous=False))
        assert float(played(name, pp, vp, m, times).own_idle_s.max()) == pytest.approx(own_s)


@pytest.mark.parametrize("name", NAMES)
def test_the_rule_is_what_ranks_hold(name):
    for pp, vp, m in allowed(name):
        held = played(name, pp, vp, m, (1, 1, 1)).in_flight_ratio
        numbers = get_schedule(name)(pp, vp, m)
        assert held.max() == pytest.approx(float(numbers.in_flight_ratio)), (pp, vp, m)
        assert held[-1] == pytest.approx(float(numbers.last_in_flight_ratio)), (pp, vp, m)


@pytest.mark.parametrize("name", NAMES)
def test_every_micro_batch_goes_through_every_chunk_once(name):
    schedule = get_schedule(name)
    for pp, vp, m in allowed(name)[::3]:
        for rank in range(pp):
            pieces = schedule.order(pp, vp, m, rank)
            for kind in "FBW":
                done = [(p.micro_batch, p.chunk) for p in pieces if kind in p.kind]
                assert len(done) == len(set(done)) == m * vp
                assert {i for i, _ in done} == set(range(m))


def test_published_numbers():
    """pp = 8, m = 32, F = 1, B = 1, W = 1, as in the tables of the papers."""
    idle_s = {n: float(get_schedule(n)(8, 1, 32).idle_s(1, 1, 1, is_synchronous=False)) for n in NAMES}
    assert idle_s["1f1b"] == idle_s["gpipe"] == 7 * 3
    assert idle_s["zero-bubble-h1"] == 7 * (1 + 1 - 1)
    assert idle_s["zero-bubble-h2"] == 0
    assert idle_s["dualpipe"] == 3 * (3 + 2 - 3)  # (pp/2 - 1)(F&B + B' - 3 W), B' = B + W
    assert float(get_schedule("interleaved")(8, 4, 32).idle_s(1, 1, 1)) == pytest.approx(7 * 3 / 4)
    assert float(get_schedule("zero-bubble-v")(8, 2, 32).idle_s(1, 1, 1, is_synchronous=False)) == 0
    held = {n: float(get_schedule(n)(8, 1, 32).in_flight_ratio) for n in NAMES}
    assert (held["gpipe"], held["1f1b"], held["zero-bubble-h1"], held["zero-bubble-h2"]) == (32, 8, 8, 15)
    assert held["dualpipe"] == 9
    assert float(get_schedule("interleaved")(8, 4, 32).in_flight_ratio) == pytest.approx(8 * (1 + 7 / 32))


@pytest.mark.parametrize("name", NAMES)
def test_arrays_say_what_single_sizes_say(name):
    schedule = get_schedule(name)
    pp, vp, m = (np.array(x, dtype=np.int64) for x in zip(*SIZES, strict=True))
    fits = schedule.sizes.is_allowed(pp, vp, m)
    assert fits.tolist() == [not refusal(name, *size) for size in SIZES]
    many = schedule(pp[fits], vp[fits], m[fits])
    for i, size in enumerate(allowed(name)):
        one = schedule(*size)
        for field in ("in_flight_ratio", "last_in_flight_ratio", "parameter_copies_ratio", "sends_ratio"):
            assert getattr(many, field)[i] == getattr(one, field)
        assert many.idle_s(1.0, 2.0, 0.5)[i] == one.idle_s(1.0, 2.0, 0.5)


@pytest.mark.parametrize(
    ("name", "size", "words"),
    [
        ("interleaved", (4, 2, 10), "got 10; write 8 or 12."),
        ("interleaved", (4, 1, 8), "got 1; write vp = 2."),
        ("1f1b", (4, 2, 8), "needs vp = 1 chunks a rank, got 2; write vp = 1."),
        ("zero-bubble-v", (4, 3, 8), "got 3; write vp = 2."),
        ("zero-bubble-h1", (4, 1, 3), "needs 4 or more micro-batches at pp = 4, got 3; write 4."),
        ("zero-bubble-h2", (4, 1, 6), "needs 7 or more micro-batches at pp = 4, got 6; write 7."),
        ("dualpipe", (3, 1, 8), "needs pp in multiples of 2, got 3; write 2 or 4."),
        ("dualpipe", (4, 1, 11), "needs 8 or more micro-batches in multiples of 2 at pp = 4, got 11; write 10 or 12."),
        ("dualpipe", (4, 1, 2), "got 2; write 8."),
        ("gpipe", (0, 1, 4), "got 0; write 1."),
    ],
)
def test_refusals_say_what_to_write(name, size, words):
    assert refusal(name, *size).endswith(words)
    with pytest.raises(ScenarioError, match="needs"):
        play_schedule(get_schedule(name), *size, even_seconds(get_schedule(name), *size[:2], 1, 1, 1))


@pytest.mark.parametrize("name", NAMES)
def test_what_a_refusal_offers_is_taken(name):
    for pp, vp, m in SIZES:
        if why := refusal(name, pp, vp, m):
            offered = [int(w) for w in why.rstrip(".").split("; write ")[1].removeprefix("vp = ").split(" or ")]
            for number in offered:
                if "needs pp" in why:
                    assert "needs pp" not in refusal(name, number, vp, m)
                elif "needs vp" in why:
                    assert "needs vp" not in refusal(name, pp, number, m)
                else:
                    assert not refusal(name, pp, vp, number)


def test_an_unknown_schedule_names_the_nearest():
    with pytest.raises(ScenarioError, match="dualpipe"):
        get_schedule("dual-pipe")


def test_weight_gradients_of_whole_and_split_backward_passes_are_counted_together():
    pieces = numbered([("F", 0), ("F", 0), ("BW", 0), ("B", 0), ("W", 0)])
    assert [(p.kind, p.micro_batch) for p in pieces] == [("F", 0), ("F", 1), ("BW", 0), ("B", 1), ("W", 1)]
