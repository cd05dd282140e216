"""Parameters of addresses: what a page does not know is refused in words, on every page alike."""

import re
from html import unescape

import pytest
from starlette.datastructures import QueryParams
from starlette.routing import Mount

from orrery.base.errors import ScenarioError
from orrery.scenario.fields import BY_NAME
from orrery.web.app import _pages
from orrery.web.pages.command_pages import COMMAND_PAGES
from orrery.web.pages.moved import ADDRESSES
from orrery.web.parameters import NONE, PageRoute, Parameters

BAD = "nosuch"
TOLD = re.compile(rf"'[\w:-]*{BAD}|(got|no) {BAD}|{BAD}: nothing")
"""A message that repeats the word."""
SAMPLES = {"{id}": "none", "{day}": "2026-11", "{name}": "none", "{key:path}": "sarathi-serve"}
UNCHECKED = {"/card/{page:path}.png", *ADDRESSES}  # their query is that of a page, by whose rule it is checked
BESIDE = {
    **{f"/{page.name}": page.start for page in COMMAND_PAGES},
    "/my-device/file": {},
    "/design": {"model": "llama-3.1-8b", "device": "h100-sxm"},
    "load": {"load_kind": "batch"},
    "show": {"format": "svg"},
    "drawing": {"format": "svg"},
    "lines": {"by": "tp"},
    "values": {"vary": "tp"},
}
"""What must stand beside a parameter for it to be read."""

EXAMPLE = Parameters(
    words={"sort": ("up", "down", "")},
    numbers=frozenset({"page"}),
    checked=frozenset({"device"}),
    texts=frozenset({"q"}),
    settings=("tp", "input_tokens"),
    prefixes=("", "a."),
)


def paths():
    """Every page that is read, with an address of it."""
    every = [route for room in _pages() for route in room.ROUTES if "GET" in route.methods]
    for route in every:
        path = route.path
        for sample, value in SAMPLES.items():
            path = path.replace(sample, value)
        if route.path not in UNCHECKED:
            yield pytest.param(path, route.parameters, id=route.path)


PAGES = tuple(paths())


@pytest.mark.parametrize(
    "query",
    ["", "sort=up", "sort=", "page=2", "page=-1.5e3", "q=anything+at+all", "tp=x", "a.input-tokens=1", "utm_source=x"],
)
def test_what_a_page_reads_passes(query):
    EXAMPLE.check(QueryParams(query))


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("sort=left", "sort: got 'left'; write up, down."),
        ("page=two", "page: got 'two'; write a number."),
        ("sorts=up", "sorts: this page reads no parameter of that name; write sort."),
        ("b.tp=1", "b.tp: this page reads no parameter of that name; write a.tp or tp."),
        ("zzzz=1", "it reads sort, device, page, q and the settings of its command."),
        ("sort=up&sort=left", "got 'left'"),
    ],
)
def test_all_else_is_refused_in_words(query, words):
    with pytest.raises(ScenarioError, match=re.escape(words)):
        EXAMPLE.check(QueryParams(query))


def test_of_many_words_the_nearest_are_named():
    many = Parameters(words={"word": [f"word-{n}" for n in range(40)]})
    with pytest.raises(ScenarioError, match="write word-3"):
        many.check(QueryParams("word=word-3x"))
    with pytest.raises(ScenarioError, match="and 16 more"):
        many.check(QueryParams("word=zzz"))


def test_a_page_without_parameters_says_so():
    with pytest.raises(ScenarioError, match="it reads none"):
        NONE.check(QueryParams("any=1"))


def test_every_page_states_its_parameters(reader):
    every = [route for route in reader.app.routes if not isinstance(route, Mount)]
    assert {route.path for route in every if not isinstance(route, PageRoute)} == UNCHECKED


@pytest.mark.parametrize(("path", "parameters"), PAGES)
def test_a_name_that_no_page_reads_is_refused(reader, path, parameters):
    answer = reader.get(path, params={"no_such_name": "1"}, follow_redirects=False)
    assert answer.status_code == 422
    assert "no_such_name: this page reads no parameter of that name" in unescape(answer.text)


def taken(reader, path, parameters, names):
    """Names whose wrong word is answered as if it were right."""
    whole = {"whole": "1"} if "whole" in parameters.words else {}
    for name in names:
        answer = reader.get(path, params={**BESIDE.get(path, {}), **BESIDE.get(name, {}), **whole, name: BAD})
        text = unescape(answer.text)
        if answer.status_code != 404 and not TOLD.search(text) and not re.search(f"Left out[^.]*{name}", text):
            yield name


@pytest.mark.parametrize(("path", "parameters"), PAGES)
def test_a_word_that_no_page_knows_is_refused(reader, path, parameters):
    names = (*parameters.words, *sorted(parameters.numbers | parameters.checked))
    assert not list(taken(reader, path, parameters, names))


def typed(parameters):
    """Settings of numbers and switches, where no word can be right."""
    kinds = {name: BY_NAME[name].kind for name in parameters.settings if name in BY_NAME}
    return sorted(name for name, kind in kinds.items() if kind in ("count", "number", "switch"))


@pytest.mark.parametrize(("path", "parameters"), PAGES)
def test_a_setting_that_is_no_number_is_refused(reader, path, parameters):
    """One of each dozen by default."""
    assert not list(taken(reader, path, parameters, typed(parameters)[::12]))


@pytest.mark.slow
@pytest.mark.parametrize(("path", "parameters"), PAGES)
def test_every_setting_that_is_no_number_is_refused(reader, path, parameters):
    assert not list(taken(reader, path, parameters, typed(parameters)))
