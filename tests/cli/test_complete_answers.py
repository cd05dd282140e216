"""What people ask next stands in the terminal: room for context and requests, a row for each device, headroom."""

import json
import re

import pytest

ONE = ("--model", "llama-3.1-8b", "--device", "h100-sxm", "--input-tokens", "1000", "--output-tokens", "200")
PLAN = (
    "plan",
    *ONE,
    "--device",
    "h100-sxm,l40s,t4",
    "--rate",
    "4",
    "--slo",
    "ttft:1000",
    "--slo",
    "tpot:60",
    "--max-devices",
    "2",
    "--weights",
    "bf16",
)


def counted(text, words):
    return float(re.search(words + r"([\d,]+)", text)[1].replace(",", ""))


def test_an_estimate_says_its_cache_its_longest_context_and_its_most_requests(describe):
    found = json.loads(describe("estimate", *ONE, "--concurrency", "8", "--json")[1])
    room, memory = found["room"], found["memory"]
    # By hand: 2 x 32 layers x 8 heads x 128 x 2 bytes = 131,072 bytes a token, in blocks of 16.
    assert memory["kv_bytes_per_token"] == 131_072
    assert room["kv_cache_tokens"] == memory["kv_capacity_bytes"] // (16 * 131_072) * 16
    assert (room["longest_context_tokens"], room["longest_context_limit"]) == (131_072, "model")
    # Half of an output is held on average, and half a block of 16: 1,108 tokens a request. A full cache leaves half a
    # request of room.
    assert int(room["max_sequences"]) == int(memory["kv_capacity_bytes"] / (1_108 * 131_072) - 0.5)
    assert room["max_sequences_limit"] == "kv cache"
    text = " ".join(describe("estimate", *ONE, "--concurrency", "8")[1].split())
    assert counted(text, "KV cache: ") == room["kv_cache_tokens"]
    assert counted(text, "Longest context: ") == 131_072
    assert counted(text, "Most sequences in flight: ") == int(room["max_sequences"])


@pytest.mark.parametrize(
    ("flags", "longest", "limit", "most"),
    [
        (("--max-model-len", "4096"), 4096, "max_model_len", 1),
        (("--dp", "2"), 131_072, "model", 2),
        (("--device", "l4"), None, "kv cache", None),
    ],
)
def test_room_follows_limits_and_replicas(flags, longest, limit, most, describe):
    one = json.loads(describe("estimate", *ONE, "--concurrency", "8", "--json")[1])["room"]
    room = json.loads(describe("estimate", *ONE, "--concurrency", "8", *flags, "--json")[1])["room"]
    assert room["longest_context_limit"] == limit
    assert room["longest_context_tokens"] == (longest or room["kv_cache_tokens"])
    if most:
        assert room["max_sequences"] == pytest.approx(most * one["max_sequences"], rel=0.01)
        assert room["replicas"] == most


def test_few_slots_are_named_as_the_limit(describe):
    room = json.loads(describe("estimate", *ONE, "--concurrency", "8", "--max-num-seqs", "16", "--json")[1])["room"]
    assert (room["max_sequences"], room["max_sequences_limit"]) == (16, "max_num_seqs")


def test_a_plan_has_a_row_for_each_device_and_says_what_is_missing(describe, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    found = json.loads(describe(*PLAN, "--json")[1])
    ranks = [p["rank"] for p in found["plans"]]
    assert ranks == sorted(ranks)
    assert {p["device"] for p in found["plans"]} == {"h100-sxm", "l40s"}
    _, text, _ = describe(*PLAN)
    rows = [line.split()[1] for line in text.split("Memory (")[0].splitlines() if re.match(r"\d+ +\S+ tp", line)]
    assert sorted(rows) == ["h100-sxm", "l40s"]
    assert "t4: no plan works; the nearest: " in text
    best = found["plans"][0]
    assert best["headroom_frac"] == pytest.approx(best["highest_requests_per_s"] / 4 - 1)
    said_frac = counted(" ".join(text.split()), r"sustains [\d.]+ requests/s, ") / 100
    assert said_frac == pytest.approx(best["headroom_frac"], abs=0.005)


def test_all_plans_are_shown_when_asked(describe):
    _, text, _ = describe(*PLAN, "--all-plans")
    found = json.loads(describe(*PLAN, "--all-plans", "--json")[1])
    assert len(found["plans"]) == found["num_plans"]
    rows = [int(row) for row in re.findall(r"^ *(\d+) +\S+ tp", text.split("Memory (")[0], re.MULTILINE)]
    assert rows == list(range(1, found["num_plans"] + 1))
    assert "further plan" not in text


def test_of_one_device_the_best_layouts_are_rows(describe):
    _, text, _ = describe("plan", *ONE, "--rate", "8", "--max-devices", "2")
    rows = re.findall(r"^ *(\d+) +\S+ tp", text.split("Memory (")[0], re.MULTILINE)
    assert rows == ["1", "2", "3", "4", "5"]
