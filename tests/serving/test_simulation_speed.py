"""How fast requests are simulated, as ratios within one process (run with -m bench); absolute figures are printed."""

import json
import os
import resource
import subprocess
import sys
import time

import pytest

from orrery.scenario.simulate import simulate

LOAD = {
    "model": "meta-llama/Llama-3.1-8B-Instruct",
    "device": "h100-sxm",
    "input_tokens": 1000,
    "output_tokens": 200,
    "seed": 1,
}
RATE = 19.6
"""80 % of what one replica sustains (24.5 requests/s when all of them wait at the start)."""

pytestmark = pytest.mark.bench


def best_s(repeats=3, **settings):
    """The least disturbed of some runs."""
    return min(simulate(**LOAD, **settings).seconds for _ in range(repeats))


def test_the_rate_is_four_fifths_of_capacity():
    capacity = simulate(**LOAD, num_requests=20_000).summary.requests_per_s
    assert pytest.approx(0.8 * capacity, rel=0.02) == RATE


def test_a_million_requests_take_seconds():
    seconds = best_s(rate=RATE, num_requests=1_000_000)
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"1,000,000 requests in {seconds:.2f} s, {1e6 / seconds:,.0f} a second; {peak_bytes / 2**30:.2f} GiB at most")
    assert peak_bytes < 2 * 2**30
    assert seconds < 10.0


def test_the_cost_of_a_request_is_flat():
    each_s = {n: best_s(rate=RATE, num_requests=n) / n for n in (10_000, 100_000, 1_000_000)}
    print({n: f"{s * 1e6:.2f} us" for n, s in each_s.items()})
    assert each_s[1_000_000] < 1.5 * each_s[10_000]


def test_a_hundred_replicas_cost_little_more_than_one():
    one_s = best_s(rate=RATE, num_requests=200_000)
    many_s = best_s(rate=100 * RATE, num_requests=200_000, replicas=100)
    print(f"100 replicas / 1: {many_s / one_s:.2f}")
    assert many_s < 2.0 * one_s


def test_compiling_pays():
    """The same source, as plain Python, in a process of its own that takes nothing compiled."""
    source = (
        "from orrery.scenario.simulate import simulate\n"
        f"print(min(simulate(**{LOAD!r}, rate={RATE}, num_requests=200).seconds for _ in range(2)))"
    )
    plain = subprocess.run(
        [sys.executable, "-c", source],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "ORRERY_PLAIN": "1"},
    )
    compiled_s = best_s(rate=RATE, num_requests=20_000) / 20_000
    ratio = float(plain.stdout) / 200 / compiled_s
    print(f"plain Python / compiled: {ratio:.0f}")
    assert ratio > 50


def test_the_first_result_comes_soon():
    command = [
        sys.executable,
        "-m",
        "orrery",
        "simulate",
        "--model",
        LOAD["model"],
        "--device",
        "h100-sxm",
        "--rate",
        "10",
        "--input-tokens",
        "1000",
        "--output-tokens",
        "200",
        "--num-requests",
        "100",
        "--json",
    ]
    subprocess.run(command, check=True, capture_output=True)
    started = time.perf_counter()
    totals = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds = time.perf_counter() - started
    assert json.loads(totals.stdout)["completed"] == 100
    print(f"first result of a fresh process: {seconds:.2f} s")
    assert seconds < 5.0
