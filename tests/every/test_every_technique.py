"""Every technique, found because its file exists, says what it is, what it buys and what it costs."""

import dataclasses
import inspect
import pkgutil
from importlib import import_module

from battery import over

import orrery
from orrery.base.technique import discover

FOLDERS = [
    import_module(m.name)
    for m in pkgutil.walk_packages(orrery.__path__, "orrery.")
    if m.ispkg and m.name.endswith(".techniques")
]
ALL = [(folder, technique) for folder in FOLDERS for technique in discover(folder)]
each = over(ALL, named=lambda _, technique: technique.name)


@each
def test_says_what_it_is(folder, technique):
    assert technique.name == technique.name.lower().replace("_", "-").strip()
    assert technique.gains.strip()
    assert technique.costs.strip()
    assert technique.claims, "name at least one source that describes it"
    assert technique.extension_point.split(".")[0] == folder.__name__.split(".")[1]


@each
def test_every_knob_has_a_default(folder, technique):
    assert dataclasses.is_dataclass(technique.knobs)
    assert technique.knobs() == technique.knobs()


@each
def test_takes_the_arguments_of_its_seam(folder, technique):
    siblings = [t for _, t in ALL if t.extension_point == technique.extension_point]
    names = {tuple(inspect.signature(t.rule).parameters) for t in siblings}
    assert len(names) == 1, f"rules of {technique.extension_point} disagree on their arguments: {names}"


def test_names_are_unique_and_exclusions_exist():
    names = [t.name for _, t in ALL]
    assert len(names) == len(set(names))
    for _, technique in ALL:
        assert technique.excludes <= set(names) - {technique.name}


def test_a_word_names_one_technique_of_an_extension_point():
    words = [(t.extension_point, word) for _, t in ALL for word in {t.name, t.written}]
    assert len(words) == len(set(words))
