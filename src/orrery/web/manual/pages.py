"""A page of the documentation: Markdown as HTML, its links leading to other pages, its tables fit for a phone."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

import orrery

PACKED = Path(__file__).parent / "docs"
"""The documentation of an installed package; a checkout has its own."""

NAME = re.compile(r"([a-z0-9-]{1,40}/)?[a-z0-9-]{1,60}")
PICTURE = re.compile(r"(images/([a-z0-9-]{1,40}/)?)?[a-z0-9-]{1,60}\.(png|svg|webp)")
NUM_KEPT = 64
"""Finished pages that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManualPage:
    """Title and content of a page."""

    title: str
    content: Markup


def folder() -> Path:
    """The folder of the documentation."""
    return PACKED if PACKED.is_dir() else Path(orrery.__file__).parents[2] / "docs"


def picture(name: str) -> Path | None:
    """The file of a picture in the documentation; None where there is none of that name."""
    path = folder() / name
    return path if PICTURE.fullmatch(name) and path.is_file() else None


@lru_cache(maxsize=NUM_KEPT)
def manual_page(name: str) -> ManualPage | None:
    """The page of that name, such as ``what-if`` or ``models/moe``; None where there is none."""
    path = folder() / f"{name}.md"
    if not NAME.fullmatch(name) or not path.is_file():
        return None
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(path.read_text(encoding="utf-8"))
    title = next((t.content for before, t in pairwise(tokens) if before.tag == "h1"), name)
    text = markdown.renderer.render(list(_adapted(tokens, name)), markdown.options, {})
    return ManualPage(title=re.sub(r"[`*]", "", title), content=Markup(text))


def _adapted(tokens: Sequence[Token], name: str) -> Iterator[Token]:
    """The tokens with headings that can be linked to, tables that unfold into cards, and blocks that take the focus."""
    labels: list[str] = []
    column = 0
    for number, token in enumerate(tokens):
        text = tokens[number + 1].content if number + 1 < len(tokens) else ""
        if token.type == "heading_open":
            token.attrSet("id", slug(text))
        elif token.type == "table_open":
            labels = []
            token.attrSet("class", "cards")
        elif token.type == "tr_open":
            column = 0
        elif token.type == "th_open":
            labels.append(re.sub(r"[`*]", "", text))
            token.attrSet("scope", "col")
        elif token.type == "td_open":
            token.attrSet("data-label", labels[column] if column < len(labels) else "")
            column += 1
        elif token.type == "fence":
            token.type, token.tag, token.content = "html_block", "", _block(token)
        if token.children:
            _lead(token.children, name)
        yield token


def _block(token: Token) -> str:
    return str(Markup('<pre tabindex="0"><code>{}</code></pre>\n').format(token.content))


def _lead(tokens: Sequence[Token], name: str) -> None:
    """Lead links to the pages that they mean; one that leads out of the documentation is its words alone."""
    is_outside = False
    for token in tokens:
        if token.type == "link_open":
            address = _address(str(token.attrGet("href") or ""), name)
            token.attrSet("href", address)
            is_outside = not address
        elif token.type == "image":
            token.attrSet("src", f"/docs/{_joined(str(token.attrGet('src') or ''), name)}")
            token.attrSet("loading", "lazy")
        if is_outside and token.type in ("link_open", "link_close"):
            is_outside = token.type == "link_open"
            token.type = "text"


def _address(address: str, name: str) -> str:
    """Where a link leads; nothing where that is no page."""
    if address.startswith(("https://", "http://", "#")):
        return address
    path, mark, part = address.partition("#")
    to = _joined(path.removesuffix(".md"), name)
    return (
        f"/docs/{to}{mark}{part}"
        if path.endswith(".md") and (folder() / f"{to}.md").is_file() and NAME.fullmatch(to)
        else ""
    )


def _joined(path: str, name: str) -> str:
    """A path beside the page of that name, from the folder of the documentation."""
    parts = [*name.split("/")[:-1], *path.split("/")]
    while ".." in parts and parts.index("..") > 0:
        at = parts.index("..")
        del parts[at - 1 : at + 1]
    return "/".join(parts)


def slug(heading: str) -> str:
    """The name by which a heading is linked to: small letters, digits and hyphens."""
    return re.sub(r"[^\w -]", "", heading.casefold()).strip().replace(" ", "-")
