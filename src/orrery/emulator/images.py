"""``/v1/images/generations``: pictures that come when a diffusion pipeline would have made them.

A pipeline makes one batch after the other, a request's pictures together; requests wait for it in their order, on the
service's clock. The pictures are real PNGs of the size that was asked for, of two colours drawn from the prompt.
"""

import struct
from base64 import b64encode
from collections.abc import Awaitable, Callable
from typing import Annotated, Literal
from zlib import compress, crc32

import numpy as np
from msgspec import Meta, Struct

from orrery.base.errors import ScenarioError
from orrery.emulator.bodies import read
from orrery.emulator.exchange import Exchange
from orrery.emulator.image_pipeline import ImagePipeline
from orrery.emulator.pace import RealTimeDriver
from orrery.emulator.refusal import RequestError
from orrery.emulator.settings import Settings
from orrery.emulator.turns import Turns

MAX_PICTURES = 10
"""Most pictures of one request, as OpenAI's interface has it."""

MAX_SIDE = 4096


class ImageRequest(Struct, kw_only=True):
    """``POST /v1/images/generations``."""

    prompt: Annotated[str, Meta(min_length=1, max_length=32_000)]
    model: str | None = None
    n: Annotated[int, Meta(ge=1, le=MAX_PICTURES)] | None = 1
    size: str | None = None
    response_format: Literal["b64_json", "url"] | None = "b64_json"
    num_inference_steps: Annotated[int, Meta(ge=1, le=1000)] | None = None
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None
    user: str | None = None


class Images:
    """The path of pictures."""

    def __init__(self, pace: RealTimeDriver, settings: Settings, pipeline: ImagePipeline) -> None:
        self._pace, self._settings, self._pipeline = pace, settings, pipeline
        self._turns = Turns(pace, settings.speed_ratio)
        self.routes: dict[str, dict[str, Callable[[Exchange], Awaitable[None]]]] = {
            "/v1/images/generations": {"POST": self._generate}
        }

    async def _generate(self, exchange: Exchange) -> None:
        arrived_s, body = self._pace.now_s, read(ImageRequest, await exchange.body())
        if body.model not in (None, self._pipeline.name):
            raise RequestError(404, f"The model `{(body.model or '')[:200]}` makes no pictures here.", "model")
        if body.response_format == "url":
            raise RequestError(
                400, "response_format: url is not emulated; pictures come as b64_json.", "response_format"
            )
        height, width, count = *self._size(body.size), body.n or 1
        try:
            latency_s = self._pipeline.latency_s(height, width, count, body.num_inference_steps)
        except ScenarioError as error:
            raise RequestError(400, f"size: {error}", "size") from None
        await self._turns.wait(exchange, arrived_s, latency_s)
        draws = np.random.default_rng([crc32(body.prompt.encode(errors="replace")), body.seed or 0])
        pictures = [b64encode(png(height, width, draws)).decode() for _ in range(count)]
        await exchange.json({"created": int(arrived_s), "data": [{"b64_json": text} for text in pictures]})

    def _size(self, text: str | None) -> tuple[int, int]:
        """Rows and columns; the pipeline's own where nothing is said."""
        if text in (None, "auto"):
            return self._pipeline.height, self._pipeline.width
        width, cross, height = text.partition("x")
        if not cross or not (width.isdecimal() and height.isdecimal() and len(text) < 12):
            raise RequestError(400, f"size: got {text[:40]!r}; write WIDTHxHEIGHT, such as 1024x1024.", "size")
        if max(int(width), int(height)) > MAX_SIDE or min(int(width), int(height)) < 16:
            raise RequestError(400, f"size: got {text}; sides are 16 to {MAX_SIDE} pixels.", "size")
        return int(height), int(width)


def png(height: int, width: int, draws: np.random.Generator) -> bytes:
    """A picture of stripes in two colours, with one bit a pixel."""
    period = int(draws.integers(8, 65))
    row = np.packbits((np.arange(width) // period) % 2 == 0).tobytes()
    palette = draws.integers(256, size=6, dtype=np.uint8).tobytes()
    head = struct.pack(">IIBBBBB", width, height, 1, 3, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"PLTE", palette), (b"IDAT", compress((b"\0" + row) * height, 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", crc32(kind + body)) for kind, body in chunks
    )
