"""Rows of trace files read one by one: moments, blocks, conversations, limits, and a trace in a few numbers."""

import json
from pathlib import Path

import numpy as np
import pytest

from orrery.base.errors import ScenarioError, UnknownName
from orrery.catalog import trace_json
from orrery.catalog.trace_csv import MAX_COLUMNS, _moment
from orrery.catalog.trace_file import read_trace
from orrery.catalog.trace_requests import requests_of
from orrery.catalog.trace_table import Row, gathered, seconds, tokens
from orrery.catalog.traces import load_trace, stats

FILE = Path("f")


def written(folder, text, name="t.csv"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return read_trace(path)


def test_a_trace_in_a_few_numbers():
    """Gaps of 1 s and 3 s: mean 2, deviation 1; three requests in 4 s are two gaps: 0.5 a second."""
    trace = gathered(FILE, [Row(5.0, 10, 1), Row(6.0, 20, 3), Row(9.0, 60, 8)])
    found = stats(trace)
    assert (found.num_requests, found.duration_s, found.request_rate_per_s) == (3, 4.0, 0.5)
    assert found.interarrival_cv_ratio == 0.5
    assert (found.input_mean_tokens, found.input_p50_tokens, found.output_mean_tokens) == (30.0, 20.0, 4.0)
    assert found.input_std_tokens == pytest.approx(466.666667**0.5)
    assert (found.input_p90_tokens, found.input_p99_tokens) == (pytest.approx(52.0), pytest.approx(59.2))
    assert (found.output_p50_tokens, found.output_p90_tokens) == (3.0, pytest.approx(7.0))
    assert (found.output_p99_tokens, found.longest_tokens) == (pytest.approx(7.9), 68)
    still = stats(gathered(FILE, [Row(5.0, 10, 1), Row(5.0, 20, 3)]))
    assert (still.request_rate_per_s, still.interarrival_cv_ratio) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("text", "after_s"),
    [
        ("1970-01-01 00:00:01", 1.0),
        ("1970-01-01 00:00:01.2500001", 1.2500001),
        ("1970-01-02 00:00:00.5+00:00", 86400.5),
        ("1970-01-01 01:00:00.5+01:00", 0.5),
        ("1970-01-01 00:00:00-02:00", 7200.0),
    ],
)
def test_moments_keep_all_digits(text, after_s):
    assert _moment(FILE, "line 1", text) == pytest.approx(after_s, abs=1e-9)


def test_a_moment_that_is_none_is_refused():
    with pytest.raises(ScenarioError, match="write such as"):
        _moment(FILE, "line 2", "yesterday")


def test_columns_end_at_their_most(tmp_path):
    head = "input_tokens,output_tokens," + ",".join(f"c{i}" for i in range(MAX_COLUMNS - 2))
    row = "5,6," + ",".join("0" * (MAX_COLUMNS - 2))
    assert MAX_COLUMNS == 200
    assert written(tmp_path, f"{head}\n{row}\n").input_tokens.tolist() == [5]
    with pytest.raises(ScenarioError):
        written(tmp_path, f"{head},more\n{row},0\n")


def test_our_own_columns(tmp_path):
    text = "arrival_s,input_tokens,output_tokens,session,client,priority\n1,4,0,s,c,2\n3,5,6,,,\n"
    trace = written(tmp_path, text)
    assert trace.arrival_s.tolist() == [0.0, 2.0]
    assert trace.output_tokens.tolist() == [1, 6]  # nothing asked for is one token
    assert (trace.session.tolist(), trace.client.tolist(), trace.priority.tolist()) == ([0, -1], [0, 1], [2.0, 0.0])
    assert written(tmp_path, "input_tokens,output_tokens\n1,2\n3,4\n", "u.csv").arrival_s.tolist() == [0.0, 0.0]
    for wrong in ("", "nan", "x", "1.5", "-1"):
        with pytest.raises(ScenarioError, match="line 2"):
            written(tmp_path, f"input_tokens,output_tokens\n{wrong},2\n", f"w{wrong}.csv")


def test_limits_of_moments_and_lengths():
    assert (seconds(FILE, "p", "c", 0.0), seconds(FILE, "p", "c", 1e12)) == (0.0, 1e12)
    assert (tokens(FILE, "p", "c", 0.0), tokens(FILE, "p", "c", 7.0)) == (1, 7)
    for wrong in (-1e-9, 1.1e12):
        with pytest.raises(ScenarioError, match="seconds from 0"):
            seconds(FILE, "p", "c", wrong)
    for wrong in (-1.0, 1.5, 1e300):
        with pytest.raises(ScenarioError, match="whole number up to"):
            tokens(FILE, "p", "c", wrong)


def lines(*entries):
    return "\n".join(json.dumps(entry) for entry in entries)


