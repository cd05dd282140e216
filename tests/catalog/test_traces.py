"""Traces: what is synthesised keeps the published statistics; what is read is read as published."""

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pytest

from orrery.base.errors import ScenarioError, UnknownName
from orrery.base.sources import read_facts
from orrery.catalog.trace_requests import fit_trace, requests_of
from orrery.catalog.trace_table import NO_ARRIVALS, Trace
from orrery.catalog.traces import FOLDER, load_trace, stats, trace_names
from orrery.cli.simulate_report.parquet import parquet_bytes

AZURE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:17:03.9799600,4808,10
2023-11-16 18:17:04.0319600,3180,8
"""
BURST = """Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
5,ChatGPT,472,18,490,Conversation log
45,GPT-4,1087,0,1087,Conversation log
118.5,GPT-4,417,276,693,Conversation log
"""
MOONCAKE = """{"timestamp": 500, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1]}
{"timestamp": 2000, "input_length": 7322, "output_length": 490, "hash_ids": [0, 14]}
"""
BURST_SESSIONS = """Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type
1,7a,2.5,GPT-4,100,10,110,Conversation log
2,,,GPT-4,50,5,55,API log
9,7a,1.5,GPT-4,160,20,180,Conversation log
"""
BAILIAN = """{"chat_id": 9, "parent_chat_id": 5, "timestamp": 61.5, "input_length": 40, "output_length": 2, "type": "text", "turn": 2, "hash_ids": [70, 71, 99]}
{"chat_id": 5, "parent_chat_id": -1, "timestamp": 1.25, "input_length": 33, "output_length": 4, "type": "text", "turn": 1, "hash_ids": [70, 71, 18446744073709551615]}
{"chat_id": 8, "parent_chat_id": 3, "timestamp": 70, "input_length": 16, "output_length": 4, "type": "text", "turn": 2, "hash_ids": [70]}
{"chat_id": 11, "parent_chat_id": 9, "timestamp": 80, "input_length": 5, "output_length": 4, "type": "text", "turn": 3, "hash_ids": []}
"""  # noqa: E501
OURS = """arrival_s,input_tokens,output_tokens,session,client,priority
3,30,3,b,zoe,2
1,10,1,a,adam,1
2,20,2,,,
4,40,4,a,zoe,0.5
"""
SHAREGPT = json.dumps(
    [
        {"id": "a", "conversations": [{"from": "human", "value": "x" * 40}, {"from": "gpt", "value": "y" * 400}]},
        {"id": "b", "conversations": [{"from": "human", "value": "alone"}]},
    ]
)


@pytest.mark.parametrize("name", trace_names())
def test_a_shipped_trace_has_the_statistics_it_was_made_from(name: str) -> None:
    facts, _ = read_facts(FOLDER / f"{name}.toml")
    made = stats(load_trace(name))
    assert 1 / made.request_rate_per_s == pytest.approx(float(facts["interarrival_s"].value), rel=1e-9)
    for side in ("input", "output"):
        requested = float(facts[f"{side}_mean_tokens"].value)
        assert getattr(made, f"{side}_mean_tokens") == pytest.approx(requested, rel=0.1)
        assert getattr(made, f"{side}_p50_tokens") == pytest.approx(float(facts[f"{side}_p50_tokens"].value), rel=0.25)
    assert made.interarrival_cv_ratio == pytest.approx(float(facts["interarrival_cv_ratio"].value), rel=0.3)


def test_the_same_seed_makes_the_same_trace_and_another_seed_another() -> None:
    one, again, other = load_trace("chat", 1), load_trace("chat", 1), load_trace("chat", 2)
    assert np.array_equal(one.arrival_s, again.arrival_s)
    assert np.array_equal(one.input_tokens, again.input_tokens)
    assert not np.array_equal(one.input_tokens, other.input_tokens)


def test_a_shipped_trace_stays_what_it_is() -> None:
    trace = load_trace("chat")
    assert trace.input_tokens[:4].tolist() == [974, 14, 1, 6]
    assert int(trace.output_tokens.sum()) == 654365


@pytest.mark.parametrize(
    ("name", "text", "arrival_s", "input_tokens", "output_tokens"),
    [
        ("azure.csv", AZURE, [0, 0.052], [4808, 3180], [10, 8]),
        ("burst.csv", BURST, [0, 113.5], [472, 417], [18, 276]),
        ("mooncake.jsonl", MOONCAKE, [0, 1.5], [6758, 7322], [500, 490]),
        ("share.json", SHAREGPT, [0], [10], [100]),
        ("ours.csv", "arrival_s,input_tokens,output_tokens,note\n2,20,3,b\n1,10,2,a\n", [0, 1], [10, 20], [2, 3]),
        ("lengths.csv", "input_tokens,output_tokens\n7,8\n", [0], [7], [8]),
        ("bailian.jsonl", BAILIAN, [0, 60.25, 68.75, 78.75], [33, 40, 16, 5], [4, 2, 4, 4]),
        ("sessions.csv", BURST_SESSIONS, [0, 1, 8], [100, 50, 160], [10, 5, 20]),
    ],
)
@pytest.mark.parametrize("zipped", [False, True])
def test_files_are_read_as_published(
    tmp_path: Path,
    name: str,
    text: str,
    arrival_s: list[float],
    input_tokens: list[int],
    output_tokens: list[int],
    zipped: bool,
) -> None:
    path = tmp_path / (name + ".gz" * zipped)
    path.write_bytes(gzip.compress(text.encode()) if zipped else text.encode())
    trace = load_trace(str(path))
    assert trace.arrival_s.tolist() == pytest.approx(arrival_s, abs=1e-6)
    assert trace.input_tokens.tolist() == input_tokens
    assert trace.output_tokens.tolist() == output_tokens


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "holds no request|no trace's"),
        ("a,b\n1,2\n", r"line 1: the columns a, b"),
        ("arrival_s,input_tokens,output_tokens\n0,5,5\n1,-5,5\n", "line 3: input_tokens: got -5"),
        ("arrival_s,input_tokens,output_tokens\n0,5.5,5\n", "line 2: input_tokens: got 5.5"),
        ("arrival_s,input_tokens,output_tokens\nnan,5,5\n", "line 2: arrival_s"),
        ("arrival_s,input_tokens,output_tokens\n0,5\n", "line 2: output_tokens is blank"),
        ("arrival_s,input_tokens,output_tokens\n", "holds no request"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,5,5\n", "line 2: TIMESTAMP"),
        ('{"timestamp": 1}\n', "line 1: needs numbers timestamp"),
        ('{"timestamp": 1,\n', "line 1: not valid JSON"),
        ('[{"id": 1}]', "entry 1: has no conversations"),
        ("[1,", "not valid JSON"),
        ("", "the columns .none. are no trace's"),
        ("input_tokens,output_tokens,arrival_s\n5,5,1\n5,5\n", "line 3: arrival_s is blank"),
        ("arrival_s,input_tokens,output_tokens\n-1,5,5\n", "line 2: arrival_s: got -1; write seconds"),
        ("arrival_s,input_tokens,output_tokens\n1e300,5,5\n", "line 2: arrival_s: got 1e.300"),
        ("arrival_s,input_tokens,output_tokens\n0,1e400,5\n", "line 2: input_tokens: got '1e400'"),
        ("arrival_s,input_tokens,output_tokens\n0,5,1e12\n", "line 2: output_tokens: got 1e.12"),
        ("arrival_s,input_tokens,output_tokens,priority\n0,5,5,high\n", "line 2: priority: got 'high'"),
        ('{"timestamp": NaN, "input_length": 1, "output_length": 1}', "line 1: needs numbers"),
        ('{"timestamp": 1, "input_length": 1' + "0" * 400 + ', "output_length": 1}', "line 1: needs numbers"),
        ('{"timestamp": 1' + "0" * 5000 + "}", "line 1: not valid JSON: a number in it is too long"),
        ("[" * 100_000, "nested too deeply"),
        ('{"timestamp": -5, "input_length": 1, "output_length": 1}', "line 1: timestamp"),
        ('{"timestamp": 1, "input_length": 1, "output_length": 1, "hash_ids": [1.5]}', "line 1: hash_ids"),
        ('{"timestamp": 1, "input_length": 999, "output_length": 1, "hash_ids": [' + "9" * 30 + "]}", "hash_ids"),
        ('{"chat_id": 1, "timestamp": 1, "input_length": 1}', "line 1: needs numbers timestamp"),
        ('{"chat_id": 1, "timestamp": 1, "input_length": 1, "output_length": 1}\n7', "line 2: got '7'"),
        ('[{"conversations": [{"value": "a"}]}]', "holds no request"),
    ],
)
def test_a_malformed_file_names_its_line(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(ScenarioError, match=says) as error:
        load_trace(str(path))
    assert "bad.csv" in str(error.value)


def test_binary_rubbish_and_missing_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.gz"
    path.write_bytes(b"\x1f\x8b" + b"\x00" * 40)
    with pytest.raises(ScenarioError, match=r"x\.gz"):
        load_trace(str(path))
    with pytest.raises(ScenarioError, match="There is no file"):
        load_trace(str(tmp_path / "none.csv"))
    with pytest.raises(UnknownName, match="chat"):
        load_trace("chatt")


def measured(name: str) -> Trace:
    folder = Path(os.environ.get("ORRERY_DATA", Path(__file__).parents[3] / "shared" / "data")) / "traces"
    if not (folder / name).exists():
        pytest.skip("measured traces are not here; set ORRERY_DATA")
    return load_trace(str(folder / name))


def test_real_traces_read_like_their_published_statistics() -> None:
    trace = measured("mooncake_conversation.jsonl.gz")
    found = stats(trace)
    assert found.num_requests == 12031
    assert found.input_mean_tokens == pytest.approx(12035.06, abs=0.1)


def test_the_measured_prefix_hit_rate_is_the_published_one() -> None:
    """36 to 40 % of Mooncake's prompt tokens are in a cache that never forgets."""
    run = requests_of(measured("mooncake_conversation.jsonl.gz"))
    seen: set[int] = set()
    hits = 0
    for first, last in zip(run.prefix_start[:-1].tolist(), run.prefix_start[1:].tolist(), strict=True):
        ids = run.prefix_ids[first:last].tolist()
        hits += next((n for n, i in enumerate(ids) if i not in seen), len(ids))
        seen.update(ids)
    assert seen == set(range(len(seen)))
    assert 0.36 < hits * run.prefix_block_tokens / run.input_tokens.sum() < 0.40


