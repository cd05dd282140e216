"""A paper's command as flags, as a scenario file and as Python keywords: one scenario, and equal numbers."""

import contextlib
import io
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from battery import over

import orrery
from orrery.cli.main import run
from orrery.cli.options import typed_flags
from orrery.evidence.paper_file import get_paper, paper_keys
from orrery.scenario.fields import SETTINGS
from orrery.scenario.fields_fleet import FLEET_SETTINGS
from orrery.scenario.mix import plan_mix
from orrery.scenario.schema import read_scenario

ROOT = Path(__file__).resolve().parents[2]
OF_DEPLOYMENTS = {s.flag: s for s in SETTINGS}
OF_FLEETS = {s.flag: s for s in (*FLEET_SETTINGS, *SETTINGS)}

DOORS: dict[str, Callable[..., Any]] = {
    "estimate": orrery.estimate,
    "simulate": orrery.simulate,
    "simulate --sweep": orrery.sweep,
    "fleet": orrery.simulate_fleet,
    "plan": orrery.plan,
    "plan --disaggregate": orrery.plan_disaggregated,
    "plan --mix": plan_mix,
    "train": orrery.train,
    "train --plan": orrery.train_plan,
    "train --rl": orrery.train_rl_placement,
    "train --graph": orrery.train_graph,
    "what-if": orrery.what_if,
}
"""Commands, with a flag that asks something else, and what Python calls for the same."""

ASIDE = ("--disaggregate", "--mix", "--plan", "--sweep")
"""Flags that choose the question and are no setting."""

QUICK = ("cloudmatrix384", "dmc", "energonai", "fsmoe", "hybrimoe", "kinetics-tts", "pcpp", "pipellm", "snapkv", "zo2")
"""Papers whose question is answered in a tenth of a second."""

PER_RUN = ("seconds", "date", "simulated_per_s", "evaluations_per_s")
"""Ends of names of what no two runs share."""

USES = {key: words for key in paper_keys() if (words := shlex.split(get_paper(key).use)[1:]) and words[0] in DOORS}


def parted(words: list[str]) -> tuple[str, list[str], list[str], dict[str, Any]]:
    """Command, techniques, flags that choose the question, and settings as a file has them."""
    command, *rest = words
    known = OF_FLEETS if command == "fleet" else OF_DEPLOYMENTS
    free: list[str] = []
    asked: list[str] = []
    settings: dict[str, Any] = {}
    while rest:
        flag = rest.pop(0)
        if not flag.startswith("--"):
            free.append(flag)
        elif flag in ASIDE and flag not in known:
            asked += [flag, *([rest.pop(0)] if flag == "--sweep" else [])]
        else:
            setting = known.get(flag) or known[flag.replace("--no-", "--")]
            if setting.kind == "switch":
                settings[setting.name] = not flag.startswith("--no-")
            elif setting.kind == "words":
                settings.setdefault(setting.name, []).append(rest.pop(0))
            else:
                settings[setting.name] = number(rest.pop(0)) if setting.is_numeric else rest.pop(0)
    return command, free, asked, settings


def number(text: str) -> Any:
    """A number as TOML has it; an amount with a unit stays text."""
    for read in (int, float):
        with contextlib.suppress(ValueError):
            return read(text)
    return text


def shown(found: Any) -> Any:
    """An answer without what no two runs share."""
    if isinstance(found, dict):
        return {name: shown(value) for name, value in found.items() if not str(name).endswith(PER_RUN)}
    return [shown(one) for one in found] if isinstance(found, list) else found


def typed(words: list[str]) -> Any:
    """The answer of a command."""
    out, wrong = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(wrong):
        code = run([*words, "--json"])
    assert code == 0, wrong.getvalue()
    return shown(json.loads(out.getvalue()))


def by_keywords(key: str) -> Any:
    """The answer of Python."""
    command, free, asked, settings = parted(USES[key])
    other = next((f for f in ("--rl", "--graph") if f[2:] in settings), "") if command == "train" else ""
    door = DOORS[" ".join([command, *asked[:1], other]).strip()]
    more = {"over": asked[1:]} if "--sweep" in asked else {}
    return shown(json.loads(json.dumps(door(*[free] * bool(free), **settings, **more).to_json())))


def same_numbers(key: str, folder: Path) -> None:
    """Fail where a file, or keywords, answer otherwise than the flags."""
    command, free, asked, settings = parted(USES[key])
    file = folder / "mine.toml"
    file.write_text(tomli_w.dumps(settings))
    by_flags = typed(USES[key])
    named = [str(file)] if command == "fleet" else ["--scenario", str(file)]
    assert typed([command, *free, *named, *asked]) == by_flags
    assert by_keywords(key) == by_flags


@over([key for key in USES if USES[key][0] != "fleet"])
def test_flags_and_a_file_are_one_scenario(key):
    from orrery.cli.main import cli

    command, _, _, settings = parted(USES[key])
    found = cli.get_command(None, command)  # pyright: ignore[reportArgumentType]
    given = found.make_context(command, USES[key][1:]).params
    flags = {name: value for name, value in given.items() if name in {s.name for s in SETTINGS}}
    assert read_scenario(typed_flags(flags)) == read_scenario(settings)


@pytest.mark.parametrize("key", QUICK)
def test_some_answers_are_equal_in_three_doors(key, monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    same_numbers(key, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("key", sorted(set(USES) - set(QUICK)))
def test_all_other_answers_are_equal_in_three_doors(key, monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    same_numbers(key, tmp_path)
