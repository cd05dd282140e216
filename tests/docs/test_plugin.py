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


WAYS = {
    "plain": (),
    "plugged": ("--queue", "earliest-deadline", "--router", "fewest-tokens"),
    "without lengths": ("--queue", "earliest-deadline", "--knob", "queue.per_token_s=0"),
    "mistyped": ("--queue", "earliest-deadline", "--knob", "queue.due_s=1"),
}
PROGRAM = """
import contextlib, io, json, sys
from orrery.cli.main import run
found = {}
for name, words in json.loads(sys.argv[1]).items():
    out, wrong = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(wrong):
        code = run(words)
    found[name] = code, out.getvalue(), wrong.getvalue()
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def asked(installed):
    """Status, output and messages of the question in every way, asked of one process that has the package."""
    commands = json.dumps({name: [*QUESTION, *words] for name, words in WAYS.items()})
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, commands], env=installed, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_its_own_tests_pass(installed):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(EXAMPLE)]
    done = subprocess.run(
        [*command, str(EXAMPLE / "test_plugin.py")], env=installed, cwd=EXAMPLE, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout.decode()


def test_its_techniques_are_used_by_name_and_change_the_answer(asked):
    """Deadlines that no length moves are the order of arrival, which is the default."""
    codes, outs, _ = zip(*(asked[name] for name in ("plain", "plugged", "without lengths")), strict=True)
    assert codes == (0, 0, 0)
    plain, plugged, without = (json.loads(out)["mean_ttft_ms"] for out in outs)
    assert plugged != plain == without


def test_an_unknown_knob_of_it_is_refused_in_words(asked):
    code, _, message = asked["mistyped"]
    assert code == 2
    assert "earliest-deadline has no knob 'due_s'" in message
