"""The page that Prometheus reads: vLLM's names, and counters that add up."""

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

NAMES = {
    "vllm:num_requests_running",
    "vllm:num_requests_waiting",
    "vllm:kv_cache_usage_perc",
    "vllm:num_preemptions",
    "vllm:prompt_tokens",
    "vllm:generation_tokens",
    "vllm:prefix_cache_queries",
    "vllm:prefix_cache_hits",
    "vllm:request_success",
    "vllm:time_to_first_token_seconds",
    "vllm:inter_token_latency_seconds",
    "vllm:request_time_per_output_token_seconds",
    "vllm:e2e_request_latency_seconds",
    "vllm:request_queue_time_seconds",
    "vllm:request_inference_time_seconds",
    "vllm:request_prefill_time_seconds",
    "vllm:request_decode_time_seconds",
    "vllm:request_prompt_tokens",
    "vllm:request_generation_tokens",
    "vllm:request_max_num_generation_tokens",
    "vllm:request_params_n",
    "vllm:request_params_max_tokens",
    "vllm:admission_rejections",
    "vllm:num_requests_waiting_by_reason",
    "vllm:cache_config_info",
    "vllm:prompt_tokens_cached",
    "vllm:prompt_tokens_by_source",
    "vllm:request_prefill_kv_computed_tokens",
    "vllm:request_num_preemptions",
    "orrery:predicted_vs_emulated_lag_seconds",
    "orrery:emulator_event_loop_lag_seconds",
    "orrery:emulator_speed_ratio",
}


@pytest.fixture(scope="module")
def read(start):
    """The page after some traffic: (family, sample name, labels) -> value, and the families."""
    prompt = list(range(64))
    with start(speed_ratio=20.0) as found, httpx.Client(base_url=found.url) as http:
        for _ in range(4):
            body = {"prompt": prompt, "max_tokens": 5, "n": 2}
            assert http.post("/v1/completions", json=body).status_code == 200
        usage = http.post("/v1/completions", json=body).json()["usage"]
        page = http.get("/metrics")
    families = list(text_string_to_metric_families(page.text))
    samples = {(s.name, *sorted(s.labels.items())): s.value for f in families for s in f.samples}
    return families, samples, usage


ONE = (("engine", "0"), ("model_name", "llama"))


def test_names_and_labels(read):
    families, _, _ = read
    assert {f.name for f in families} == NAMES
    for family in families:
        if family.name.startswith("vllm:"):
            assert all({"model_name", "engine"} <= s.labels.keys() for s in family.samples)


def test_buckets(read):
    _, samples, _ = read
    ends = [dict(key[1:])["le"] for key in samples if key[0] == "vllm:time_to_first_token_seconds_bucket"]
    assert [float(x) for x in ends] == [
        0.001,
        0.005,
        0.01,
        0.02,
        0.04,
        0.06,
        0.08,
        0.1,
        0.25,
        0.5,
        0.75,
        1,
        2.5,
        5,
        7.5,
        10,
        20,
        40,
        80,
        160,
        640,
        2560,
        float("inf"),
    ]
    tokens = [dict(key[1:])["le"] for key in samples if key[0] == "vllm:request_prompt_tokens_bucket"]
    assert [float(x) for x in tokens[:4]] == [1, 2, 5, 10]
    assert float(tokens[-2]) == 5000


def test_counters_add_up(read):
    _, samples, usage = read
    assert samples["vllm:generation_tokens_total", *ONE] == 5 * 2 * 5
    assert samples["vllm:prompt_tokens_total", *ONE] == 5 * 2 * 64
    assert samples["vllm:request_success_total", ONE[0], ("finished_reason", "length"), ONE[1]] == 10
    assert samples["vllm:time_to_first_token_seconds_count", *ONE] == 10
    assert samples["vllm:inter_token_latency_seconds_count", *ONE] == 10 * 4
    assert samples["vllm:request_generation_tokens_sum", *ONE] == 50
    assert samples["vllm:num_requests_running", *ONE] == samples["vllm:num_requests_waiting", *ONE] == 0
    whole = samples["vllm:e2e_request_latency_seconds_sum", *ONE]
    parts = [samples[f"vllm:request_{x}_time_seconds_sum", *ONE] for x in ("queue", "prefill", "decode")]
    assert all(x >= 0 for x in parts)
    assert sum(parts) == pytest.approx(whole)
    assert usage["prompt_tokens"] == 64


def test_what_was_said_before_comes_from_the_cache(read):
    _, samples, usage = read
    assert samples["vllm:prefix_cache_queries_total", *ONE] == 10 * 64
    assert 8 * 48 <= samples["vllm:prefix_cache_hits_total", *ONE] <= 9 * 64
    assert usage["prompt_tokens_details"]["cached_tokens"] in (48, 64)


def test_the_lag_is_told(read):
    _, samples, _ = read
    assert samples["orrery:predicted_vs_emulated_lag_seconds_count",] == 5
    assert 0 <= samples["orrery:predicted_vs_emulated_lag_seconds_sum",] < 5


