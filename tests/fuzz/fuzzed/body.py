"""Bodies of HTTP requests: what clients of the emulator send, and files that somebody uploads to the web."""

import json
from pathlib import Path

from fuzzed import describe
from orrery.base.errors import OrreryError
from orrery.emulator.bodies import Chat, Claude, Completion, Counted, DetokenizeRequest, Embedding, TokenizeRequest
from orrery.emulator.bodies import read as decoded
from orrery.emulator.prompts import of_any
from orrery.emulator.refusal import RequestError
from orrery.emulator.requests import RequestParser
from orrery.emulator.settings import Settings
from orrery.web.uploads.refused import text_of
from orrery.web.uploads.stored_files import name_for

NAME = "body"
TURNS = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [{"type": "text", "text": "yes"}]}]
SEEDS = tuple(
    json.dumps(body).encode()
    for body in (
        {"messages": TURNS, "max_tokens": 5, "stream": True, "stream_options": {"include_usage": True}, "stop": ["a"]},
        {"prompt": ["a", "b"], "n": 2, "max_tokens": 3, "seed": 1, "temperature": 0.5, "priority": 1.5},
        {"prompt": [[1, 2, 3], [4]], "max_tokens": 3, "min_tokens": 1, "ignore_eos": True, "cache_salt": "x"},
        {
            "model": "m",
            "messages": TURNS,
            "max_tokens": 5,
            "system": [{"type": "text", "text": "s"}],
            "tools": [{"a": 1}],
        },
        {"input": ["a", "b"], "encoding_format": "base64", "dimensions": 8},
        {"tokens": [1, 2]},
        {"prompt": "words", "return_token_strs": True},
    )
)
WORDS = (
    b"null",
    b"true",
    b"[]",
    b"{}",
    b"-1",
    b"0",
    b"1e400",
    b"9" * 40,
    b'"n"',
    b'"stop"',
    b'"tools"',
    b'"logprobs"',
    b'"user"',
    b'"\\ud800"',
    b'"\\u0000"',
    b"[" * 2000,
    b'"max_completion_tokens"',
    b'"response_format"',
    b'"priority"',
    b'"seed"',
)
REFUSALS = (OrreryError, RequestError)

ASKER = RequestParser(Settings(names=("m",), context_tokens=1024, block_tokens=16, answer=None, embedding_size=64))
ENDPOINTS = (
    (Chat, ASKER.chat),
    (Completion, ASKER.completion),
    (Claude, ASKER.message),
    (Counted, ASKER.written),
    (Embedding, lambda body: ASKER.embedding(body, of_any(body.input, 1024, "input"))),
    (TokenizeRequest, id),
    (DetokenizeRequest, id),
)


def read(path: Path) -> str:
    """At every endpoint, and as an upload of each kind: what each says."""
    raw = path.read_bytes()
    name = raw[:40].decode("utf-8", "replace")
    return describe(
        *(lambda kind=kind, ask=ask: ask(decoded(kind, raw)) for kind, ask in ENDPOINTS),
        *(lambda ending=ending: _uploaded(name + ending, raw) for ending in (".json", ".csv", ".toml", "")),
        refusals=REFUSALS,
    )


def _uploaded(name: str, raw: bytes) -> None:
    text_of(name, raw)
    found = name_for(name, raw)
    assert "/" not in found
    assert not found.startswith(".")
