"""Vectors of length one, drawn from the tokens of each input alone: equal inputs, equal vectors; nothing else is meant.

A shorter vector is the beginning of the longer one, made as long as one again, as nested embeddings are.
"""

from base64 import b64encode
from collections.abc import Sequence
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from orrery.emulator.forms.form import Usage
from orrery.emulator.prompts import Tokens


def vector(tokens: Tokens, size: int) -> NDArray[np.float32]:
    """The vector of an input."""
    text = b"\n".join(x if isinstance(x, bytes) else str(x).encode() for x in tokens)
    found = np.random.default_rng([crc32(text), len(text)]).standard_normal(size, dtype=np.float32)
    return (found / np.linalg.norm(found)).astype(np.float32)


class Embeddings:
    """The body of ``/v1/embeddings``."""

    def __init__(self, id: str, model: str, created: int, inputs: Sequence[Tokens], size: int, is_packed: bool) -> None:
        self._about = {"id": f"embd-{id}", "object": "list", "created": created, "model": model}
        self._inputs, self._size, self._is_packed = inputs, size, is_packed

    def whole(self, texts: list[str], reasons: list[str], usage: Usage) -> dict[str, Any]:
        """All vectors, as numbers or as the base64 of 32-bit floats."""
        data = [
            {"index": k, "object": "embedding", "embedding": self._written(vector(tokens, self._size))}
            for k, tokens in enumerate(self._inputs)
        ]
        usage_json = {
            "prompt_tokens": usage.prompt_tokens,
            "total_tokens": usage.prompt_tokens,
            "completion_tokens": 0,
            "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        }
        return {**self._about, "data": data, "usage": usage_json}

    def _written(self, found: NDArray[np.float32]) -> Any:
        return b64encode(found.astype("<f4").tobytes()).decode() if self._is_packed else found.tolist()
