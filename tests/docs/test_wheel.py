"""The wheel installs and runs on every Python that is here (slow: builds environments)."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_wheel_installs_and_runs():
    done = subprocess.run(["sh", "tools/checks/wheel.sh"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "estimated" in done.stdout
