"""Other people's words as they may stand on a page: one line, cut to a length; links only where they lead to the web.

Templates escape whatever is shown; what is done here is for readers, whom words that turn the direction of writing or
never end would mislead.
"""

from urllib.parse import urlsplit

from orrery.evidence.feed.text import without_controls

MAX_TITLE, MAX_TEXT, MAX_ABSTRACT = 300, 320, 6000
"""Letters of a title, of a text in a list, and of an abstract on its own page."""

MAX_LINK = 500


def describe(text: str, most: int = MAX_TITLE) -> str:
    """The text without what cannot be seen, and no longer than ``most`` letters."""
    line = without_controls(text[: 4 * most])
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def lines(text: str) -> str:
    """A text of many lines without what cannot be seen; each keeps its indent."""
    return "\n".join(" " * (len(line) - len(line.lstrip(" "))) + without_controls(line) for line in text.split("\n"))


def link(address: str) -> str:
    """An address of the web; empty where it is something else."""
    if len(address) > MAX_LINK or without_controls(address) != address or " " in address:
        return ""
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    return address if parts.scheme in ("http", "https") and parts.netloc and "\\" not in address else ""
