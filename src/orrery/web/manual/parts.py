"""Parts of a long page of the documentation, one for each of its chapters, which are read one at a time."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from markupsafe import Markup

LONG_BYTES = 100_000
"""Size of a page's Markdown from which it is read in parts."""

ALL = "all"
"""Name of the part that is the whole page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A chapter: its title, its Markdown, and the titles of what is inside."""

    title: str
    text: str
    titles: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """A page's beginning, and its chapters by the names that they are linked to."""

    begin: str
    by_name: Mapping[str, Part]

    def name_of(self, heading: str) -> str:
        """Name of the part that holds a heading of this name; empty where none does."""
        return next((n for n, p in self.by_name.items() if heading == n or heading in map(slug, p.titles)), "")

    def contents(self) -> Markup:
        """Links to all parts and what is inside, each with the name that the whole page gives it."""
        chapters = Markup("").join(
            Markup('<li id="{}"><a href="?part={}">{}</a>{}</li>\n').format(
                name, name, plain(p.title), _inside(name, p)
            )
            for name, p in self.by_name.items()
        )
        return Markup('<ul class="parts">\n{}</ul>\n<p><a href="?part={}">All on one page</a></p>\n').format(
            chapters, ALL
        )


def parts_of(text: str) -> Parts | None:
    """The parts of a page's Markdown; None where it is short enough to be read as one."""
    if len(text) < LONG_BYTES:
        return None
    begin, *chapters = _chapters(text)
    parts = (Part(title=_headings(c, 2)[0], text=c, titles=_headings(c, 3)) for c in chapters)
    return Parts(begin=begin, by_name={slug(p.title): p for p in parts})


def slug(heading: str) -> str:
    """The name by which a heading is linked to: small letters, digits and hyphens."""
    return re.sub(r"[^\w -]", "", heading.casefold()).strip().replace(" ", "-")


def plain(heading: str) -> str:
    """A heading without marks of code and emphasis."""
    return re.sub(r"[`*]", "", heading)


def _inside(name: str, part: Part) -> Markup:
    links = Markup("").join(
        Markup('<li id="{}"><a href="?part={}#{}">{}</a></li>\n').format(slug(title), name, slug(title), plain(title))
        for title in part.titles
    )
    return Markup("<ul>\n{}</ul>").format(links) if links else links


def _chapters(text: str) -> Iterator[str]:
    """The text before the first heading of the second level, then from each to the next; code is no heading."""
    lines: list[str] = []
    is_code = False
    for line in text.splitlines(keepends=True):
        is_code ^= line.startswith("```")
        if line.startswith("## ") and not is_code:
            yield "".join(lines)
            lines = []
        lines.append(line)
    yield "".join(lines)


def _headings(chapter: str, level: int) -> tuple[str, ...]:
    is_code, found, begin = False, list[str](), "#" * level + " "
    for line in chapter.splitlines():
        is_code ^= line.startswith("```")
        if line.startswith(begin) and not is_code:
            found.append(line.removeprefix(begin).strip())
    return tuple(found)