TTFT_S = "0.001 0.005 0.01 0.02 0.04 0.06 0.08 0.1 0.25 0.5 0.75 1 2.5 5 7.5 10 20 40 80 160 640 2560"
GAP_S = "0.01 0.025 0.05 0.075 0.1 0.15 0.2 0.3 0.4 0.5 0.75 1 2.5 5 7.5 10 20 40 80"
REQUEST_S = "0.3 0.5 0.8 1 1.5 2 2.5 5 10 15 20 30 40 50 60 120 240 480 960 1920 7680"
TOKENS = "1 2 5 10 20 50 100 200 500 1000 2000 5000"
BUCKETS = {
    "time_to_first_token_seconds": TTFT_S,
    "inter_token_latency_seconds": GAP_S,
    "request_time_per_output_token_seconds": GAP_S,
    "e2e_request_latency_seconds": REQUEST_S,
    "request_queue_time_seconds": REQUEST_S,
    "request_inference_time_seconds": REQUEST_S,
    "request_prefill_time_seconds": REQUEST_S,
    "request_decode_time_seconds": REQUEST_S,
    "request_prompt_tokens": TOKENS,
    "request_generation_tokens": TOKENS,
    "request_params_max_tokens": TOKENS,
    "request_max_num_generation_tokens": TOKENS,
    "request_prefill_kv_computed_tokens": TOKENS,
    "request_params_n": "1 2 5 10 20",
}
"""vLLM 0.33's, for sequences of at most 8,192 tokens."""


@pytest.mark.parametrize("name", BUCKETS)
def test_every_histogram_has_the_engines_buckets(read, name):
    _, samples, _ = read
    ends = [float(dict(key[1:])["le"]) for key in samples if key[0] == f"vllm:{name}_bucket"]
    assert ends == [*map(float, BUCKETS[name].split()), float("inf")]


def labelled(samples, name, **labels):
    return samples[name, *sorted({"engine": "0", "model_name": "llama", **labels}.items())]


def test_prompt_tokens_come_from_somewhere(read):
    _, samples, _ = read
    hits = samples["vllm:prefix_cache_hits_total", *ONE]
    assert samples["vllm:prompt_tokens_cached_total", *ONE] == hits > 0
    assert labelled(samples, "vllm:prompt_tokens_by_source_total", source="local_cache_hit") == hits
    assert labelled(samples, "vllm:prompt_tokens_by_source_total", source="local_compute") == 640 - hits
    assert samples["vllm:request_prefill_kv_computed_tokens_sum", *ONE] == 640 - hits


def test_series_are_there_before_anything_happens(start):
    with start({"replicas": 2}) as found:
        families = list(text_string_to_metric_families(httpx.get(f"{found.url}/metrics").text))
    samples = {(s.name, *sorted(s.labels.items())): s.value for f in families for s in f.samples}
    for engine in "01":
        for reason in ("stop", "length", "abort", "error"):
            assert labelled(samples, "vllm:request_success_total", engine=engine, finished_reason=reason) == 0
        assert labelled(samples, "vllm:e2e_request_latency_seconds_count", engine=engine) == 0
        assert labelled(samples, "vllm:num_requests_waiting_by_reason", engine=engine, reason="deferred") == 0
    (info,) = [f for f in families if f.name == "vllm:cache_config_info"]
    labels = info.samples[0].labels
    assert (labels["block_size"], labels["enable_prefix_caching"]) == ("16", "True")
    # 0.9 x 79.2 GiB less 15 GiB of weights, at 128 KiB a token and 16 tokens a block
    assert 25_000 < int(labels["num_gpu_blocks"]) < 31_000
    assert not any("spec_decode" in f.name or "gpu_cache" in f.name for f in families)


def test_guessed_tokens_add_up(start):
    scenario = {"draft_tokens": 3, "acceptance": 0.6}
    with start(scenario, speed_ratio=50.0) as found, httpx.Client(base_url=found.url) as http:
        for _ in range(4):
            http.post("/v1/completions", json={"prompt": "a", "max_tokens": 400, "ignore_eos": True})
        families = list(text_string_to_metric_families(http.get("/metrics").text))
    samples = {(s.name, *sorted(s.labels.items())): s.value for f in families for s in f.samples}
    drafts = samples["vllm:spec_decode_num_drafts_total", *ONE]
    accepted = samples["vllm:spec_decode_num_accepted_tokens_total", *ONE]
    assert samples["vllm:spec_decode_num_draft_tokens_total", *ONE] == 3 * drafts
    assert drafts + accepted == 4 * 399, "each step adds a token of its own; the first token is the prompt's"
    places = [
        labelled(samples, "vllm:spec_decode_num_accepted_tokens_per_pos_total", position=str(p)) for p in range(3)
    ]
    assert sum(places) == accepted
    for place, share in zip(places, (0.6, 0.36, 0.216), strict=True):
        assert place / drafts == pytest.approx(share, abs=0.08)


def test_old_names_on_request(start):
    with start(has_legacy_metrics=True, speed_ratio=50.0) as found, httpx.Client(base_url=found.url) as http:
        http.post("/v1/completions", json={"prompt": "a", "max_tokens": 5})
        page = http.get("/metrics").text
    assert 'vllm:gpu_cache_usage_perc{engine="0",model_name="llama"} 0.0' in page
    assert 'vllm:time_per_output_token_seconds_count{engine="0",model_name="llama"} 4.0' in page
    assert "vllm:gpu_prefix_cache_hits_total" in page
