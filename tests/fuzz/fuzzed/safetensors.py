"""The header of a .safetensors file, and its tensors."""

import json
from pathlib import Path

from orrery.base.errors import OrreryError
from orrery.scenario.tensor_file import tensors_in


def packed(header: dict[str, object], body: bytes) -> bytes:
    """A file of that header."""
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


NAME = "model.safetensors"
SEEDS = (
    packed({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, bytes(8)),
    packed(
        {
            "a": {"dtype": "BF16", "shape": [2, 2], "data_offsets": [0, 8]},
            "b": {"dtype": "F8_E4M3", "shape": [4], "data_offsets": [8, 12]},
            "__metadata__": {"format": "pt"},
        },
        bytes(12),
    ),
    packed({"a": {"dtype": "I64", "shape": [], "data_offsets": [0, 8]}}, bytes(8)),
    packed({"a": {"dtype": "F16", "shape": [0, 3], "data_offsets": [0, 0]}}, b""),
)
WORDS = (
    b'"U8"',
    b'"BOOL"',
    b'"F4"',
    b"[0, 0]",
    b"true",
    b"-1",
    b"9" * 30,
    b'"a"',
    b"\xff\xff\xff\xff",
    b"1.5",
    b"null",
)
REFUSALS = (OrreryError,)


def read(path: Path) -> None:
    """Every tensor, where it is small."""
    for tensor in tensors_in(path):
        if tensor.num_elements < 100_000:
            tensor.read()