def test_a_fit_of_the_measured_code_trace_keeps_its_bursts_and_lengths() -> None:
    trace = measured("azure_llm_2023_code.csv")
    assert fit_trace(trace).interarrival_cv_ratio == pytest.approx(13.15, abs=0.01)
    made = fit_trace(trace).requests(20_000)
    assert made.input_tokens.mean() == pytest.approx(trace.input_tokens.mean(), rel=0.02)
    assert made.output_tokens.mean() == pytest.approx(trace.output_tokens.mean(), rel=0.05)


def read(tmp_path: Path, text: str, name: str = "trace.csv") -> Trace:
    (tmp_path / name).write_text(text)
    return load_trace(str(tmp_path / name))


def test_sessions_clients_and_priorities_are_numbered_in_order_of_arrival(tmp_path: Path) -> None:
    trace = read(tmp_path, OURS)
    assert trace.session.tolist() == [0, -1, 1, 0]
    assert trace.client.tolist() == [0, 2, 1, 1]
    assert trace.priority.tolist() == [1, 0, 2, 0.5]
    assert read(tmp_path, BURST_SESSIONS).session.tolist() == [0, -1, 0]


def test_chats_are_chained_and_only_whole_blocks_are_shared(tmp_path: Path) -> None:
    trace = read(tmp_path, BAILIAN, "b.jsonl")
    assert trace.session.tolist() == [0, 0, 1, 0]  # the parent of the third is not in the file
    assert trace.prefix_block_tokens == 16
    assert trace.prefix_start.tolist() == [0, 2, 4, 5, 5]
    assert trace.prefix_ids.tolist() == [0, 1, 0, 1, 0]
    assert read(tmp_path, MOONCAKE, "m.jsonl").prefix_block_tokens == 512


