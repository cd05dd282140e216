"""The endpoints: what each takes, what each answers, and who may ask."""

import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from hmac import compare_digest

from orrery.base.listening import refused_host
from orrery.emulator.admin import Admin
from orrery.emulator.answering import answer, answer_whole
from orrery.emulator.bodies import Chat, Claude, Completion, Embedding, read
from orrery.emulator.exchange import Exchange, Receive, Scope, Send
from orrery.emulator.faults import Faults
from orrery.emulator.fleet_pages import FleetPages
from orrery.emulator.forms import openai
from orrery.emulator.forms.anthropic import Message, ToolUse
from orrery.emulator.forms.embedding import Embeddings
from orrery.emulator.forms.form import Form
from orrery.emulator.gateway import ORIGIN_HEADER, Gateway, origin_of
from orrery.emulator.images import Images
from orrery.emulator.kubernetes import METRICS
from orrery.emulator.lora import LoraPages
from orrery.emulator.openapi import described
from orrery.emulator.pace import RealTimeDriver
from orrery.emulator.pages import Pages
from orrery.emulator.playback import Playback
from orrery.emulator.prompts import of_any
from orrery.emulator.ranking import Ranking
from orrery.emulator.refusal import RequestError
from orrery.emulator.requests import EmulatedRequest, RequestParser
from orrery.emulator.responses import RESPONSES, Responses
from orrery.emulator.settings import Settings
from orrery.emulator.sleeping import Sleeping
from orrery.emulator.stream import Stream
from orrery.emulator.transcriptions import Transcriptions
from orrery.fleet.service.live_fleet import LiveFleet

Handler = Callable[[Exchange], Awaitable[None]]

SLEEP = ("/sleep", "/wake_up", "/is_sleeping")
GUARDED = ("/v1/", "/v2/", "/admin", "/api", *SLEEP)
"""Where a key is asked for, if there is one."""

ANTHROPIC = "/v1/messages"
APIS = "/api"
NAMED = {"namespaces": "{namespace}", "deployments": "{name}", "replicas": "{replica}"}
"""Part of a path behind which a name stands."""

MAX_NUMBERS = 2**20
"""Largest number of numbers in all vectors of one answer; a quarter where each is written out, which takes longer."""

log = logging.getLogger("orrery.emulator")


