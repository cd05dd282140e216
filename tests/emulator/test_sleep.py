"""An engine that sleeps: what it refuses, how long it takes to wake, and what is left of its caches."""

import time

import httpx
import pytest

import orrery

SPEED = 10.0
ASKED = {"prompt": " ".join(["the"] * 64), "max_tokens": 2}


@pytest.fixture
def http(start):
    with start(speed_ratio=SPEED, has_admin=True) as found, httpx.Client(base_url=found.url, timeout=20) as client:
        yield client


def cached(http):
    return http.post("/v1/completions", json=ASKED).json()["usage"]["prompt_tokens_details"]["cached_tokens"]


@pytest.mark.parametrize("level", [1, 2])
def test_it_wakes_in_the_time_of_a_cold_start_and_with_empty_caches(http, level):
    expected_s = orrery.cold_start(model="llama-3.1-8b", device="h100-sxm", start=f"sleep-{level}").start.seconds_s
    assert (cached(http), cached(http) > 0) == (0, True)
    assert http.post(f"/sleep?level={level}").status_code == 200
    assert http.get("/is_sleeping").json() == {"is_sleeping": True}
    state = ("", "weights_offloaded", "discard_all")[level]
    line = f'vllm:engine_sleep_state{{engine="0",model_name="llama",sleep_state="{state}"}} 1.0'
    assert line in http.get("/metrics").text
    assert http.post("/v1/completions", json=ASKED).status_code == 503
    began_s = time.monotonic()
    assert http.post("/wake_up").status_code == 200
    assert expected_s <= SPEED * (time.monotonic() - began_s) < expected_s + SPEED * 0.5
    assert http.get("/is_sleeping").json() == {"is_sleeping": False}
    assert cached(http) == 0


def test_waking_twice_and_sleeping_twice_change_nothing(http):
    assert http.post("/wake_up").status_code == 200
    assert [http.post("/sleep").status_code for _ in range(2)] == [200, 200]
    assert http.post("/wake_up").status_code == 200


def test_what_is_no_sleep_is_refused(http, fast):
    got = http.post("/sleep?level=3")
    assert (got.status_code, got.json()["error"]["param"]) == (400, "level")
    assert http.post("/sleep", headers={"origin": "http://evil.example"}).status_code == 403
    assert httpx.post(f"{fast.url}/sleep").status_code == 404
