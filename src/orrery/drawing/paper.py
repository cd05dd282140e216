"""The sheet that every chart is drawn on: heading, message, what screen readers are told, style, and size."""

import re
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256

from orrery.drawing.palette import NUM_HUES, sheet
from orrery.drawing.words import px, safe, sentences, shortened, wrapped
from orrery.drawing.words import width_px as width_of

WIDTH_PX = 680.0
"""Width of a sheet, where none is chosen with ``drawn_at``."""

NARROW_PX = 480.0
"""Below this width names stand above their rows, and in a legend in place of beside their curves."""

SIDE_PX = 14.0
"""Free on both sides."""

SCOPE = "\x00"
"""Stands for the drawing's own class until its name is known; no user's text can hold it."""

_HEADING_PX, _HEADING_LINE_PX, _LINE_PX, _SAYS_PX = 15.0, 20.0, 17.0, 12.0
_width_px = ContextVar("width_px", default=WIDTH_PX)


@contextmanager
def drawn_at(width_px: float) -> Generator[None]:
    """Charts drawn inside are this wide: their text keeps its size, and what stood beside moves above."""
    token = _width_px.set(width_px)
    try:
        yield
    finally:
        _width_px.reset(token)


def sheet_px() -> float:
    """Width of the sheet that is drawn on."""
    return _width_px.get()


def is_narrow() -> bool:
    """Whether the sheet is a phone's."""
    return _width_px.get() < NARROW_PX


def label(x: float, y: float, text: str, kind: str = "", room_px: float = 0.0, more: str = "") -> str:
    """A line of text; ``kind`` names classes by their letters. Cut to its room, it tells the whole when pointed at."""
    shown = shortened(text, room_px) if room_px else text
    whole = f"<title>{safe(text)}</title>" if shown != text and shown.endswith("…") else ""
    return f'<text{classes(kind)} x="{px(x)}" y="{px(y)}"{more}>{safe(shown)}{whole}</text>'


def classes(kind: str) -> str:
    """``"e n"`` as the attribute ``class="orr-e orr-n"``."""
    return f' class="{" ".join(f"orr-{letter}" for letter in kind.split())}"' if kind else ""


def rect(x: float, y: float, width: float, height: float, kind: str, caption: str = "") -> str:
    """A rectangle, with what is told when it is pointed at."""
    shape = f'<rect{classes(kind)} x="{px(x)}" y="{px(y)}" width="{px(width)}" height="{px(height)}"'
    return f"{shape}><title>{safe(caption)}</title></rect>" if caption else f"{shape}/>"


def path(d: str, kind: str) -> str:
    """A line or a shape."""
    return f'<path{classes(kind)} d="{d}"/>'


def heading(title: str, says: str) -> tuple[list[str], float]:
    """The title and up to two lines of message (two and four on a narrow sheet), and where the room below begins."""
    room = sheet_px() - 2 * SIDE_PX
    first, *further = wrapped(title, room, _HEADING_PX, 2 if is_narrow() else 1) or [""]
    y = 26.0
    out = [label(SIDE_PX, y, first, "h")]
    for line in further:
        y += _HEADING_LINE_PX
        out.append(label(SIDE_PX, y, line, "h"))
    for line in wrapped(says, room, _SAYS_PX, 4 if is_narrow() else 2):
        y += _LINE_PX
        out.append(label(SIDE_PX, y, line, "s"))
    return out, y + 12.0


def hue(index: int) -> str:
    """The class of the colour of the ``index``-th kind; after the last comes the first."""
    return f"k{index % NUM_HUES + 1}"


def kinds_of(kinds: Iterable[str]) -> dict[str, int]:
    """Every kind's number, in order of appearance."""
    return {kind: number for number, kind in enumerate(dict.fromkeys(kinds))}


def legend(entries: Sequence[tuple[str, str]], top_px: float) -> tuple[list[str], float]:
    """Keys (drawn about (0, 0)) with their names, in as many lines as they take."""
    if not entries:
        return [], top_px
    out: list[str] = []
    x, y = SIDE_PX, top_px + 10.0
    for key, name in entries:
        shown = shortened(name, 200.0)
        needed = 20.0 + width_of(shown) + 16.0
        if x > SIDE_PX and x + needed > sheet_px():
            x, y = SIDE_PX, y + 18.0
        out.append(f'<g transform="translate({px(x + 6)} {px(y)})">{key}{label(12, 4, name, "s", 200.0)}</g>')
        x += needed
    return out, y + 14.0


def finish(
    body: Iterable[str],
    height_px: float,
    title: str,
    captions: Iterable[str],
    *,
    is_interactive: bool = False,
    width_px: float | None = None,
) -> str:
    """The whole drawing. One with links is a group for screen readers, or they would pass over what is in it."""
    inside = "".join(body)
    used = frozenset({"h", "q", *re.findall(r"orr-(\w+)", inside)})
    text = sentences(captions)
    scope = f"orr-{sha256(f'{title}{text}{inside}'.encode()).hexdigest()[:8]}"
    width, height = px(width_px or sheet_px()), px(height_px)
    role = "group" if is_interactive else "img"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="100%" role="{role}">'
        f"<title>{safe(title) or 'Chart'}</title><desc>{safe(text)}</desc><style>{sheet(scope, used)}</style>"
        f'<g class="{scope}"><rect class="orr-q" width="{width}" height="{height}"/>'
        f"{inside.replace(SCOPE, scope)}</g></svg>"
    )


def nothing(title: str, says: str, captions: Iterable[str]) -> str:
    """A chart of no values says so."""
    head, top = heading(title, says)
    words = label(sheet_px() / 2, top + 30, "nothing to draw", "s m")
    return finish([*head, words], top + 56, title, ["Nothing to draw", says, *captions])
