"""A paper's command gives the same numbers as flags, as a scenario file, and in Python."""

import contextlib
import io
import json
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import orrery
from orrery.cli.main import run
from orrery.evidence.paper_file import get_paper, paper_keys

ROOT = Path(__file__).resolve().parents[2]
ALIKE = ("kernel", "quantize", "scaling", "estimate", "simulate", "train")
"""Commands that save their scenario, and have a function of the same name."""

MEASURED = ("simulated_per_s", "seconds", "date")
"""Keys whose values are those of a clock, not of a model."""

APART = {
    "--plan": "a search, whose function is train_plan",
    "--graph": "a graph, whose function is train_graph",
    "--rl": "post-training, whose functions are those of RL",
    "--sweep max_num_seqs": "many runs, whose function is sweep",
}


def uses(*commands: str) -> list[str]:
    """Core papers whose command is one of these and has a function of its name."""
    found = {key: get_paper(key) for key in paper_keys()}
    return sorted(
        key
        for key, paper in found.items()
        if paper.fit == "core" and paper.use.split()[1:2] and paper.use.split()[1] in commands
        if not any(word in paper.use for word in APART)
    )


def leaves(found: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of an answer by its place, without those of a clock."""
    if isinstance(found, dict | list):
        for name, value in found.items() if isinstance(found, dict) else enumerate(found):
            yield from leaves(value, f"{path}.{name}")
    elif not path.endswith(MEASURED):
        yield path, found


def answer(words: list[str]) -> dict[str, Any]:
    """JSON of a command."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        assert run(words) == 0, shlex.join(words)
    return json.loads(out.getvalue())


def say_the_same(key: str, tmp_path: Path) -> None:
    """Fail where flags, file and Python differ."""
    command, *words = shlex.split(get_paper(key).use)[1:]
    file = tmp_path / "asked.toml"
    typed = dict(leaves(answer([command, *words, "--json", "--save-scenario", str(file)])))
    assert dict(leaves(answer([command, "--scenario", str(file), "--json"]))) == typed
    called = getattr(orrery, command)(**tomllib.loads(file.read_text())).to_json()
    assert dict(leaves(json.loads(json.dumps(called)))) == typed


@pytest.mark.parametrize("key", uses("kernel", "scaling"))
def test_kernels_and_laws(key, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    say_the_same(key, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("key", uses(*ALIKE[3:], "quantize"))
def test_deployments_jobs_and_tensors(key, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    say_the_same(key, tmp_path)
