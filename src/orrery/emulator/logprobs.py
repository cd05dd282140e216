"""Log probabilities of an answer's tokens and of what else might have stood there, as a request may ask for them.

At every place one token has the probability p, drawn from 1/3 to 1, and the others share 1 - p by halves: 1/2, 1/4, …
of it. The token that was said is drawn from just these chances (with temperature 0 it is the likeliest), so that
probabilities are calibrated: of tokens said with p = 0.8, eight of ten are the likeliest at their place. All of them
follow from the answer and the place alone: the same answer has the same ones again, whole and streamed.
"""

import asyncio
from dataclasses import dataclass
from functools import lru_cache
from math import log, log1p, log2
from typing import Any, Literal

import msgspec

from orrery.emulator.bodies import MAX_TOP, Chat, Sampling
from orrery.emulator.refusal import RequestError
from orrery.emulator.words import VOCABULARY, Answer, Written

MAX_ENTRIES = 2**18
"""Largest number of probabilities in one answer that is sent whole; each takes some 70 bytes."""

AT_ONCE = 256
"""Places that are written in one go: other clients' tokens leave in between."""

WORDS = tuple(f" {word}" for word in dict.fromkeys(VOCABULARY.split()))
FIRST_WORDS = tuple(word[1:].capitalize() for word in WORDS)
MAX_RANK = len(WORDS)

_MASK = 2**64 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The model's distribution at one position, and the rank of the chosen token."""

    rest_frac: float  # 1 - p: rank 2 has half of it, and each further rank half of the one before
    rank: int  # 1: the likeliest
    first_word: int  # from which alternatives are taken, round the vocabulary

    def logprob(self, rank: int) -> float:
        """Log probability of the token of a rank, from 1."""
        return log1p(-self.rest_frac) if rank == 1 else log(self.rest_frac) - (rank - 1) * log(2.0)


def place_of(key: int, index: int, is_greedy: bool) -> Place:
    """Chances at the token of an index, in the answer that has a key."""
    x = _mixed(key * 0x9E3779B97F4A7C15 + index * 0xD1B54A32D192ED03)
    y = _mixed(x + 0x9E3779B97F4A7C15)
    rest = 2.0 / 3.0 * (1.0 - (x >> 11) * 2.0**-53) ** 3
    chance, rank = (y >> 11) * 2.0**-53, 1
    if chance < rest and not is_greedy:  # of that, half belongs to rank 2, a quarter to rank 3, …
        rank = min(2 + int(-log2(max(chance / rest, 2.0**-60))), MAX_RANK)
    return Place(rest_frac=rest, rank=rank, first_word=(x ^ y) % len(WORDS))


def _mixed(x: int) -> int:
    """64 bits that differ in half of their places where ``x`` differs in one (SplitMix64's finaliser)."""
    x &= _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


