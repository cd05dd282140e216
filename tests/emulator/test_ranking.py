"""Rerankers: pairs are read as a deployment reads prompts, and scored the same again."""

import httpx
import pytest

from orrery.scenario.schema import read_scenario
from orrery.scenario.service import service_for
from orrery.serving.live import Live

TOKENS = 603
"""Of a pair: 300 words and a space at each end, and a line's end between them."""

QUESTION = {"query": "who is it", "documents": ["one", {"text": "two words"}, "one"]}


@pytest.fixture
def http(fast):
    with httpx.Client(base_url=fast.url, timeout=20) as found:
        yield found


@pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank"])
def test_documents_come_by_their_score(http, path):
    answer = http.post(path, json=QUESTION | {"model": "llama"}).json()
    results = answer["results"]
    scores = [r["relevance_score"] for r in results]
    assert scores == sorted(scores, reverse=True)
    assert sorted(r["index"] for r in results) == [0, 1, 2]
    assert {r["document"]["text"] for r in results if r["index"] == 1} == {"two words"}
    by_index = {r["index"]: r["relevance_score"] for r in results}
    assert by_index[0] == by_index[2] != by_index[1]
    assert all(0.0 <= s <= 1.0 for s in scores)
    assert answer["usage"] == {"prompt_tokens": 5 + 6 + 5, "total_tokens": 16}  # 3 words, a line's end, 1 or 2 words


def test_the_best_of_them_without_their_texts(http):
    whole = http.post("/v1/rerank", json=QUESTION).json()["results"]
    few = http.post("/v1/rerank", json=QUESTION | {"top_n": 2, "return_documents": False}).json()["results"]
    assert few == [{k: r[k] for k in ("index", "relevance_score")} for r in whole[:2]]


def test_scores_of_pairs(http):
    one = http.post("/v1/score", json={"text_1": "a", "text_2": ["b", "c"]}).json()
    many = http.post("/v1/score", json={"text_1": ["a", "a"], "text_2": ["b", "c"]}).json()
    assert one["data"] == many["data"]
    assert [d["index"] for d in one["data"]] == [0, 1]
    assert (one["object"], one["usage"]["completion_tokens"]) == ("list", 0)


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("rerank", {"query": "a", "documents": []}, "documents"),
        ("rerank", {"query": "", "documents": ["a"]}, "documents"),
        ("rerank", {"query": "a", "documents": ["b"], "top_n": -1}, "top_n"),
        ("rerank", {"documents": ["b"]}, "query"),
        ("score", {"text_1": ["a", "b"], "text_2": ["c", "d", "e"]}, "text_1"),
        ("score", {"text_1": "a", "text_2": "x " * 9000}, "text_2"),
    ],
)
def test_what_cannot_be_scored_is_refused(http, path, body, field):
    got = http.post(f"/v1/{path}", json=body)
    assert (got.status_code, got.json()["error"]["param"]) == (400, field)


def test_a_pair_takes_what_its_tokens_take_of_a_reranker(start):
    """The server's own histogram of times to the first token, against a prompt of as many tokens in the simulator."""
    scenario = {"model": "bge-reranker-v2-m3", "device": "l40s", "max_model_len": 4096}
    live = Live.of(service_for(read_scenario(scenario))[0])
    live.submit(now_s=0.0, input_tokens=TOKENS, output_tokens=1)
    expected_s = live.advance(10.0).time_s[0]
    with start(scenario, speed_ratio=1.0) as found:
        body = {"query": "the " * 300, "documents": ["the " * 300]}
        got = httpx.post(f"{found.url}/v1/rerank", json=body).json()
        times = found.pace.meters.by_replica[0]["time_to_first_token_seconds"]
    assert got["usage"]["total_tokens"] == TOKENS
    assert times.total == pytest.approx(expected_s, rel=0.01)
