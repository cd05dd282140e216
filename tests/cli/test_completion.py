"""Completion in the shell: commands and flags, as the documentation says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("words", "number", "found"), [("orrery est", 1, "estimate"), ("orrery estimate --think", 2, "--think-s")]
)
def test_words_are_completed(words, number, found):
    requested = {"_ORRERY_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(number)}
    done = subprocess.run(
        [sys.executable, "-c", "from orrery.cli.main import main; main()"],
        env={**os.environ, **requested},
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"plain,{found}" in done.stdout.splitlines()


def test_types_are_shipped_and_completion_is_documented():
    assert (ROOT / "src" / "orrery" / "py.typed").exists()
    assert "_ORRERY_COMPLETE=zsh_source orrery" in (ROOT / "docs" / "command-line.md").read_text()
