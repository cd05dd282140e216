"""A core paper's command, the scenario file that it saves, and Python's keywords: equal numbers."""

import json
import shlex
from typing import Any

import pytest
from test_paper_doors import CORE, ROOT, asked, differ, numbers

import orrery
from orrery.evidence.paper_file import get_paper
from orrery.scenario.file import read_settings

NAMED = ("kernel", "quantize")
"""Commands whose first word is no flag; a kernel's file has it, tensors stay beside theirs."""

MODES = {
    ("plan", "--disaggregate"): "plan_disaggregated",
    ("train", "--plan"): "train_plan",
    ("train", "--rl"): "train_rl",
}
"""Flags that ask another question of the same command."""

ELSEWHERE = ("fleet", "formats", "what-if")
"""Commands that read a file of their own, or whose words are names: tests of their own folders ask them both ways."""

QUICK = (
    "agile-quant",
    "cbnet-converting-autoencoder",
    "dissecting-hopper",
    "gaudi-cuda-myth",
    "intar",
    "neural-compression-edge-detection",
    "pim-gpt",
    "slimmable-split-encoders",
    "tpi-llm",
)


def compared(answer: dict[str, Any]) -> dict[str, float]:
    """Its numbers, without how long it took to find them."""
    return {path: value for path, value in numbers(answer) if not path.endswith("seconds")}


def in_python(words: list[str], settings: dict[str, Any]) -> dict[str, Any]:
    """The same question by Python's keywords."""
    command = words[1]
    name = next((name for (verb, flag), name in MODES.items() if verb == command and flag in words), command)
    tensors = words[2:3] if command == "quantize" else []
    return json.loads(json.dumps(getattr(orrery, name)(*tensors, **settings).to_json()))


def ask_three_ways(key: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where the three answers differ."""
    monkeypatch.chdir(ROOT)
    use, file = get_paper(key).use, tmp_path / "saved.toml"
    words = shlex.split(use)
    code, typed, wrong = asked(f"{use} --save-scenario {file}")
    assert code == 0, wrong
    stays = [words[2]] if words[1] in NAMED else []
    stays += [flag for verb, flag in MODES if verb == words[1] and flag in words]
    code, read, wrong = asked(shlex.join(["orrery", words[1], *stays, "--scenario", str(file)]))
    assert code == 0, wrong
    expected = compared(typed)
    assert expected
    for found in (compared(read), compared(in_python(words, read_settings(file)))):
        assert found.keys() == expected.keys()
        assert not [path for path, value in found.items() if differ(value, expected[path])]


def by_settings() -> list[str]:
    """Core papers whose command is a question of settings."""
    return sorted(key for key in CORE if shlex.split(get_paper(key).use)[1] not in ELSEWHERE)


@pytest.mark.parametrize("key", QUICK)
def test_some_commands_are_asked_three_ways(key, tmp_path, monkeypatch):
    ask_three_ways(key, tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("key", sorted(set(by_settings()) - set(QUICK)))
def test_all_other_commands_are_asked_three_ways(key, tmp_path, monkeypatch):
    ask_three_ways(key, tmp_path, monkeypatch)
