"""A BibTeX file as papers on lists: what ``orrery papers lists --form bibtex`` prints, or another program's file."""

import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path

from orrery.base.user_file import read_user_text
from orrery.evidence.feed.extra import FeedError
from orrery.evidence.feed.lists import MAX_PAPERS, PaperList, checked_name
from orrery.evidence.feed.text import title_id, whole_arxiv_id

_ENTRY = re.compile(r"@(\w+)\s*\{\s*([^,\s{}]+)\s*,")
_FIELD = re.compile(r"\s*,?\s*([A-Za-z]+)\s*=\s*")
_TEX = re.compile(r"\\textbackslash\{\}|\\text(?:ascii)?(?:tilde|circum)\{\}|\\([&%$#_{}])|[{}]")
OTHER = ("comment", "string", "preamble")


def read_bibtex(path: Path, default: str) -> tuple[PaperList, ...]:
    """The lists of a file by the keywords of its entries; those without any stand on the list ``default``."""
    text = read_user_text(path, "BibTeX file", error=FeedError)
    lists: dict[str, list[str]] = {}
    count = 0
    for fields in _entries(text):
        count += 1
        if count > MAX_PAPERS:
            raise FeedError(f"{path.name}: has more than {MAX_PAPERS} entries; split it.")
        id = whole_arxiv_id(fields.get("eprint", "")) or (title_id(title) if (title := fields.get("title")) else "")
        if not id:
            continue
        for name in fields.get("keywords", "").split(","):
            if name.strip() or not fields.get("keywords"):
                lists.setdefault(checked_name(name.strip() or default), []).append(id)
    if not count:
        raise FeedError(f"{path.name}: has no entry; write one such as @misc{{key, title = {{…}}}}.")
    today = date.today()
    return tuple(PaperList(name=name, papers=tuple((id, today) for id in ids)) for name, ids in lists.items())


def _entries(text: str) -> Iterator[dict[str, str]]:
    """The fields of each entry, in small letters."""
    at = 0
    while found := _ENTRY.search(text, at):
        at = found.end()
        fields: dict[str, str] = {}
        while field := _FIELD.match(text, at):
            value, at = _value(text, field.end())
            fields[field[1].lower()] = _TEX.sub(lambda m: m[1] or "", " ".join(value.split()))
        if found[1].lower() not in OTHER:
            yield fields


def _value(text: str, at: int) -> tuple[str, int]:
    """A value in braces or quotes, or a bare number; and where it ends."""
    if text[at : at + 1] not in ("{", '"'):
        found = re.compile(r"[^,}\s]*").match(text, at)
        assert found
        return found[0], found.end()
    is_quoted, depth, start = text[at] == '"', 0, at + 1
    for n in range(start, len(text)):
        sign, is_escaped = text[n], text[n - 1] == "\\"
        if is_escaped:
            continue
        if depth == 0 and sign == ('"' if is_quoted else "}"):
            return text[start:n], n + 1
        depth += (sign == "{") - (sign == "}")
    raise FeedError(f"BibTeX: the value at letter {at} has no end; close its braces.")
