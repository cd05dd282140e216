"""The example package of the docs works as an installed one: found by its entry points, used by name."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "docs" / "plugin"
QUESTION = (
    "simulate",
    "--model",
    "llama-3.1-8b",
    "--device",
    "h100-sxm",
    "--replicas",
    "2",
    "--trace",
    "chat",
    "--rate",
    "30",
    "--requests",
    "300",
    "--max-num-seqs",
    "8",
    "--seed",
    "3",
    "--json",
)
"""Requests of many lengths that wait for a place."""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder as pip leaves it: the package, and what its pyproject.toml says of entry points."""
    site = tmp_path_factory.mktemp("site")
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    shutil.copytree(EXAMPLE / "orrery_deadlines", site / "orrery_deadlines")
    info = site / f"orrery_deadlines-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    lines = [
        f"[{group}]" + "".join(f"\n{k} = {v}" for k, v in points.items())
        for group, points in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(site), str(ROOT / "src")])}


def ask(environment, *words):
    """What a command prints as JSON."""
    command = [sys.executable, "-m", "orrery", *QUESTION, *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_its_own_tests_pass(installed):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(EXAMPLE)]
    done = subprocess.run(
        [*command, str(EXAMPLE / "test_plugin.py")], env=installed, cwd=EXAMPLE, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout.decode()


def test_its_techniques_are_used_by_name_and_change_the_answer(installed):
    """Deadlines that no length moves are the order of arrival, which is the default."""
    plain = ask(installed)["mean_ttft_ms"]
    assert ask(installed, "--queue", "earliest-deadline", "--router", "fewest-tokens")["mean_ttft_ms"] != plain
    assert ask(installed, "--queue", "earliest-deadline", "--knob", "queue.per_token_s=0")["mean_ttft_ms"] == plain


def test_an_unknown_knob_of_it_is_refused_in_words(installed):
    command = [sys.executable, "-m", "orrery", *QUESTION, "--queue", "earliest-deadline", "--knob", "queue.due_s=1"]
    done = subprocess.run(command, env=installed, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "earliest-deadline has no knob 'due_s'" in done.stderr
