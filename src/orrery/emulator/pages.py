"""Pages answered without the simulator: the model, the server's state, its metrics, and texts as tokens."""

import time
from collections.abc import Awaitable, Callable

from orrery import __version__
from orrery.emulator.bodies import Counted, DetokenizeRequest, TokenizeRequest, read
from orrery.emulator.exchange import Exchange
from orrery.emulator.metrics import Metrics
from orrery.emulator.pace import RealTimeDriver
from orrery.emulator.prompts import of_conversation, of_text
from orrery.emulator.refusal import RequestError
from orrery.emulator.requests import RequestParser
from orrery.emulator.settings import Settings
from orrery.emulator.tokens import number_of, text_of


class Pages:
    """The endpoints that take no time in the service."""

    def __init__(self, pace: RealTimeDriver, settings: Settings, asker: RequestParser) -> None:
        self._pace, self._settings, self._asker = pace, settings, asker
        self._metrics, self._started = Metrics(pace, settings), int(time.time())
        self.routes: dict[str, dict[str, Callable[[Exchange], Awaitable[None]]]] = {
            "/v1/models": {"GET": self._models},
            "/v1/messages/count_tokens": {"POST": self._count},
            "/tokenize": {"POST": self._tokenize},
            "/detokenize": {"POST": self._detokenize},
            "/health": {"GET": self._health},
            "/health/ready": {"GET": self._health},
            "/ping": {"GET": self._health, "POST": self._health},
            "/version": {"GET": self._version},
            "/load": {"GET": self._load},
            "/metrics": {"GET": self._read},
        }

    async def _models(self, exchange: Exchange) -> None:
        about = {
            "object": "model",
            "created": self._started,
            "owned_by": "vllm",
            "root": self._settings.names[0],
            "parent": None,
            "max_model_len": self._settings.context_tokens,
        }
        found = [{"id": name, **about} for name in self._settings.names]
        for name, path in self._settings.lora.paths.items() if self._settings.lora is not None else ():
            found.append({"id": name, **about, "root": path, "parent": self._settings.names[0]})
        for beside in (self._settings.images, self._settings.speech):
            if beside is not None:
                found.append({"id": beside.name, **about, "root": beside.name, "max_model_len": None})
        await exchange.json({"object": "list", "data": found})

    async def _count(self, exchange: Exchange) -> None:
        body = read(Counted, await exchange.body())
        self._settings.known(body.model)
        await exchange.json({"input_tokens": len(self._asker.written(body))})

    async def _tokenize(self, exchange: Exchange) -> None:
        body = read(TokenizeRequest, await exchange.body())
        self._settings.known(body.model)
        if (body.prompt is None) == (body.messages is None):
            raise RequestError(400, "Send either prompt or messages.", "prompt")
        text = body.prompt if body.prompt is not None else of_conversation(body.messages or [])
        found = of_text(text, self._settings.context_tokens) if text else []
        message = [piece.decode(errors="replace") for piece in found] if body.return_token_strs else None
        await exchange.json(
            {
                "count": len(found),
                "max_model_len": self._settings.context_tokens,
                "tokens": list(map(number_of, found)),
                "token_strs": message,
            }
        )

    async def _detokenize(self, exchange: Exchange) -> None:
        body, most = read(DetokenizeRequest, await exchange.body()), self._settings.context_tokens
        self._settings.known(body.model)
        if len(body.tokens) > most:
            raise RequestError(
                400, f"tokens: got {len(body.tokens):,}; at most {most:,}, the longest sequence.", "tokens"
            )
        try:
            await exchange.json({"prompt": text_of(body.tokens)})
        except ValueError as error:
            raise RequestError(400, f"tokens: {error}; send numbers that /tokenize gave.", "tokens") from None

    async def _health(self, exchange: Exchange) -> None:
        await exchange.whole(b"", status=503 if self._pace.is_closing else 200)

    async def _version(self, exchange: Exchange) -> None:
        await exchange.json({"version": __version__})

    async def _load(self, exchange: Exchange) -> None:
        await exchange.json({"server_load": len(self._pace.streams)})

    async def _read(self, exchange: Exchange) -> None:
        page, kind = self._metrics.page(exchange.header(b"accept"))
        await exchange.whole(page, kind)
