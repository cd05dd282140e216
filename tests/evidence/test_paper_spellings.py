"""A paper's operator, law or tensors give the same answer as flags, as a scenario file, and in Python."""

import contextlib
import io
import json
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

import orrery
from orrery.cli.main import run
from orrery.evidence.paper_file import get_paper, paper_keys

ROOT = Path(__file__).resolve().parents[2]


def uses(command: str) -> list[str]:
    """Core papers with such a command."""
    found = {key: get_paper(key) for key in paper_keys()}
    return sorted(k for k, paper in found.items() if paper.fit == "core" and paper.use.split()[1:2] == [command])


def answer(words: list[str]) -> Any:
    """JSON of a command."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        assert run(words) == 0, shlex.join(words)
    return json.loads(out.getvalue())


def say_the_same(key: str, tmp_path: Path) -> None:
    """Fail where flags, file and Python differ."""
    command, *words = shlex.split(get_paper(key).use)[1:]
    file = tmp_path / "asked.toml"
    typed = answer([command, *words, "--json", "--save-scenario", str(file)])
    assert answer([command, "--scenario", str(file), "--json"]) == typed
    called = getattr(orrery, command)(**tomllib.loads(file.read_text())).to_json()
    assert json.loads(json.dumps(called)) == typed


@pytest.mark.parametrize("key", [*uses("kernel"), *uses("scaling")])
def test_kernels_and_laws(key, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    say_the_same(key, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("key", uses("quantize"))
def test_tensors(key, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    say_the_same(key, tmp_path)
