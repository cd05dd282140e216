"""The levers of a running server, and that the metrics show what they do."""

import asyncio

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

LONG = {"prompt": "a", "max_tokens": 4000, "stream": True, "ignore_eos": True}


def samples(http):
    """(name, label values) -> value."""
    families = text_string_to_metric_families(http.get("/metrics").text)
    return {
        (s.name, *(v for k, v in sorted(s.labels.items()) if k not in ("model_name",))): s.value
        for f in families
        for s in f.samples
    }


@pytest.fixture
def two(start):
    """Two replicas of one request at a time."""
    scenario = {"replicas": 2, "max_num_seqs": 1}
    with start(scenario, has_admin=True) as found, httpx.Client(base_url=found.url, timeout=10) as http:
        yield found.url, http


class Reading:
    """Streams that are read beside the test."""

    def __init__(self, url, count, **more):
        self.url, self.count, self.body, self.description = url, count, LONG | more, []

    async def _one(self, http):
        last = ""
        async with http.stream("POST", f"{self.url}/v1/completions", json=self.body) as response:
            async for line in response.aiter_lines():
                last = line if line.startswith("data: {") else last
        self.description.append(last)

    async def _run(self, act):
        async with httpx.AsyncClient(timeout=10) as http:
            tasks = [asyncio.create_task(self._one(http)) for _ in range(self.count)]
            await asyncio.to_thread(act)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def during(self, act):
        asyncio.run(self._run(act))
        return self.description


def test_levers_are_off_unless_asked_for(fast):
    assert httpx.get(f"{fast.url}/admin").status_code == 404
    assert httpx.post(f"{fast.url}/admin/scale", json={"replicas": 1}).status_code == 404


def test_a_lost_replica_runs_nothing_and_its_requests_wait(two, until):
    url, http = two

    def act():
        until(lambda: http.get("/admin").json()["running"] == 2)
        before = samples(http)
        assert before["vllm:num_requests_running", "0"] == before["vllm:num_requests_running", "1"] == 1
        state = http.post("/admin/replicas", json={"replica": 1, "action": "kill"}).json()
        assert [r["is_up"] for r in state["replicas"]] == [True, False]
        until(lambda: samples(http)["vllm:num_requests_waiting", "0"] == 1)
        after = samples(http)
        assert after["vllm:num_requests_running", "1"] == 0
        assert after["vllm:num_requests_waiting_by_reason", "0", "capacity"] == 1
        http.post("/admin/replicas", json={"replica": 1, "action": "revive"})
        assert all(r["is_up"] for r in http.get("/admin").json()["replicas"])

    Reading(url, 2).during(act)


def test_requests_of_a_lost_replica_can_fail(two, until):
    url, http = two

    def act():
        until(lambda: http.get("/admin").json()["running"] == 2)
        for replica in (0, 1):
            http.post("/admin/replicas", json={"replica": replica, "action": "kill", "retry": False})
        until(lambda: sum(samples(http)["vllm:request_success_total", str(k), "error"] for k in (0, 1)) == 2)
        until(lambda: len(reading.description) == 2)

    reading = Reading(url, 2)
    assert all("The machine that served this request was lost" in x for x in reading.during(act))


def test_what_went_on_elsewhere_ended_there(start, until):
    """The counts of a lost replica stand still."""
    with start({"replicas": 2}, has_admin=True, speed_ratio=2.0) as found:
        http = httpx.Client(base_url=found.url)

        def act():
            until(lambda: http.get("/admin").json()["running"] == 2)
            until(lambda: all(x.choices[0].num_tokens for x in found.pace.streams))
            http.post("/admin/replicas", json={"replica": 1, "action": "kill"})
            until(lambda: len(reading.description) == 2)

        reading = Reading(found.url, 2, max_tokens=300)
        reading.during(act)
        after = samples(http)
        http.close()
    assert [after["vllm:request_success_total", k, "length"] for k in "01"] == [2, 0]
    assert [after["vllm:e2e_request_latency_seconds_count", k] for k in "01"] == [2, 0]


def test_fewer_replicas_take_requests_after_scaling(two, until):
    url, http = two
    assert http.post("/admin/scale", json={"replicas": 1}).json()["scaled_to"] == 1

    def act():
        until(lambda: http.get("/admin").json()["waiting"] == 2)
        now = samples(http)
        assert (now["vllm:num_requests_running", "0"], now["vllm:num_requests_running", "1"]) == (1, 0)

    Reading(url, 3).during(act)


