"""Core papers' questions with settings of their own: the command, the file that it saves and Python, equal numbers.

Deployments and training jobs are asked the same way beside this file (``test_three_doors``).
"""

import json
import shlex
from typing import Any

import pytest
from test_paper_doors import CORE, ROOT, asked, differ, numbers

import orrery
from orrery.evidence.paper_file import get_paper
from orrery.scenario.file import read_settings

QUESTIONS = ("bits", "experiment", "kernel", "quantize", "scaling", "search", "split")
"""Commands whose settings are not a deployment's; Python has a verb of the same name."""

NAMED = ("kernel", "quantize")
"""Those whose first word is no flag; a kernel's file has it, tensors stay beside theirs."""

QUICK = (
    "agile-quant",
    "cbnet-converting-autoencoder",
    "gaudi-cuda-myth",
    "intar",
    "neural-compression-edge-detection",
    "pim-gpt",
    "slimmable-split-encoders",
)
ASKED = [key for key in sorted(CORE) if shlex.split(get_paper(key).use)[1] in QUESTIONS]


def compared(answer: dict[str, Any]) -> dict[str, float]:
    """Its numbers, without how long it took to find them."""
    return {path: value for path, value in numbers(answer) if not path.endswith("seconds")}


def in_python(words: list[str], settings: dict[str, Any]) -> dict[str, Any]:
    """The same question by Python's keywords."""
    tensors = words[2:3] if words[1] == "quantize" else []
    return json.loads(json.dumps(getattr(orrery, words[1])(*tensors, **settings).to_json()))


def ask_three_ways(key: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where the three answers differ."""
    monkeypatch.chdir(ROOT)
    use, file = get_paper(key).use, tmp_path / "saved.toml"
    words = shlex.split(use)
    code, typed, wrong = asked(f"{use} --save-scenario {file}")
    assert code == 0, wrong
    stays = [words[2]] if words[1] in NAMED else []
    code, read, wrong = asked(shlex.join(["orrery", words[1], *stays, "--scenario", str(file)]))
    assert code == 0, wrong
    expected = compared(typed)
    assert expected
    for found in (compared(read), compared(in_python(words, read_settings(file)))):
        assert found.keys() == expected.keys()
        assert not [path for path, value in found.items() if differ(value, expected[path])]


@pytest.mark.parametrize("key", QUICK)
def test_some_questions_are_asked_three_ways(key, tmp_path, monkeypatch):
    ask_three_ways(key, tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("key", sorted(set(ASKED) - set(QUICK)))
def test_all_other_questions_are_asked_three_ways(key, tmp_path, monkeypatch):
    ask_three_ways(key, tmp_path, monkeypatch)
