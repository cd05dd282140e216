"""Traces: what is synthesised keeps the published statistics; what is read is read as published."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from orrery.base.errors import ScenarioError, UnknownName
from orrery.base.sources import read_facts
from orrery.catalog.traces import FOLDER, arrivals, fit_lognormal, load_trace, stats, stream, trace_names

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
SHAREGPT = json.dumps([
    {"id": "a", "conversations": [{"from": "human", "value": "x" * 40}, {"from": "gpt", "value": "y" * 400}]},
    {"id": "b", "conversations": [{"from": "human", "value": "alone"}]},
])  # fmt: skip


@pytest.mark.parametrize("name", trace_names())
def test_a_shipped_trace_has_the_statistics_it_was_made_from(name: str) -> None:
    facts, _ = read_facts(FOLDER / f"{name}.toml")
    made = stats(load_trace(name))
    assert 1 / made.request_rate_per_s == pytest.approx(float(facts["interarrival_s"].value), rel=1e-9)
    for side in ("input", "output"):
        wanted = float(facts[f"{side}_mean_tokens"].value)
        assert getattr(made, f"{side}_mean_tokens") == pytest.approx(wanted, rel=0.1)
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


def test_streams_are_independent() -> None:
    first, second = stream(0, "arrivals"), stream(0, "lengths")
    assert first.random() != second.random()


@pytest.mark.parametrize("cv", [0.0, 0.5, 1.0, 3.0])
def test_gaps_have_the_mean_and_spread_asked_for(cv: float) -> None:
    at = arrivals(20_000, 0.25, cv, stream(3, "x"))
    gaps = np.diff(at)
    assert at[0] == 0
    assert gaps.mean() == pytest.approx(0.25, rel=1e-9)
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.1, abs=1e-9)


def test_a_lognormal_is_found_again() -> None:
    mu, sigma = 5.0, 0.8
    quantiles = {0.5: np.exp(mu), 0.9: np.exp(mu + 1.2815516 * sigma), 0.99: np.exp(mu + 2.3263479 * sigma)}
    found = fit_lognormal(quantiles, float(np.exp(mu + sigma**2 / 2)))
    assert found == pytest.approx((mu, sigma), abs=2e-3)


@pytest.mark.parametrize(
    ("name", "text", "arrival_s", "input_tokens", "output_tokens"),
    [
        ("azure.csv", AZURE, [0, 0.052], [4808, 3180], [10, 8]),
        ("burst.csv", BURST, [0, 113.5], [472, 417], [18, 276]),
        ("mooncake.jsonl", MOONCAKE, [0, 1.5], [6758, 7322], [500, 490]),
        ("share.json", SHAREGPT, [0], [10], [100]),
        ("ours.csv", "arrival_s,input_tokens,output_tokens,note\n2,20,3,b\n1,10,2,a\n", [0, 1], [10, 20], [2, 3]),
        ("lengths.csv", "input_tokens,output_tokens\n7,8\n", [0], [7], [8]),
    ],
)
@pytest.mark.parametrize("zipped", [False, True])
def test_files_are_read_as_published(
    tmp_path: Path, name: str, text: str, arrival_s: list[float], input_tokens: list[int], output_tokens: list[int],
    zipped: bool,
) -> None:  # fmt: skip
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
    with pytest.raises(ScenarioError, match="cannot be read"):
        load_trace(str(tmp_path / "none.csv"))
    with pytest.raises(UnknownName, match="chat"):
        load_trace("chatt")


def test_real_traces_read_like_their_published_statistics() -> None:
    import os

    folder = Path(os.environ.get("ORRERY_DATA", Path(__file__).parents[3] / "shared" / "data")) / "traces"
    if not (folder / "mooncake_conversation.jsonl.gz").exists():
        pytest.skip("measured traces are not here; set ORRERY_DATA")
    found = stats(load_trace(str(folder / "mooncake_conversation.jsonl.gz")))
    assert found.num_requests == 12031
    assert found.input_mean_tokens == pytest.approx(12035.06, abs=0.1)
