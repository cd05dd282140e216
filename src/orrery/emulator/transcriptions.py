"""``/v1/audio/transcriptions``: words that come when a model of speech would have heard them.

The text is made up, as long as speech of that length is; the same recording has the same words. A recording's length is
read from its header, and nothing else of it is kept.
"""

from collections.abc import Awaitable, Callable
from math import ceil
from zlib import crc32

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import Field, File, create_form_parser

from orrery.emulator.exchange import Exchange
from orrery.emulator.pace import RealTimeDriver
from orrery.emulator.recordings import audio_s
from orrery.emulator.refusal import RequestError
from orrery.emulator.settings import Settings
from orrery.emulator.transcriber import Transcriber
from orrery.emulator.turns import Turns
from orrery.emulator.words import LENGTH, Answer
from orrery.execution.speech import TOKENS_PER_S
from orrery.models.speech import WINDOW_S

MAX_FILE_BYTES = 25_000_000
"""Largest file, as OpenAI's interface has it."""

MAX_BODY_BYTES = MAX_FILE_BYTES + 100_000
MAX_PARTS = 32
FORM = "multipart/form-data"
FIELDS = frozenset(
    {"file", "model", "language", "prompt", "response_format", "temperature", "stream", "timestamp_granularities[]"}
)
FORMATS = ("json", "text", "verbose_json")


class Transcriptions:
    """The path of speech."""

    def __init__(self, pace: RealTimeDriver, settings: Settings, transcriber: Transcriber) -> None:
        self._pace, self._transcriber = pace, transcriber
        self._turns = Turns(pace, settings.speed_ratio)
        self.routes: dict[str, dict[str, Callable[[Exchange], Awaitable[None]]]] = {
            "/v1/audio/transcriptions": {"POST": self._transcribe}
        }

    async def _transcribe(self, exchange: Exchange) -> None:
        arrived_s = self._pace.now_s
        fields = _checked(
            form_of(exchange.raw_header(b"content-type"), await exchange.body(kinds=(FORM,), most_bytes=MAX_BODY_BYTES))
        )
        if (name := fields["model"].decode(errors="replace")) != self._transcriber.name:
            raise RequestError(404, f"The model `{name[:200]}` transcribes nothing here.", "model")
        long_s, key = audio_s(fields["file"]), crc32(fields.pop("file"))  # only what is short waits
        await self._turns.wait(exchange, arrived_s, self._transcriber.answer(long_s).latency_s)
        kind = fields.get("response_format", b"json")
        text = spoken(key, 0.0, long_s)
        if kind == b"text":
            await exchange.whole(f"{text}\n".encode(), b"text/plain; charset=utf-8")
        elif kind == b"json":
            await exchange.json({"text": text, "usage": {"type": "duration", "seconds": ceil(long_s)}})
        else:
            language = fields.get("language", b"english").decode(errors="replace")[:32]
            await exchange.json(
                {
                    "task": "transcribe",
                    "language": language,
                    "duration": long_s,
                    "text": text,
                    "segments": segments(key, long_s),
                    "usage": {"type": "duration", "seconds": ceil(long_s)},
                }
            )


def form_of(content_type: bytes, body: bytes) -> dict[str, bytes]:
    """Fields of a form by name; RequestError where it is none, or has too many parts."""
    found: dict[str, bytes] = {}

    def add(name: bytes | None, value: bytes) -> None:
        if len(found) >= MAX_PARTS:
            raise RequestError(400, f"More than {MAX_PARTS} parts.")
        key = (name or b"").decode(errors="replace")
        if key in found and not key.endswith("[]"):
            raise RequestError(400, f"{key[:40]}: stands twice.", key[:40])
        found[key] = value

    def file(part: File) -> None:
        part.file_object.seek(0)
        add(part.field_name, part.file_object.read())

    def field(part: Field) -> None:
        add(part.field_name, part.value or b"")

    try:
        parser = create_form_parser(
            {"Content-Type": content_type}, field, file, config={"MAX_MEMORY_FILE_SIZE": MAX_BODY_BYTES}
        )
        parser.write(body)
        parser.finalize()
        parser.close()
    except (FormParserError, ValueError) as error:
        raise RequestError(400, f"The form cannot be read: {str(error)[:200]}") from None
    return found


def _checked(fields: dict[str, bytes]) -> dict[str, bytes]:
    """The fields, where all are known, none is missing, and each can be obeyed."""
    if other := sorted(fields.keys() - FIELDS):
        raise RequestError(400, f"{other[0][:40]}: not emulated; known: {', '.join(sorted(FIELDS))}.", other[0][:40])
    for name in ("file", "model"):
        if name not in fields:
            raise RequestError(400, f"{name}: missing.", name)
    if len(fields["file"]) > MAX_FILE_BYTES:
        raise RequestError(413, f"The file is larger than {MAX_FILE_BYTES:,} bytes; send less.")
    if fields.get("response_format", b"json").decode(errors="replace") not in FORMATS:
        raise RequestError(400, f"response_format: write one of {', '.join(FORMATS)}.", "response_format")
    if fields.get("stream", b"false").lower() not in (b"false", b"0", b""):
        raise RequestError(400, "stream: transcripts come whole here; leave it out.", "stream")
    return fields


def spoken(key: int, from_s: float, to_s: float) -> str:
    """Words between two moments of a recording."""
    first, end = ceil(TOKENS_PER_S * from_s), ceil(TOKENS_PER_S * to_s)
    return Answer(start=key % LENGTH + first, num_tokens=end - first, reason="stop").text(0, end - first)


def segments(key: int, long_s: float) -> list[dict[str, float | int | str]]:
    """Windows of a recording with their words."""
    return [
        {
            "id": k,
            "seek": int(100 * WINDOW_S * k),
            "start": WINDOW_S * k,
            "end": min(long_s, WINDOW_S * (k + 1)),
            "text": spoken(key, WINDOW_S * k, min(long_s, WINDOW_S * (k + 1))),
        }
        for k in range(ceil(long_s / WINDOW_S))
    ]
