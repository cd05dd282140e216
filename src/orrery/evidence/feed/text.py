"""Other people's words made safe to show: no markup, no terminal codes, no hidden marks; and papers' names in them."""

import hashlib
import html
import re
import unicodedata

MAX_CHARACTERS = 20_000
"""Largest number of characters of one field; an abstract has some 2,000."""

_TERMINAL = re.compile(r"\x1b\][^\x07\x1b]{0,400}(?:\x07|\x1b\\)?|(?:\x1b\[|\x9b)[0-?]{0,40}[ -/]{0,4}[@-~]|\x1b[@-_]?")
_TAG = re.compile(r"<!--.*?(?:-->|$)|<([/!?]?)([A-Za-z][A-Za-z0-9:]*)[^<>]*>", re.DOTALL)
_SILENT = frozenset({"script", "style", "template", "noscript", "iframe"})
_LATEX_WORDS = {
    r"\times": "\u00d7",
    r"\%": "%",
    r"\sim": "~",
    r"\approx": "~",
    r"\&": "&",
    r"\_": "_",
    r"\$": "$",
    r"\leq": "≤",
    r"\geq": "≥",
    r"\mu": "µ",
    r"\rightarrow": "→",
    r"\to": "→",
}
_LATEX_WORD = re.compile(r"\\(?:[A-Za-z]+|[%&_$])")
_LATEX_STYLE = re.compile(
    r"\\(?:emph|textbf|textit|texttt|textsc|text|mathrm|mathbf|underline|url)\s*\{([^{}]{0,400})\}"
)
_MATH = re.compile(r"\$([^$\\]{0,120})\$")
_ARXIV = re.compile(
    r"(?<![\d.])(\d{4}\.\d{4,5}|[a-z-]{2,20}(?:\.[A-Z]{2})?/\d{7})(?:v(\d{1,3}))?(?![\d.]*\d)", re.ASCII
)
_WHOLE_ARXIV = re.compile(
    r"(?:arxiv:)?(\d{4}\.\d{4,5}|[a-z-]{2,20}(?:\.[A-Z]{2})?/\d{7})(?:v(\d{1,3}))?", re.IGNORECASE | re.ASCII
)


def plain(text: str) -> str:
    """One line of readable text. What is left may still hold < and &, so a page that shows it must escape it."""
    text = text[:MAX_CHARACTERS]
    for _ in range(2):  # feeds escape their markup once more than they should
        text = html.unescape(_without_tags(_TERMINAL.sub(" ", text)))
    return without_controls(_without_latex(_without_tags(_TERMINAL.sub(" ", text))))


def without_controls(text: str) -> str:
    """One line of what can be seen: nothing that turns the direction of writing, or hides."""
    whole = unicodedata.normalize("NFC", text)
    return " ".join((whole if whole.isprintable() else "".join(map(_shown, whole))).split())


def _shown(character: str) -> str:
    """Controls become spaces; marks that change direction or width of others, halves of pairs and the like go."""
    kind = unicodedata.category(character)
    return " " if kind in ("Cc", "Zl", "Zp") else "" if kind in ("Cf", "Cs", "Co", "Cn") else character


def _without_tags(text: str) -> str:
    """The text between tags, without what scripts and styles hold; one pass, whatever is nested or left open."""
    pieces: list[str] = []
    at, silent = 0, ""
    for tag in _TAG.finditer(text):
        if not silent:
            pieces += (text[at : tag.start()], " " if (tag[2] or "").lower() in _BREAKS else "")
        name = (tag[2] or "").lower()
        if silent:
            silent = "" if tag[1] == "/" and name == silent else silent
        elif name in _SILENT and not tag[1]:
            silent = name
        at = tag.end()
    return "".join(pieces) + ("" if silent else text[at:])


_BREAKS = frozenset({"p", "br", "div", "li", "ul", "ol", "td", "tr", "h1", "h2", "h3"})


def _without_latex(text: str) -> str:
    """The few commands that abstracts use, as signs; single formulas lose their dollars."""
    if "\\" in text:
        text = _LATEX_STYLE.sub(r"\1", text)
        text = _LATEX_WORD.sub(lambda found: _LATEX_WORDS.get(found[0], found[0]), text)
    return _MATH.sub(r"\1", text)


def title_key(title: str) -> str:
    """Key common to all spellings of one title: its letters and digits."""
    return "".join(c for c in unicodedata.normalize("NFKD", title).casefold() if c.isalnum())


def title_id(title: str) -> str:
    """The name of a paper of which only the title is known."""
    return "title:" + hashlib.sha256(title_key(title).encode()).hexdigest()[:16]


def arxiv_id(text: str) -> tuple[str, int]:
    """The first arXiv id in an address or a sentence, and its version; empty and 0 where there is none."""
    found = _ARXIV.search(text[:MAX_CHARACTERS])
    return (found[1], int(found[2] or 0)) if found else ("", 0)


def whole_arxiv_id(text: str) -> str:
    """The id that a text is, without its version; empty where it is something else."""
    found = _WHOLE_ARXIV.fullmatch(text.strip())
    return found[1] if found else ""
