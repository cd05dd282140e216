"""Authors and days of papers: with the record that says so, or unknown."""

import tomllib
from datetime import date

import pytest

from orrery.base.errors import FactError
from orrery.base.sources import Source
from orrery.evidence.bibliography import Bibliography, read_bibliography
from orrery.evidence.library import FOLDER, TEXT, folder_name
from orrery.evidence.paper_file import get_paper, paper_keys

SOURCES = {"record": Source(title="A record", retrieved="2026-11")}


def read(text):
    return read_bibliography("paper.toml", tomllib.loads(text), SOURCES)


def test_every_line_is_read():
    found = read(
        'organisations = { value = ["Analytical Society"], from = "record", at = "head" }\n'
        'authors = { value = ["Ada Lovelace", "C. Babbage"], from = "record", at = "list" }\n'
        'published = { value = "2024-01-18", from = "record", at = "first version" }\n'
    )
    assert found == Bibliography(
        authors=("Ada Lovelace", "C. Babbage"), organisations=("Analytical Society",), published=date(2024, 1, 18)
    )


def test_nothing_is_invented_where_nothing_stands():
    assert read("") == Bibliography(authors=(), organisations=(), published=None)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('authors = ["Ada Lovelace"]', 'write { value = …, from = "…", at = "…" }'),
        ('authors = { value = ["Ada"], from = "record" }', "write { value"),
        ('authors = { value = ["Ada"], from = "record", at = "" }', "write { value"),
        ('authors = { value = ["Ada"], from = "nowhere", at = "list" }', "there is no \\[sources.nowhere\\]"),
        ('authors = { value = "Ada", from = "record", at = "list" }', "write value = "),
        ('authors = { value = [], from = "record", at = "list" }', "write value = "),
        ('authors = { value = ["Ada", 3], from = "record", at = "list" }', "write value = "),
        ('published = { value = "January 2024", from = "record", at = "page" }', 'write value = "2024-01-18"'),
        ('published = { value = 2024, from = "record", at = "page" }', 'write value = "2024-01-18"'),
    ],
)
def test_what_has_no_place_is_refused(text, says):
    with pytest.raises(FactError, match=says):
        read(text)


def test_days_agree_with_the_months_of_arxiv_numbers():
    """A first version's number is that of its month; a day at the end of a month may be numbered in the next."""
    for key in paper_keys():
        paper = get_paper(key)
        if (day := paper.bibliography.published) and paper.arxiv:
            months = 12 * (2000 + int(paper.arxiv[:2])) + int(paper.arxiv[2:4]) - (12 * day.year + day.month)
            assert months in (0, 1), key


def test_nearly_every_author_list_is_known():
    unknown = [key for key in paper_keys() if not get_paper(key).bibliography.authors]
    assert unknown == ["dl-big-data-analytics"], "of many books whose titles begin so, none is known to be this one"


def test_author_lists_are_whole():
    """No list ends in "and others", names nobody twice (two may share an initial), or joins names of one string."""
    for key in paper_keys():
        names = get_paper(key).bibliography.authors
        full = [name for name in names if "." not in name.split()[0]]
        assert len(set(full)) == len(full), key
        assert not [n for n in names if "," in n or " and " in n or n.lower().startswith(("et al", "others"))], key
    assert "Yinmin Zhong" in get_paper("distserve").bibliography.authors
    assert "authors" in tomllib.loads((FOLDER / folder_name("distserve") / TEXT).read_text(encoding="utf-8"))
