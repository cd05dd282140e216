"""The page of the command line is made from it, and every command is on it."""

import subprocess
import sys
from pathlib import Path

from orrery.cli.main import COMMANDS

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_is_current():
    done = subprocess.run(
        [sys.executable, "tools/reference.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_command_is_on_it():
    text = (ROOT / "docs" / "command-line.md").read_text()
    for name in COMMANDS:
        assert f"## orrery {name}\n" in text