def test_impossible_sharegpt_lengths_are_cut_and_said(tmp_path: Path) -> None:
    talk = [{"from": "human", "value": "x" * 1_000_000}, {"from": "gpt", "value": "y" * 40}]
    trace = read(tmp_path, json.dumps([{"conversations": talk}]), "s.json")
    assert trace.input_tokens.tolist() == [32_768]
    assert "1 impossible lengths" in trace.notes[1]


def test_a_replay_is_the_trace(tmp_path: Path) -> None:
    trace = read(tmp_path, OURS)
    run = requests_of(trace)
    for name in ("input_tokens", "output_tokens", "session", "client", "priority"):
        assert np.array_equal(getattr(run, name), getattr(trace, name))
    assert np.array_equal(run.arrive_s, trace.arrival_s)
    assert run.after.size == 0
    assert requests_of(trace, count=2).input_tokens.tolist() == [10, 20]


@pytest.mark.parametrize("count", [0, 3, 4, 11])
def test_a_replay_has_the_rate_asked_for_and_the_lengths_of_any_other_rate(tmp_path: Path, count: int) -> None:
    trace = read(tmp_path, OURS)
    slow, fast = requests_of(trace, count=count, rate=2.0), requests_of(trace, count=count, rate=8.0)
    assert (slow.count - 1) / slow.arrive_s[-1] == pytest.approx(2.0)
    assert slow.arrive_s == pytest.approx(4 * fast.arrive_s)
    assert np.array_equal(slow.input_tokens, fast.input_tokens)


