"""Code that no command, page or plug-in reaches: there is none, and how it would be found."""

from checks.modules import module_in
from checks.reached import reached, unnamed, unreached


def test_nothing_is_out_of_reach():
    """A new name needs a command, a page or a technique that leads to it; what only tools read stands in tools/."""
    assert unreached() == ([], [])


def house(**sources):
    return {name.replace("__", "."): module_in(text) for name, text in sources.items()}


HOUSE = house(
    h="HOME = {'door': 'h.lazy'}",
    h__cli="",
    h__cli__a="def f():\n    from h.deep.used import g",
    h__lazy="",
    h__deep="",
    h__deep__used="from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from h.typed import T\ndef g(): ...",
    h__deep__alone="from h.deep import next",
    h__deep__next="",
    h__typed="T = int",
    h__rules="",
    h__rules__techniques__one="TECHNIQUE = 1",
    h__rules__techniques="",
    h__rules__other__two="",
)


def test_modules_are_reached_by_imports_by_words_and_by_their_folder():
    by_the_door = {"h", "h.cli", "h.cli.a", "h.lazy", "h.deep", "h.deep.used"}
    assert reached(HOUSE, ("h", "h.cli")) == by_the_door
    rules = reached(HOUSE, ("h.rules.techniques",))
    assert rules == {"h", "h.lazy", "h.rules", "h.rules.techniques", "h.rules.techniques.one"}


def test_a_name_is_used_where_another_place_names_it():
    found = house(
        a="def used(): ...\ndef alone(): alone_too = 1\nclass Silent: ...\ndef _own(): ...",
        b="from a import used",
        c="def listed(): ...\n__all__ = ['listed']\n@group.command('x')\ndef x_command(): ...",
    )
    assert list(unnamed(found)) == ["a.alone", "a.Silent"]