@dataclass(frozen=True, slots=True, kw_only=True)
class Logprobs:
    """Log probabilities as a request wants them."""

    kind: Literal["chat", "completion"]  # whose form they have
    top: int  # alternatives at each place
    is_greedy: bool = False  # the likeliest token was taken

    def num_entries(self, num_tokens: int) -> int:
        """Number of probabilities of so many tokens."""
        return num_tokens * (self.top + 1)

    def check(self, num_tokens: int) -> None:
        """Refuse an answer sent whole that would have more probabilities than are written."""
        if self.num_entries(num_tokens) > MAX_ENTRIES:
            raise RequestError(
                400,
                f"logprobs: {num_tokens:,} tokens with {self.top} alternatives each are more than {MAX_ENTRIES:,} "
                "probabilities; ask for fewer, or stream the answer.",
                "top_logprobs" if self.kind == "chat" else "logprobs",
            )

    def of(self, answer: Answer | Written, first: int, end: int) -> bytes:
        """The tokens from ``first`` to before ``end``, as the JSON that stands behind ``logprobs``."""
        if self.kind == "chat":
            return b'{"content":[%b]}' % b",".join(self.entries(answer, first, end))
        columns = Columns(answer.offset(first))
        self._extend(columns, answer, first, end)
        return columns.to_json()

    async def whole(self, answer: Answer | Written) -> msgspec.Raw:
        """All tokens of an answer, piece by piece so that nobody waits for it."""
        columns = Columns(0)
        parts: list[bytes] = []
        for first in range(0, answer.num_tokens, AT_ONCE):
            end = min(first + AT_ONCE, answer.num_tokens)
            if self.kind == "chat":
                parts += self.entries(answer, first, end)
            else:
                self._extend(columns, answer, first, end)
            await asyncio.sleep(0)
        return msgspec.Raw(b'{"content":[%b]}' % b",".join(parts) if self.kind == "chat" else columns.to_json())

    def entries(self, answer: Answer | Written, first: int, end: int) -> list[bytes]:
        """One object for each token, with its alternatives inside, the likeliest first."""
        found: list[bytes] = []
        for index in range(first, end):
            token, place = answer.word(index), place_of(answer.key, index, self.is_greedy)
            head, tail = _object(token)
            inner = b",".join(b"%b%.12g%b}" % (*_around(t, lp),) for t, lp in self._tops(token, index, place))
            found.append(b'%b%.12g%b,"top_logprobs":[%b]}' % (head, place.logprob(place.rank), tail, inner))
        return found

    def _tops(self, token: str, index: int, place: Place) -> list[tuple[str, float]]:
        """The likeliest tokens and their log probabilities; the last is the one said where that is less likely."""
        words, at = FIRST_WORDS if index == 0 else WORDS, place.first_word
        found: list[tuple[str, float]] = []
        for rank in range(1, self.top + 1):
            if rank == place.rank or (rank == self.top and place.rank > rank):
                found.append((token, place.logprob(place.rank)))
                continue
            if words[at % MAX_RANK] == token:
                at += 1
            found.append((words[at % MAX_RANK], place.logprob(rank)))
            at += 1
        return found

    def _extend(self, columns: "Columns", answer: Answer | Written, first: int, end: int) -> None:
        for index in range(first, end):
            token, place = answer.word(index), place_of(answer.key, index, self.is_greedy)
            more = self if place.rank <= self.top else Logprobs(kind=self.kind, top=self.top + 1)
            columns.add(token, place.logprob(place.rank), dict(more._tops(token, index, place)))


class Columns:
    """The older form: parallel lists, and an object of alternatives for each token, the one said among them."""

    def __init__(self, at: int) -> None:
        self._at = at  # letters before the next token
        self._lists: dict[str, list[Any]] = {
            name: [] for name in ("text_offset", "token_logprobs", "tokens", "top_logprobs")
        }

    def add(self, token: str, logprob: float, tops: dict[str, float]) -> None:
        """Append a token."""
        for column, value in zip(self._lists.values(), (self._at, logprob, token, tops), strict=True):
            column.append(value)
        self._at += len(token)

    def to_json(self) -> bytes:
        """JSON of all lists."""
        return msgspec.json.encode(self._lists)


def logprobs_of(body: Sampling) -> Logprobs | None:
    """The log probabilities that a request asks for, if any."""
    wish, is_greedy = body.logprobs, body.temperature == 0
    if isinstance(body, Chat):
        if wish not in (None, False, True):
            raise RequestError(400, "logprobs: got a number; write true, and how many in top_logprobs.", "logprobs")
        if body.top_logprobs and not wish:
            raise RequestError(400, "top_logprobs: only with logprobs; set logprobs to true.", "top_logprobs")
        return Logprobs(kind="chat", top=body.top_logprobs or 0, is_greedy=is_greedy) if wish else None
    if wish is None or wish is False:
        return None
    if not 0 <= wish <= MAX_TOP:
        raise RequestError(400, f"logprobs: got {wish}; write 0 to {MAX_TOP}.", "logprobs")
    return Logprobs(kind="completion", top=int(wish), is_greedy=is_greedy)


def _around(token: str, logprob: float) -> tuple[bytes, float, bytes]:
    head, tail = _object(token)
    return head, logprob, tail


@lru_cache(4096)
def _object(token: str) -> tuple[bytes, bytes]:
    """JSON of a token before and behind its log probability, still open."""
    text = msgspec.json.encode(token)
    return b'{"token":%b,"logprob":' % text, b',"bytes":%b' % msgspec.json.encode(list(token.encode()))
