"""A paper's command against the same command without its technique: a number that both state moves."""

import contextlib
import io
import json
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from off_words import BESIDE, DO_NOT_FIT, IN_ITSELF, OFF, STUDIES

from orrery.cli.main import run
from orrery.evidence.paper_file import get_paper, paper_keys

ROOT = Path(__file__).resolve().parents[2]
BESIDE_DATA = Path(os.environ.get("ORRERY_DATA", ROOT / "../shared/data")).parent
ROW = re.compile(r"^\| `([a-z0-9-]+)` \| [^|]*`--", re.MULTILINE)
CORE = {key for key in paper_keys() if get_paper(key).fit == "core"}

RECIPES = ("bfp-outlier-rearrange", "kurtail", "llm-fp4", "nupes", "zeroquant-fp")
"""Papers whose answer holds rounding to nearest beside their own recipe."""

SETTINGS = {"settings", "deployment", "question", "sizes"}
QUICK = ("i-vit", "mr-gptq", "bottlefit")


def numbers(found: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Every number of an answer by its place, without the settings that it repeats."""
    if isinstance(found, dict):
        for name, value in found.items():
            if name not in SETTINGS and not name.endswith("simulated_per_s"):
                yield from numbers(value, f"{path}.{name}")
    elif isinstance(found, list):
        for i, value in enumerate(found):
            yield from numbers(value, f"{path}.{i}")
    elif isinstance(found, int | float) and not isinstance(found, bool):
        yield path, float(found)


def asked(command: str) -> tuple[int, dict[str, Any], str]:
    """Exit code, answer and messages of a command."""
    message, wrong = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(message), contextlib.redirect_stderr(wrong):
        code = run([*shlex.split(command)[1:], "--json"])
    return code, json.loads(message.getvalue() or "{}"), wrong.getvalue()


def answered(command: str) -> dict[str, Any]:
    """The command's answer."""
    code, answer, wrong = asked(command)
    assert code == 0, f"{command}\n{wrong}"
    return answer


def both(key: str, words: tuple[str, str]) -> tuple[str, str]:
    """A paper's command with its technique and without."""
    use, (technique, instead) = get_paper(key).use, words
    assert technique in use, f"{key}: {use} has no {technique}"
    return use, use.replace(technique, instead)


def differ(one: float, other: float) -> bool:
    """Whether two numbers are not the same but for rounding."""
    return abs(one - other) > 1e-6 * max(abs(one), abs(other))


def moves(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where no number in common differs."""
    monkeypatch.chdir(ROOT)
    on, off = (dict(numbers(answered(command))) for command in both(key, OFF[key]))
    common = on.keys() & off.keys()
    assert any(differ(on[path], off[path]) for path in common), f"{key}: none of {len(common)} numbers moves"


@pytest.mark.parametrize("key", QUICK)
def test_some_techniques_move_an_answer(key, monkeypatch):
    moves(key, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("key", sorted(set(OFF) - set(QUICK)))
def test_all_other_techniques_move_an_answer(key, monkeypatch):
    moves(key, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("key", sorted(STUDIES))
def test_a_study_stands_beside_the_answer_that_it_leaves_alone(key, monkeypatch):
    monkeypatch.chdir(ROOT)
    on, off = (answered(command) for command in both(key, STUDIES[key]))
    assert len(json.dumps(on)) > len(json.dumps(off)) + 100
    numbers_on, numbers_off = dict(numbers(on)), dict(numbers(off))
    assert not any(differ(numbers_on[x], numbers_off[x]) for x in numbers_on.keys() & numbers_off.keys())


@pytest.mark.slow
@pytest.mark.parametrize("key", sorted(DO_NOT_FIT))
def test_without_it_the_model_does_not_fit(key, monkeypatch):
    monkeypatch.chdir(ROOT)
    on, off = both(key, DO_NOT_FIT[key])
    answered(on)
    code, answer, _ = asked(off)
    assert code == 3
    assert answer["infeasible"]["need"] > answer["infeasible"]["have"]


@pytest.mark.slow
@pytest.mark.parametrize("key", sorted(BESIDE))
def test_the_technique_stands_beside_what_it_is_compared_with(key, monkeypatch):
    """In the first row of each there is a number that differs."""
    monkeypatch.chdir(ROOT)
    answer, (column, technique, instead) = answered(get_paper(key).use), BESIDE[key]
    rows = next(answer[name] for name in ("results", "rows", "designs") if name in answer)
    on, off = ([dict(numbers(r)) for r in rows if r.get(column) == value] for value in (technique, instead))
    assert on, f"{key}: no row has {column} {technique}"
    assert off, f"{key}: no row has {column} {instead}"
    same = on[0].keys() & off[0].keys() - {f".{column}"}
    assert any(differ(on[-1][name], off[-1][name]) for name in same & on[-1].keys() & off[-1].keys())


@pytest.mark.slow
@pytest.mark.parametrize("key", RECIPES)
def test_recipes_do_not_round_to_nearest(key, monkeypatch):
    monkeypatch.chdir(ROOT)
    rows = {row["recipe"]: row["output_sqnr_db"] for row in answered(get_paper(key).use)["layers"]}
    nearest = rows.pop("round-to-nearest")
    assert rows
    assert [name for name, sqnr_db in rows.items() if not differ(sqnr_db, nearest)] == []


def test_every_core_paper_is_held_against_itself_without_its_technique():
    compared = [*OFF, *STUDIES, *DO_NOT_FIT, *BESIDE, *RECIPES, *IN_ITSELF]
    assert sorted(compared) == sorted(CORE)


def test_every_paper_of_a_list_beside_the_data_has_a_command():
    listed = {key for path in BESIDE_DATA.glob("*.md") for key in ROW.findall(path.read_text())} & set(paper_keys())
    if not listed:
        pytest.skip(f"no list of papers and their flags beside the measured tables ({BESIDE_DATA})")
    assert [key for key in sorted(listed) if not get_paper(key).use] == []
    assert listed <= CORE | {key for key in paper_keys() if get_paper(key).use}
