"""Words that a search was found by, marked where they stand in a text."""

import re

from markupsafe import Markup, escape

INFLECTED = r"(?:s|es|d|ed|ing)?"


def marked(text: str, because: str) -> Markup:
    """A text with each of the words of ``because`` (separated by commas) in ``<mark>``, inflected or not.

    >>> marked("Caches of keys", "cache, quota")
    Markup('<mark>Caches</mark> of keys')
    """
    words = sorted(filter(None, (word.strip() for word in because.split(","))), key=len, reverse=True)
    if not words:
        return escape(text)
    either = "|".join(r"[\s-]+".join(map(re.escape, word.split())) for word in words)
    pieces = re.split(rf"\b((?:{either}){INFLECTED})\b", text, flags=re.IGNORECASE)
    found = (Markup("<mark>{}</mark>").format(piece) if i % 2 else escape(piece) for i, piece in enumerate(pieces))
    return Markup("").join(found)
