"""Traces repeated, scaled and cut, and versions compared: each worked out by hand on a few rows."""

from pathlib import Path

import pytest

from orrery.base.errors import ScenarioError
from orrery.catalog.releases import is_past, numbers
from orrery.catalog.trace_requests import requests_of
from orrery.catalog.trace_table import NO_ARRIVALS, Row, gathered, is_number

FILE = Path("three.csv")
ROWS = [
    Row(11.0, 100, 10, session="a", client="x"),
    Row(10.0, 8, 2, session="b"),
    Row(14.0, 40, 60, client="y"),
]


def test_rows_in_order_of_arrival_with_names_numbered_from_zero():
    trace = gathered(FILE, ROWS)
    assert trace.arrival_s.tolist() == [0.0, 1.0, 4.0]
    assert trace.input_tokens.tolist() == [8, 100, 40]
    assert trace.session.tolist() == [0, 1, -1]  # b comes first; none stays none
    assert trace.client.tolist() == [2, 0, 1]  # the nameless are one client more
    assert trace.priority.size == 0
    assert trace.notes == ("three.csv: 1 of 3 rows come before the one above them; sorted by arrival",)


def test_repeated_a_mean_gap_apart_with_new_conversations():
    """Three in 4 s: gaps of 2 s, so the second lap begins at 6 s; two conversations, so its own are 2 and 3."""
    found = requests_of(gathered(FILE, ROWS), count=5)
    assert found.arrive_s.tolist() == [0.0, 1.0, 4.0, 6.0, 7.0]
    assert found.session.tolist() == [0, 1, -1, 2, 3]
    assert found.client.tolist() == [2, 0, 1, 2, 0]
    assert found.priority.size == 0


def test_scaled_to_a_rate():
    """Two gaps at 0.25 requests/s last 8 s, twice what they did; of the first two the one gap is 4 s."""
    assert requests_of(gathered(FILE, ROWS), rate=0.25).arrive_s.tolist() == [0.0, 2.0, 8.0]
    assert requests_of(gathered(FILE, ROWS), count=2, rate=0.25).arrive_s.tolist() == [0.0, 4.0]


def test_cut_the_prompt_first():
    """At most 50: 100 + 10 -> 40 + 10; 40 + 60 keeps one token of prompt and 49; 8 + 2 stays."""
    found = requests_of(gathered(FILE, ROWS), most_tokens=50)
    assert found.input_tokens.tolist() == [8, 40, 1]
    assert found.output_tokens.tolist() == [2, 10, 49]
    assert any("2 requests are cut to 50" in note for note in found.notes)
    assert requests_of(gathered(FILE, ROWS)).input_tokens.tolist() == [8, 100, 40]
    assert requests_of(gathered(FILE, ROWS), most_tokens=2).output_tokens.tolist() == [1, 1, 1]
    with pytest.raises(ScenarioError, match="most_tokens"):
        requests_of(gathered(FILE, ROWS), most_tokens=1)


def test_without_arrival_times():
    """Two rows at one moment say so, one row cannot; they come at once, or as drawn at a rate."""
    twins = gathered(FILE, [Row(3.0, 5, 6), Row(3.0, 7, 8)])
    assert any(NO_ARRIVALS in note for note in twins.notes)
    assert requests_of(twins).arrive_s.tolist() == [0.0, 0.0]
    drawn = requests_of(twins, count=50, rate=2.0)
    assert drawn.arrive_s[-1] > 0.0
    assert not any(NO_ARRIVALS in note for note in drawn.notes)
    assert any("Poisson" in note for note in drawn.notes)
    assert gathered(FILE, [Row(3.0, 5, 6)]).notes == ()


def test_numbers_are_finite_and_no_truth_values():
    assert is_number(1)
    assert is_number(-2.5)
    assert not any(map(is_number, (True, False, float("inf"), float("nan"), "1", None, 10**400)))


def test_versions_by_their_first_three_numbers():
    assert numbers("1.2.0rc2") == (1, 2, 0)
    assert numbers("0.11.0.4.7") == (0, 11, 0)
    assert numbers("v0.9.1post3") == (0, 9, 1)
    assert is_past("0.9", "0.11")
    assert is_past("0.9", "0.9")
    assert not is_past("0.11", "0.9")
    assert is_past("7.0", "")
    assert is_past("0", "unknown-to-all")
