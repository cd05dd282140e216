"""Text on a drawing: made safe, measured, and cut to the room that it has."""

import re
from collections.abc import Iterable
from html import escape

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\u202a-\u202e\u2066-\u2069]")
_NARROW = frozenset("fijlrtI|.,:;'`!()[]{}/ ·-")
_BROAD = frozenset("mwMW%@—")
_OWN_SCHEMES = frozenset({"http", "https", "mailto"})
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):")


def clean(text: str) -> str:
    """One line without characters that XML forbids or that turn the direction of writing."""
    return " ".join(_NOT_XML.sub("", text).split())


def safe(text: str) -> str:
    """A user's words as they may stand in an element or a quoted attribute."""
    return escape(clean(text))


def safe_href(href: str) -> str:
    """A link to a page, or nothing: scripts and data are no pages."""
    bare = re.sub(r"[\x00-\x20\x7f-\xa0]", "", href)
    scheme = _SCHEME.match(bare)
    return "" if scheme and scheme[1].lower() not in _OWN_SCHEMES else safe(bare)


def width_px(text: str, size_px: float = 12.0) -> float:
    """About how wide a text is drawn; a little more rather than less."""
    return size_px * sum(map(_width, text))


def _width(letter: str) -> float:
    if letter >= "\u1100":
        return 1.05
    return 0.38 if letter in _NARROW else 0.95 if letter in _BROAD else 0.7 if letter.isupper() else 0.62


def shortened(text: str, room_px: float, size_px: float = 12.0) -> str:
    """The text, or as much of it as fits and an ellipsis."""
    line = clean(text)
    if width_px(line, size_px) <= room_px:
        return line
    used, cut = size_px * _width("…"), 0
    for cut, letter in enumerate(line):  # noqa: B007  (where it stops is what we look for)
        used += size_px * _width(letter)
        if used > room_px:
            break
    return line[:cut].rstrip() + "…"


def wrapped(text: str, room_px: float, size_px: float, most: int) -> list[str]:
    """At most ``most`` lines; what does not fit ends in an ellipsis."""
    lines = [""]
    for word in clean(text).split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and width_px(longer, size_px) > room_px and len(lines) < most:
            lines.append(word)
        else:
            lines[-1] = longer
    return [shortened(line, room_px, size_px) for line in lines if line]


def sentences(parts: Iterable[str]) -> str:
    """The non-empty parts, each ended as a sentence."""
    whole = (clean(part) for part in parts)
    return " ".join(part if part.endswith((".", "!", "?", "…")) else f"{part}." for part in whole if part)


def px(value: float) -> str:
    """A place on the drawing to a tenth of a pixel, in as few letters as it takes."""
    tenths = f"{value:.1f}".removesuffix(".0")
    return "0" if tenths == "-0" else tenths


def listed(names: Iterable[str], most: int = 8) -> str:
    """``a, b and c``; of many the first few and how many more."""
    all_names = [clean(name) for name in names]
    if len(all_names) > most:
        return f"{', '.join(all_names[:most])} and {len(all_names) - most} more"
    return " and ".join(part for part in (", ".join(all_names[:-1]), *all_names[-1:]) if part)


def counted(number: int, one: str, many: str = "") -> str:
    """``1 value``, ``2 values``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