def test_a_slow_replica_takes_longer(start):
    with start(has_admin=True, speed_ratio=5.0) as found, httpx.Client(base_url=found.url) as http:

        def gap_s():
            before = samples(http)
            http.post("/v1/completions", json={"prompt": "a", "max_tokens": 40})
            after = samples(http)
            name = "vllm:inter_token_latency_seconds"
            total_s, count = (after[f"{name}_{x}", "0"] - before[f"{name}_{x}", "0"] for x in ("sum", "count"))
            assert count == 39
            return total_s / count

        usual_s = gap_s()
        state = http.post("/admin/replicas", json={"replica": 0, "action": "slow", "factor": 4}).json()
        assert state["replicas"][0]["slowness"] == 4
        assert gap_s() == pytest.approx(4 * usual_s, rel=0.15)


def test_load_comes_at_its_rate_and_goes(start, until):
    """300 requests a second for a second of the service: 300, give or take four standard deviations."""
    with start(has_admin=True) as found, httpx.Client(base_url=found.url) as http:
        wish = {"rate": 300, "input_tokens": 100, "output_tokens": 10}
        state = http.post("/admin/load", json=wish).json()
        assert state["load"] == wish
        begun_s = state["time_s"]
        until(lambda: found.pace.now_s > begun_s + 1.0 and http.get("/admin").json()["running"] > 5)
        now = http.get("/admin").json()
        http.post("/admin/load", json={"rate": 0})
        until(lambda: not found.pace.streams)
        passed_s = now["time_s"] - begun_s
        count = samples(http)["vllm:request_success_total", "0", "length"]
        assert abs(count - 300 * passed_s) < 4 * (300 * passed_s) ** 0.5 + 40
        assert samples(http)["vllm:generation_tokens_total", "0"] == 10 * count
        assert samples(http)["vllm:request_prompt_tokens_sum", "0"] == 100 * count
        assert samples(http)["vllm:prefix_cache_hits_total", "0"] == 0


def test_failures_begin_and_end(start):
    with start(has_admin=True, speed_ratio=50.0) as found, httpx.Client(base_url=found.url) as http:

        def status():
            return http.post("/v1/completions", json={"prompt": "a", "max_tokens": 1}).status_code

        assert status() == 200
        assert http.post("/admin/failures", json={"rate": 1}).json()["failure_rate"] == 1
        assert {status() for _ in range(20)} == {429, 500, 503}
        http.post("/admin/failures", json={"rate": 0})
        assert status() == 200
        usage_json = http.get("/admin/config").json()
        assert (usage_json["max_model_len"], usage_json["speed"], usage_json["cache_config"]["block_size"]) == (
            8192,
            50.0,
            "16",
        )


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("replicas", {"replica": 7, "action": "kill"}, "replica"),
        ("replicas", {"replica": 0, "action": "sink"}, "action"),
        ("replicas", {"replica": 0, "action": "slow", "factor": 0}, "factor"),
        ("scale", {"replicas": 3}, "replicas"),
        ("failures", {"rate": 1.5}, "rate"),
        ("load", {"rate": 1, "input_tokens": 9000}, "input_tokens"),
        ("load", {"rate": 1e9}, "rate"),
        ("load", {"rates": 1}, "rates"),
    ],
)
def test_what_cannot_be_is_said(one, path, body, param):
    response = one.post(f"/admin/{path}", json=body)
    assert response.status_code == 400, response.text
    assert param in response.text


@pytest.fixture(scope="module")
def one(start):
    headers = {"authorization": "bearer key"}
    with start(has_admin=True, api_key="key") as found, httpx.Client(base_url=found.url, headers=headers) as http:
        yield http


def test_the_levers_need_the_key_and_no_browser(one):
    assert one.get("/admin").status_code == 200
    assert one.get("/admin", headers={"authorization": "Bearer wrong"}).status_code == 401
    for headers in ({"origin": "http://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "same-origin"}):
        assert one.post("/admin/failures", json={"rate": 0}, headers=headers).status_code == 403
    plain = one.post("/admin/failures", content=b'{"rate": 0}', headers={"content-type": "text/plain"})
    assert plain.status_code == 415
    assert one.get("/admin/failures").status_code == 405