def test_blocks_of_512_tokens_in_milliseconds(tmp_path):
    """1100 tokens are two whole blocks; 700 are one; ids are numbered again from 0."""
    one = {"timestamp": 2000, "input_length": 1100, "output_length": 5, "hash_ids": [7, 0, 9]}
    two = {"timestamp": 2500, "input_length": 700, "output_length": 6, "hash_ids": [7, 4]}
    trace = written(tmp_path, lines(one, two), "m.jsonl")
    assert trace.arrival_s.tolist() == [0.0, 0.5]
    assert (trace.prefix_block_tokens, trace.prefix_start.tolist(), trace.prefix_ids.tolist()) == (
        512,
        [0, 2, 3],
        [1, 0, 1],
    )
    cut = requests_of(trace, most_tokens=600)  # 595 + 5 and 594 + 6: one block each
    assert (cut.prefix_start.tolist(), cut.prefix_ids.tolist()) == ([0, 1, 2], [0, 0])
    assert (cut.prefix_block_tokens, requests_of(trace).prefix_block_tokens) == (512, 512)
    bare = written(tmp_path, lines({"timestamp": 0, "input_length": 9, "output_length": 5}), "n.jsonl")
    assert (bare.prefix_block_tokens, bare.prefix_start.size, requests_of(bare).prefix_block_tokens) == (0, 0, 0)


def test_chats_belong_to_the_session_of_their_first(tmp_path):
    def chat(at, number, parent):
        given = {"timestamp": at, "input_length": 33, "output_length": 1, "chat_id": number, "hash_ids": [number, 1, 2]}
        return given | ({"parent_chat_id": parent} if parent is not None else {})

    trace = written(tmp_path, lines(chat(0, 5, None), chat(1, 6, -1), chat(2, 7, 5), chat(3, 8, 7), chat(4, 9, 99)))
    assert trace.session.tolist() == [0, 1, 0, 0, 2]
    assert trace.arrival_s.tolist() == [0, 1, 2, 3, 4]
    assert (trace.prefix_block_tokens, np.diff(trace.prefix_start).tolist()) == (16, [2, 2, 2, 2, 2])


@pytest.mark.parametrize("ids", [[-1], [1.0], [True], "x", {"a": 1}])
def test_blocks_are_whole_numbers_from_zero(tmp_path, ids):
    with pytest.raises(ScenarioError, match="whole numbers from 0"):
        written(tmp_path, lines({"timestamp": 0, "input_length": 9, "output_length": 5, "hash_ids": ids}))


def test_too_many_lines_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(trace_json, "MAX_ROWS", 2)
    entry = json.dumps({"timestamp": 0, "input_length": 9, "output_length": 5})
    assert written(tmp_path, f"{entry}\n{entry}\n", "a.jsonl").input_tokens.size == 2
    with pytest.raises(ScenarioError, match="3 lines are too many"):
        written(tmp_path, f"{entry}\n{entry}\n\n", "b.jsonl")


def talk(prompt, answer):
    return {"conversations": [{"value": "x" * prompt}, {"value": "y" * answer}, {"value": "z" * 400}]}


def test_conversations_are_four_characters_a_token(tmp_path):
    text = json.dumps([talk(40, 10), talk(0, 1), {"conversations": [{"value": "alone"}]}])
    trace = written(tmp_path, text, "s.json")
    assert (trace.input_tokens.tolist(), trace.output_tokens.tolist()) == ([10, 1], [2, 1])
    assert not any("cut" in note for note in trace.notes)
    long = written(tmp_path, json.dumps([talk(4 * 32_768, 4 * 4096), talk(4 * 32_769, 4), talk(4, 4 * 4097)]), "l.json")
    assert (long.input_tokens.tolist(), long.output_tokens.tolist()) == ([32_768, 32_768, 1], [4096, 1, 4096])
    assert any("2 impossible lengths" in note for note in long.notes)
    for wrong in ([5], [{"conversations": 5}], [{}]):
        with pytest.raises(ScenarioError, match="entry 1: has no conversations"):
            written(tmp_path, json.dumps(wrong), "w.json")


def test_a_trace_is_a_name_or_a_file(tmp_path):
    with pytest.raises(UnknownName):
        load_trace("nosuchtrace")
    with pytest.raises(ScenarioError, match=r"nosuch\.csv"):
        load_trace(tmp_path / "nosuch.csv")
    bare = tmp_path / "bare"
    bare.write_text("input_tokens,output_tokens\n1,2\n", encoding="utf-8")
    assert load_trace(bare).input_tokens.tolist() == [1]
    with pytest.raises(ScenarioError, match="seed"):
        load_trace("chat", seed=-1)
    assert load_trace("chat", seed=0).arrival_s[0] == 0.0


def test_requests_are_counted_within_limits():
    trace = gathered(FILE, [Row(1.0, 5, 6)])
    assert requests_of(trace, count=3).input_tokens.tolist() == [5, 5, 5]
    for wrong in ({"count": -1}, {"rate": -1.0}, {"rate": float("inf")}):
        with pytest.raises(ScenarioError, match="write a"):
            requests_of(trace, **wrong)
