"""Texts of an emulated model: words that are one token each in the usual tokenisers, a leading space included.

A client that counts an answer's tokens with a tokeniser of its own so arrives at the number that was generated. The
words stand in one long passage, in an order drawn once; an answer is a stretch of it, from a start of its own.
"""

import random
from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeVar
from zlib import crc32

from orrery.emulator.tokens import pieces

W = TypeVar("W", str, bytes)

VOCABULARY = """
the of and to in is it for on as at by we be are was not but all can has had one two you he she who how now new day way
may use see get our out up if so no or an do me my
"""
LENGTH = 4093
_ORDER = random.Random(0).choices(VOCABULARY.split(), k=LENGTH)
PASSAGE = tuple(f" {word}" for word in _ORDER)
FIRST = tuple(word.capitalize() for word in _ORDER)
"""The same words at the start of an answer."""

_TOKENS = tuple(word.encode() for word in PASSAGE)
_LETTERS = (0, *accumulate(map(len, PASSAGE)))


def _letters(k: int) -> int:
    """Letters of the passage's first ``k`` words, going round it."""
    rounds, rest = divmod(k, LENGTH)
    return rounds * _LETTERS[-1] + _LETTERS[rest]


def _stretch(words: tuple[W, ...], start: int, count: int) -> tuple[W, ...]:
    """Return ``count`` of the passage's words from ``start`` on, going round it."""
    at = start % LENGTH
    return (words * ((at + count) // LENGTH + 1))[at : at + count]


@dataclass(slots=True)
class Answer:
    """Words of the passage, ``num_tokens`` from ``start`` on, with all letters after ``num_letters`` left out."""

    start: int
    num_tokens: int
    reason: str  # "stop" or "length"
    num_letters: int = -1  # -1: all
    stop: str = ""  # the string that ended it

    @property
    def key(self) -> int:
        """Number that equal answers share."""
        return self.start

    def before(self, k: int) -> int:
        """Letters before token ``k``; the first word has no space before it."""
        return _letters(self.start + k) - _letters(self.start) - (k > 0)

    def offset(self, k: int) -> int:
        """Letters of the text before token ``k``."""
        before = self.before(k)
        return before if self.num_letters < 0 else min(before, self.num_letters)

    def word(self, k: int) -> str:
        """Text of token ``k``."""
        at = (self.start + k) % LENGTH
        word = PASSAGE[at] if k else FIRST[at]
        return word if self.num_letters < 0 else word[: max(0, self.num_letters - self.before(k))]

    def text(self, first: int, end: int) -> str:
        """Text of the tokens from ``first`` to before ``end``."""
        if end == first + 1:
            return self.word(first)
        message = "".join(_stretch(PASSAGE, self.start + first, end - first))
        if not first:
            message = FIRST[self.start % LENGTH] + message[len(PASSAGE[self.start % LENGTH]) :]
        return message if self.num_letters < 0 else message[: max(0, self.num_letters - self.before(first))]

    def tokens(self) -> list[bytes]:
        """The answer as the tokeniser would cut it."""
        found = _stretch(_TOKENS, self.start, self.num_tokens)
        return [FIRST[self.start % LENGTH].encode(), *found[1:]]

    def stop_at(self, stops: list[str], min_tokens: int, keeps: bool) -> None:
        """End at the earliest of some strings, which is left out of the text unless it is kept."""
        num_read = min(self.num_tokens, 2 * LENGTH)  # the passage repeats from there on
        text, least = self.text(0, num_read), self.before(min_tokens)
        found = [(at, at + len(stop), stop) for stop in stops if (at := text.find(stop, least)) >= 0]
        if not found:
            return
        at, end, self.stop = min(found, key=lambda x: x[1])
        self.num_letters = end if keeps else at
        self.num_tokens = bisect_left(range(num_read), end, key=self.before)
        self.reason = "stop"


class Written:
    """A text of ASCII, cut by the tokeniser and ended after ``most_tokens``; otherwise as an answer of words."""

    __slots__ = ("_ends", "_pieces", "_text", "key", "num_tokens", "reason", "stop")

    def __init__(self, text: str, most_tokens: int) -> None:
        found: list[bytes] = pieces(text)
        self._pieces = found[:most_tokens]
        self.num_tokens, self.reason = len(self._pieces), "stop" if len(found) <= most_tokens else "length"
        self._ends = (0, *accumulate(map(len, self._pieces)))
        self._text: str = b"".join(self._pieces).decode()
        self.stop = ""  # the string that ended it
        self.key = crc32(text.encode())  # equal texts share it

    def offset(self, k: int) -> int:
        """Letters of the text before token ``k``."""
        return min(self._ends[k], len(self._text))

    def word(self, k: int) -> str:
        """Text of token ``k``."""
        return self.text(k, k + 1)

    def text(self, first: int, end: int) -> str:
        """Text of the tokens from ``first`` to before ``end``."""
        return self._text[self._ends[first] : self._ends[end]]

    def tokens(self) -> list[bytes]:
        """The text as the tokeniser cut it."""
        return self._pieces[: self.num_tokens]

    def stop_at(self, stops: list[str], min_tokens: int, keeps: bool) -> None:
        """End at the earliest of some strings, which is left out of the text unless it is kept."""
        least = self._ends[min(min_tokens, self.num_tokens)]
        found = [(at, at + len(stop), stop) for stop in stops if (at := self._text.find(stop, least)) >= 0]
        if not found:
            return
        at, end, self.stop = min(found, key=lambda x: x[1])
        self.num_tokens = bisect_left(self._ends, end)
        self._text, self.reason = self._text[: end if keeps else at], "stop"