def test_a_longer_replay_repeats_the_trace_with_new_sessions_and_the_same_blocks(tmp_path: Path) -> None:
    run = requests_of(read(tmp_path, BAILIAN, "b.jsonl"), count=6)
    gap = 78.75 / 3
    assert run.arrive_s.tolist() == pytest.approx([0, 60.25, 68.75, 78.75, 78.75 + gap, 78.75 + gap + 60.25])
    assert run.session.tolist() == [0, 0, 1, 0, 2, 2]
    assert run.prefix_start.tolist() == [0, 2, 4, 5, 5, 7, 9]
    assert run.prefix_ids.tolist() == [0, 1, 0, 1, 0, 0, 1, 0, 1]


def test_lengths_without_arrivals_come_at_once_or_by_poisson(tmp_path: Path) -> None:
    trace = read(tmp_path, "input_tokens,output_tokens\n" + "7,8\n" * 2000)
    assert not requests_of(trace).arrive_s.any()
    assert NO_ARRIVALS in requests_of(trace).notes[0]
    drawn = requests_of(trace, rate=5.0, seed=1)
    assert 2000 / drawn.arrive_s[-1] == pytest.approx(5.0, rel=0.1)
    assert all(NO_ARRIVALS not in note for note in drawn.notes)


def test_requests_longer_than_the_context_are_cut_with_their_blocks(tmp_path: Path) -> None:
    run = requests_of(read(tmp_path, BAILIAN, "b.jsonl"), most_tokens=30)
    assert run.input_tokens.tolist() == [26, 28, 16, 5]
    assert run.prefix_start.tolist() == [0, 1, 2, 3, 3]
    assert "2 requests are cut" in run.notes[-1]


@pytest.mark.parametrize("wrong", [{"count": -1}, {"rate": -1.0}, {"rate": float("nan")}, {"most_tokens": 1}])
def test_a_senseless_replay_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ScenarioError, match=f"{next(iter(wrong))}: got"):
        requests_of(load_trace("chat"), **wrong)


def test_parquet_is_read_like_csv(tmp_path: Path) -> None:
    path = tmp_path / "t[1]*.parquet"
    path.write_bytes(b"PAR1 and nothing else")
    with pytest.raises(ScenarioError, match="not readable as Parquet"):
        load_trace(str(path))
    columns = {
        "arrival_s": np.array([2.0, 1.0]),
        "input_tokens": np.array([20, 10]),
        "output_tokens": np.array([2, 1]),
        "session": np.array(["a", None], dtype=object),
    }
    path.write_bytes(parquet_bytes(columns))
    trace = load_trace(str(path))
    assert trace.input_tokens.tolist() == [10, 20]
    assert trace.session.tolist() == [-1, 0]
    columns["input_tokens"][1] = -3
    path.write_bytes(parquet_bytes(columns))
    with pytest.raises(ScenarioError, match="row 2: input_tokens: got -3"):
        load_trace(str(path))


def test_a_file_is_read_once_and_again_after_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("input_tokens,output_tokens\n10,1\n")
    os.utime(path, ns=(1, 1))
    once = load_trace(str(path))
    assert load_trace(path) is once
    path.write_text("input_tokens,output_tokens\n20,1\n")
    os.utime(path, ns=(2, 2))
    assert load_trace(path).input_tokens.tolist() == [20]


def test_parquet_of_azure_keeps_its_moments(tmp_path: Path) -> None:
    path = tmp_path / "azure.parquet"
    moments = np.array(["2023-11-16T18:17:03.979960", "2023-11-16T18:17:04.031961"], dtype="datetime64[us]")
    tokens = {"ContextTokens": np.array([374, 396]), "GeneratedTokens": np.array([44, 109])}
    path.write_bytes(parquet_bytes({"TIMESTAMP": moments} | tokens))
    trace = load_trace(str(path))
    assert trace.arrival_s.tolist() == pytest.approx([0.0, 0.052001], abs=1e-6)
    assert trace.output_tokens.tolist() == [44, 109]