class App:
    """An ASGI application."""

    def __init__(self, pace: RealTimeDriver, settings: Settings, played: Playback | None = None) -> None:
        self._pace, self._settings = pace, settings
        self._asker, self._faults = RequestParser(settings), Faults(settings.failure_frac, settings.seed)
        self._gateway = Gateway(settings.tenants)
        self.routes: dict[str, dict[str, Handler]] = {
            "/v1/chat/completions": {"POST": self._chat},
            "/v1/completions": {"POST": self._completion},
            "/v1/embeddings": {"POST": self._embed},
            ANTHROPIC: {"POST": self._message},
            **Ranking(pace, settings, self._asker, self._enter).routes,
            **(Images(pace, settings, settings.images).routes if settings.images is not None else {}),
            **(Transcriptions(pace, settings, settings.speech).routes if settings.speech is not None else {}),
            **Responses(pace, settings, self._asker, self._enter).routes,
            **Pages(pace, settings, self._asker).routes,
            **(LoraPages(settings.lora, settings.names).routes if settings.lora is not None else {}),
            **(FleetPages(pace, pace.live, settings).routes if isinstance(pace.live, LiveFleet) else {}),
            **self._sleeping(),
            **(Admin(pace, settings, self._faults, played).routes if settings.has_admin else {}),
            "/openapi.json": {"GET": self._describe},
        }
        self._document = b""  # made when it is asked for

    def _sleeping(self) -> dict[str, dict[str, Handler]]:
        """The paths of sleep: of one deployment, for whoever may pull levers."""
        if not self._settings.has_admin or isinstance(self._pace.live, LiveFleet):
            return {}
        return Sleeping(self._pace, self._settings, dict(enumerate(self._settings.wake_s, 1))).routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        exchange = Exchange(scope, receive, send)
        try:
            _check_host(scope, self._settings.hosts)
            await self._handler(exchange)(exchange)
        except RequestError as refusal:
            await self._refuse(exchange, refusal)
        except Exception:
            log.exception("%s %s", exchange.method, exchange.path)
            await self._refuse(exchange, RequestError(500, "The emulator failed; its log says why."))

    async def _refuse(self, exchange: Exchange, refusal: RequestError) -> None:
        if exchange.has_begun:
            return
        if exchange.path.startswith(ANTHROPIC):
            body = refusal.to_anthropic()
        else:
            body = refusal.to_kubernetes() if exchange.path.startswith(APIS) else refusal.to_json()
        await exchange.json(body, refusal.status, refusal.headers)

    def _handler(self, exchange: Exchange) -> Handler:
        methods = self.routes.get(_template(exchange.path))
        if methods is None:
            raise RequestError(404, f"There is no {exchange.path[:200]!r} here.")
        if exchange.path.startswith(GUARDED):
            self._check_key(exchange)
        if exchange.path.startswith(("/admin", APIS, *SLEEP)):
            _check_origin(exchange)
        handler = methods.get("GET" if exchange.method == "HEAD" else exchange.method)
        if handler is None:
            allow = ", ".join(methods)
            raise RequestError(405, f"Use {allow}.", headers=((b"allow", allow.encode()),))
        return handler

    def _check_key(self, exchange: Exchange) -> None:
        """In a time that does not tell how much of a wrong key is right."""
        scheme, _, given = exchange.raw_header(b"authorization").partition(b" ")
        found = given.strip() if scheme.lower() == b"bearer" else exchange.raw_header(b"x-api-key")
        if self._settings.api_key and not compare_digest(found, self._settings.api_key.encode()):
            raise RequestError(401, "The API key is missing or wrong; send it as authorization: Bearer KEY.")

    async def _chat(self, exchange: Exchange) -> None:
        arrived_s, body = self._pace.now_s, read(Chat, await exchange.body())
        model = self._settings.known(body.model)
        request = self._asker.chat(body)
        form, structure = openai.Chat(_id(exchange), model, _now()), request.structure
        if structure is not None and structure.tool:
            reason = "stop" if structure.is_named else "tool_calls"
            form = openai.ToolCall(_id(exchange), model, _now(), structure.tool, reason)
        await answer(exchange, self._pace, self._enter(exchange, request, arrived_s), form)

    async def _completion(self, exchange: Exchange) -> None:
        arrived_s, body = self._pace.now_s, read(Completion, await exchange.body())
        model = self._settings.known(body.model)
        form = openai.Completion(_id(exchange), model, _now())
        await answer(exchange, self._pace, self._enter(exchange, self._asker.completion(body), arrived_s), form)

    async def _message(self, exchange: Exchange) -> None:
        arrived_s, body = self._pace.now_s, read(Claude, await exchange.body())
        model, request = self._settings.known(body.model), self._asker.message(body)
        tool = request.structure.tool if request.structure is not None else ""
        form: Form = (ToolUse if tool else Message)(_id(exchange), model, request.jobs[0].answer.stop, tool)
        await answer(exchange, self._pace, self._enter(exchange, request, arrived_s), form)

    async def _embed(self, exchange: Exchange) -> None:
        arrived_s, body = self._pace.now_s, read(Embedding, await exchange.body())
        model, most = self._settings.known(body.model), self._settings.embedding_size
        size = body.dimensions or most
        if size > most:
            raise RequestError(400, f"dimensions: got {size}; vectors have at most {most}.", "dimensions")
        inputs = of_any(body.input, self._settings.context_tokens, "input")
        is_packed = body.encoding_format == "base64"
        if len(inputs) * size > (MAX_NUMBERS if is_packed else MAX_NUMBERS // 4):
            raise RequestError(
                400, f"input: {len(inputs)} vectors of {size} are too many; send fewer at once.", "input"
            )
        form = Embeddings(_id(exchange), model, _now(), inputs, size, is_packed)
        await answer_whole(
            exchange, self._pace, self._enter(exchange, self._asker.embedding(body, inputs), arrived_s), form
        )

    async def _describe(self, exchange: Exchange) -> None:
        self._document = self._document or described(self.routes)
        await exchange.whole(self._document)

    def _enter(self, exchange: Exchange, request: EmulatedRequest, arrived_s: float) -> Stream:
        self._faults.strike()
        placed = replace(request, origin=origin_of(exchange.header(ORIGIN_HEADER), self._settings.origins))
        try:
            return self._pace.submit(self._gateway.let_in(placed, arrived_s), arrived_s)
        except RequestError as refusal:
            self._pace.meters.refused["queue_full" if refusal.status == 429 else "closing"] += 1
            raise


def _check_host(scope: Scope, allowed: frozenset[str]) -> None:
    """No page in a browser may ask under a name of its own."""
    found = refused_host([value.decode("latin-1") for name, value in scope["headers"] if name == b"host"], allowed)
    if found:
        raise RequestError(*found)


def _check_origin(exchange: Exchange) -> None:
    """No page in a browser may pull these levers: whoever opened it did not ask for that."""
    site = exchange.header(b"sec-fetch-site")
    if exchange.raw_header(b"origin") or site not in ("", "none"):
        raise RequestError(403, "Pages in a browser may not do this; send the request without an Origin.")


def _template(path: str) -> str:
    """The path with its names left out, as routes have it."""
    parts = path.split("/")
    if path.startswith(f"{RESPONSES}/") and len(parts) > 3 and parts[3]:
        parts[3] = "{response_id}"
    for kind, name in NAMED.items():
        if path.startswith(("/apis/", "/replicas/")) and kind in parts[:-1]:
            parts[parts.index(kind) + 1] = name
    if path.startswith(f"{METRICS}/") and len(parts) == 7:
        parts[6] = "{name}"
    return "/".join(parts)


def _id(exchange: Exchange) -> str:
    """The request's name, as answers carry it."""
    return exchange.id.decode("ascii", "replace")


def _now() -> int:
    return int(time.time())
