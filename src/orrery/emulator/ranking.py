"""``/v1/rerank`` and ``/v1/score``: pairs of a question and a document, each read once, as a cross-encoder reads them.

A pair takes what the deployment takes for a prompt of both texts together. Scores are drawn from the pair alone, from 0
to 1: equal pairs have equal scores; nothing else is meant.
"""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Protocol
from zlib import crc32

import numpy as np
from msgspec import Meta, Struct

from orrery.emulator.answering import answer_whole
from orrery.emulator.bodies import read
from orrery.emulator.exchange import Exchange
from orrery.emulator.forms.form import Usage
from orrery.emulator.pace import RealTimeDriver
from orrery.emulator.prompts import Tokens, of_any
from orrery.emulator.refusal import RequestError
from orrery.emulator.requests import MAX_JOBS, EmulatedRequest, RequestParser
from orrery.emulator.settings import Settings
from orrery.emulator.stream import Stream


class Entry(Protocol):
    """The way a request is let in."""

    def __call__(self, exchange: Exchange, request: EmulatedRequest, arrived_s: float) -> Stream:
        """Return the stream of its answers."""
        ...


Texts = Annotated[list[str], Meta(min_length=1, max_length=MAX_JOBS)]


class RerankDocument(Struct):
    """A document as an object."""

    text: str


class RerankRequest(Struct, kw_only=True):
    """``POST /v1/rerank`` in the form that Cohere, Jina and vLLM share."""

    query: str
    documents: Annotated[list[str | RerankDocument], Meta(min_length=1, max_length=MAX_JOBS)]
    model: str | None = None
    top_n: Annotated[int, Meta(ge=0)] | None = None
    return_documents: bool = True
    user: str | None = None
    priority: float = 0.0


class ScoreRequest(Struct, kw_only=True):
    """``POST /v1/score`` in vLLM's form: one text against several, or as many against as many."""

    text_1: str | Texts
    text_2: str | Texts
    model: str | None = None
    user: str | None = None
    priority: float = 0.0


def score_of(pair: Tokens) -> float:
    """A number from 0 to 1 that equal pairs share."""
    text = b"\n".join(x if isinstance(x, bytes) else str(x).encode() for x in pair)
    return float(np.random.default_rng([crc32(text), len(text)]).random())


class Ranking:
    """The paths that score pairs."""

    def __init__(self, pace: RealTimeDriver, settings: Settings, asker: RequestParser, enter: Entry) -> None:
        self._pace, self._settings, self._asker, self._enter = pace, settings, asker, enter
        self.routes: dict[str, dict[str, Callable[[Exchange], Awaitable[None]]]] = {
            "/v1/rerank": {"POST": self._rerank},
            "/v2/rerank": {"POST": self._rerank},
            "/v1/score": {"POST": self._score},
        }

    async def _rerank(self, exchange: Exchange) -> None:
        arrived_s, body = self._pace.now_s, read(RerankRequest, await exchange.body())
        texts = [d if isinstance(d, str) else d.text for d in body.documents]
        pairs = self._pairs([body.query] * len(texts), texts, "documents")
        documents = texts if body.return_documents else None
        form = Ranked(exchange.id, self._settings.known(body.model), pairs, documents, body.top_n)
        await answer_whole(
            exchange, self._pace, self._enter(exchange, self._asker.embedding(body, pairs), arrived_s), form
        )

    async def _score(self, exchange: Exchange) -> None:
        arrived_s, body = self._pace.now_s, read(ScoreRequest, await exchange.body())
        first, second = ([x] if isinstance(x, str) else x for x in (body.text_1, body.text_2))
        if len(first) == 1:
            first = first * len(second)
        if len(first) != len(second):
            raise RequestError(
                400, f"text_1: {len(first)} texts against {len(second)}; send one, or as many as in text_2.", "text_1"
            )
        pairs = self._pairs(first, second, "text_2")
        form = Scored(exchange.id, self._settings.known(body.model), pairs)
        await answer_whole(
            exchange, self._pace, self._enter(exchange, self._asker.embedding(body, pairs), arrived_s), form
        )

    def _pairs(self, first: list[str], second: list[str], field: str) -> list[Tokens]:
        """Every pair as one input: the question's tokens, then the document's."""
        most = self._settings.context_tokens
        joined = [f"{a}\n{b}" for a, b in zip(first, second, strict=True)]
        if not all(a and b for a, b in zip(first, second, strict=True)):
            raise RequestError(400, f"{field}: a text is empty; write at least one word.", field)
        return of_any([*joined], most, field)


class Ranked:
    """The body of a reranking: the best documents first."""

    def __init__(
        self, id: bytes, model: str, pairs: list[Tokens], documents: list[str] | None, top_n: int | None
    ) -> None:
        self._about = {"id": f"rerank-{id.decode('ascii', 'replace')}", "model": model}
        self._pairs, self._documents, self._top = pairs, documents, top_n or len(pairs)

    def whole(self, texts: list[str], reasons: list[str], usage: Usage) -> dict[str, Any]:
        """Indices and scores, with the documents where they are wanted."""
        scores = [score_of(pair) for pair in self._pairs]
        best = sorted(range(len(scores)), key=lambda k: (-scores[k], k))[: self._top]
        results = [
            {
                "index": k,
                **({"document": {"text": self._documents[k]}} if self._documents else {}),
                "relevance_score": scores[k],
            }
            for k in best
        ]
        tokens = {"prompt_tokens": usage.prompt_tokens, "total_tokens": usage.prompt_tokens}
        return {**self._about, "usage": tokens, "results": results}


class Scored:
    """The body of scores, in the order of the pairs."""

    def __init__(self, id: bytes, model: str, pairs: list[Tokens]) -> None:
        self._about = {"id": f"score-{id.decode('ascii', 'replace')}", "object": "list", "model": model}
        self._pairs = pairs

    def whole(self, texts: list[str], reasons: list[str], usage: Usage) -> dict[str, Any]:
        """A score for each pair."""
        data = [{"index": k, "object": "score", "score": score_of(pair)} for k, pair in enumerate(self._pairs)]
        tokens = {"prompt_tokens": usage.prompt_tokens, "total_tokens": usage.prompt_tokens, "completion_tokens": 0}
        return {**self._about, "data": data, "usage": tokens}
