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
from orrery.web.manual.parts import ALL, Parts, parts_of, plain, slug

PACKED = Path(__file__).parent / "docs"
"""The documentation of an installed package; a checkout has its own."""

NAME = re.compile(r"([a-z0-9-]{1,40}/)?[a-z0-9-]{1,60}")
PICTURE = re.compile(r"(images/([a-z0-9-]{1,40}/)?)?[a-z0-9-]{1,60}\.(png|svg|webp)")
MAX_TILE = 24
"""Letters of a cell that still stands beside others on a phone."""

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
def manual_page(name: str, part: str = "") -> ManualPage | None:
    """The page of that name, such as ``what-if`` or ``models/moe``; None where there is none.

    Of a long page its beginning and its contents, the ``part`` that is named, or with ``all`` the whole.
    """
    path = folder() / f"{name}.md"
    if not NAME.fullmatch(name) or not path.is_file():
        return None
    text = path.read_text(encoding="utf-8")
    parts = parts_of(text)
    if parts is None or part == ALL:
        return _rendered(text, name) if part in ("", ALL) else None
    if not part:
        page = _rendered(parts.begin, name)
        return ManualPage(title=page.title, content=page.content + parts.contents())
    if part not in parts.by_name:
        return None
    heading = next(line for line in parts.begin.splitlines() if line.startswith("# "))
    back = f"[All parts](/docs/{name})"
    return _rendered(f"{heading}\n\n{back}\n\n{parts.by_name[part].text}", name, parts)


def _rendered(text: str, name: str, parts: Parts | None = None) -> ManualPage:
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(text)
    title = next((t.content for before, t in pairwise(tokens) if before.tag == "h1"), name)
    adapted = _adapted(tokens, name, parts)
    html = markdown.renderer.render(list(_folded(adapted) if parts else adapted), markdown.options, {})
    return ManualPage(title=plain(title), content=Markup(html))


def _folded(tokens: Iterator[Token]) -> Iterator[Token]:
    """Every section of a part behind its heading, whose link opens it."""
    is_open = False
    for token in tokens:
        is_heading = token.type == "heading_open" and token.tag in ("h1", "h2", "h3")
        if is_open and is_heading:
            yield _html("</details>\n")
            is_open = False
        if is_heading and token.tag == "h3":
            yield _html('<details class="fold"><summary>')
            is_open = True
        yield token
        if token.type == "heading_close" and token.tag == "h3":
            yield _html("</summary>\n")
    if is_open:
        yield _html("</details>\n")


def _html(text: str) -> Token:
    token = Token("html_block", "", 0)
    token.content = text
    return token


def _adapted(tokens: Sequence[Token], name: str, parts: Parts | None) -> Iterator[Token]:
    """The tokens with headings that can be linked to, tables that unfold into cards, and blocks that take the focus."""
    labels: list[str] = []
    column = 0
    for number, token in enumerate(tokens):
        text = tokens[number + 1].content if number + 1 < len(tokens) else ""
        if token.type == "heading_open":
            token.attrSet("id", slug(text))
        elif token.type == "table_open":
            labels = []
            token.attrSet("class", "cards tiles")
        elif token.type == "tr_open":
            column = 0
        elif token.type == "th_open":
            labels.append(re.sub(r"[`*]", "", text))
            token.attrSet("scope", "col")
        elif token.type == "td_open":
            token.attrSet("data-label", labels[column] if column < len(labels) else "")
            if not column or len(text) > MAX_TILE:
                token.attrSet("class", "long")
            column += 1
        elif token.type == "fence":
            token.type, token.tag, token.content = "html_block", "", _block(token)
        if token.children:
            _lead(token.children, name, parts)
        yield token


def _block(token: Token) -> str:
    return str(Markup('<pre tabindex="0"><code>{}</code></pre>\n').format(token.content))


def _lead(tokens: Sequence[Token], name: str, parts: Parts | None) -> None:
    """Lead links to the pages that they mean; one that leads out of the documentation is its words alone."""
    is_outside = False
    for token in tokens:
        if token.type == "link_open":
            address = _address(str(token.attrGet("href") or ""), name, parts)
            token.attrSet("href", address)
            is_outside = not address
        elif token.type == "image":
            token.attrSet("src", f"/docs/{_joined(str(token.attrGet('src') or ''), name)}")
            token.attrSet("loading", "lazy")
        if is_outside and token.type in ("link_open", "link_close"):
            is_outside = token.type == "link_open"
            token.type = "text"


def _address(address: str, name: str, parts: Parts | None) -> str:
    """Where a link leads; nothing where that is no page."""
    if parts and address.startswith("#") and (part := parts.name_of(address[1:])):
        return f"?part={part}{address}"
    if address.startswith("/docs/"):
        return address
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
