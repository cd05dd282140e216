"""What the package's rules do, worked out by hand."""

from orrery_deadlines.earliest_deadline import Knobs, order
from orrery_deadlines.fewest_tokens import route


def test_a_short_prompt_overtakes_a_long_one_that_came_just_before():
    knobs = (Knobs().base_s, Knobs().per_token_s)
    long = order(10.0, 0.0, 8000, 100, 0.0, knobs)  # due at 10 + 0.5 + 1.6 = 12.1 s
    short = order(10.5, 0.0, 500, 100, 0.0, knobs)  # due at 10.5 + 0.5 + 0.1 = 11.1 s
    assert (long, short) == (12.1, 11.1)


def test_the_replica_with_the_fewest_tokens_is_chosen():
    assert route([1, 3, 1], [9000, 600, 800], [0, 0, 0], -1, 0, 0.0, 0.0, ()) == 1
    assert route([2, 2], [700, 700], [0, 0], -1, 0, 0.0, 0.0, ()) == 0
