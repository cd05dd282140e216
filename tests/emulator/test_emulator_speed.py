"""How many tokens a second leave, and how late, beside a bare server (run with -m bench, on a machine that is idle)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

DRIVER = Path(__file__).parents[2] / "tools" / "emulator_load.py"

pytestmark = pytest.mark.bench


def measured(**options):
    """What the driver found out."""
    words = [x for name, value in options.items() for x in (f"--{name}", str(value))]
    done = subprocess.run([sys.executable, DRIVER, *words], stdout=subprocess.PIPE, text=True, check=True)
    print(done.stdout)
    found = json.loads(done.stdout)
    return found["emulator"], found["bare"]


def test_a_thousand_streams_keep_pace():
    emulator, bare = measured(streams=1000, tokens=400, speed=1.15)
    assert emulator["tokens"] == 400_000
    assert emulator["tokens_per_s"] >= 50_000
    assert emulator["lag_p99_s"] <= 0.010
    assert emulator["lag_p99_s"] <= bare["lag_p99_s"]


def test_a_token_costs_less_than_with_a_bare_server():
    emulator, bare = measured(streams=1000, tokens=200, speed=20)
    assert emulator["server_cpu_us_per_token"] < bare["server_cpu_us_per_token"]
    assert emulator["tokens_per_s"] >= 50_000


def test_ten_thousand_further_connections():
    emulator, _ = measured(streams=1000, tokens=100, speed=0.5, idle=10_000)
    assert emulator["tokens"] == 100_000
