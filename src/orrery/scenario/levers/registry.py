"""The one list of what can be used: techniques that a command takes, and those that settings alone switch."""

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from orrery.base.errors import ScenarioError, UnknownName
from orrery.base.sources import read_toml
from orrery.base.technique import Technique, discover, technique_folders
from orrery.scenario.fields import BY_NAME
from orrery.scenario.levers.lever import QUESTIONS, Lever, Question
from orrery.scenario.levers.seats import COMMANDS, MEASURE_AT, SEATS, Seat

FILE = Path(__file__).with_name("listed.toml")


@cache
def levers() -> Mapping[str, Lever]:
    """Every technique that a command takes, by name."""
    return MappingProxyType(dict(sorted((dict(_filed()) | dict(listed())).items())))


@cache
def listed() -> Mapping[str, Lever]:
    """Techniques that settings switch and no file of their own describes."""
    return MappingProxyType({name: _read(name, table) for name, table in read_toml(FILE).items()})


def lever_of(name: str) -> Lever | None:
    """The lever of that name; None where no command takes it."""
    return levers().get(name)


def get_lever(name: str) -> Lever:
    """The lever of that name; an error says where else it is computed, or the nearest names."""
    if (found := lever_of(name)) is None:
        if name in _files():
            raise ScenarioError(why_no_lever(name))
        raise UnknownName("technique", name, levers())
    return found


def why_no_lever(name: str) -> str:
    """Why a technique that the model knows cannot be used."""
    extension_point = _files()[name].extension_point
    return (
        f"{name} (at {extension_point}) is computed in the reproduction of its paper alone: no command takes it. "
        "`orrery show techniques` lists those that one takes."
    )


@cache
def _files() -> Mapping[str, Technique]:
    return {t.name: t for folder in technique_folders() for t in discover(folder)}


def technique_named(name: str) -> Technique | None:
    """The file of a technique, whether a command takes it or not."""
    return _files().get(name)


def _filed() -> Iterable[tuple[str, Lever]]:
    for name, technique in _files().items():
        command = technique.command or COMMANDS.get(technique.extension_point)
        if seat := SEATS.get(technique.extension_point):
            yield name, _seated(technique, seat)
        elif command:
            yield name, Lever(name=name, command=command.format(name=technique.written), **_about(technique))


def _about(technique: Technique) -> dict[str, Any]:
    return {
        "extension_point": technique.extension_point,
        "gains": technique.gains,
        "costs": technique.costs,
        "measure": (technique.measure,) if technique.measure else MEASURE_AT.get(technique.extension_point, ()),
    }


def _seated(technique: Technique, seat: Seat) -> Lever:
    on = {seat.setting: technique.written}
    off = {seat.setting: seat.instead} if seat.instead != technique.written else {}
    questions, extra = seat.questions or _questions(on), dict(technique.settings)
    return Lever(
        name=technique.name,
        command=technique.command.format(name=technique.written) or _command(questions, on | extra, seat.beside),
        questions=questions,
        on=on,
        off=off,
        extra=extra,
        needs=seat.needs,
        inputs=seat.inputs,
        is_choice=seat.is_choice,
        **_about(technique),
    )


def _read(name: str, table: Mapping[str, Any]) -> Lever:
    taken = dict.fromkeys(table.get("without", ()))
    on, needs, command = table.get("on", {}), tuple(table.get("needs", ())), table.get("command", "")
    questions = () if command else tuple(table.get("questions", _questions(on or needs)))
    beside = table.get("beside", needs[:1])
    inputs = on | {key: BY_NAME[key].metavar for key in beside if key not in on}
    return Lever(
        name=name,
        command=command or _command(questions, inputs, ""),
        questions=questions,
        on=on,
        off={**table.get("off", {}), **taken},
        needs=needs,
        own=tuple(table.get("own", ())),
        inputs=tuple(table.get("inputs", ())),
        measure=tuple(table.get("measure", ())),
        words=table["words"],
        gains=table.get("gains", ""),
        costs=table.get("costs", ""),
        parts_replicas=table.get("parts_replicas", False),
    )


def _questions(settings: Iterable[str]) -> tuple[Question, ...]:
    """The commands that read all of these settings."""
    each = [BY_NAME[key].commands for key in settings]
    return tuple(q for q in QUESTIONS if all(q in commands for commands in each))


def _command(questions: tuple[Question, ...], settings: Mapping[str, Any], beside: str) -> str:
    """As typed: the first command that takes it, with what must stand beside."""
    flags = " ".join(flag(key, value) for key, value in settings.items())
    return f"orrery {questions[0]} {f'{beside} ' if beside else ''}{flags}"


def flag(key: str, value: Any) -> str:
    """A setting as it is typed: ``--policy layered-prefill``; nothing for a setting that is left out.

    >>> flag("policy", "layered-prefill"), flag("prefix_caching", False)
    ('--policy layered-prefill', '--no-prefix-caching')
    """
    return " ".join(BY_NAME[key].typed(value))
