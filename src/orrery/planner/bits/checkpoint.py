"""Layers and their measured errors from a .safetensors file: a length, a JSON header, and the numbers.

Every matrix that is no embedding, norm or head is a layer of (out, in) weights. Format of the file: safetensors'
README (header length as eight bytes, little-endian; offsets from the header's end).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError
from orrery.planner.bits.layer import Layer, product
from orrery.planner.bits.sensitivity import relative_error

DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
LEFT_OUT = ("embed", "norm", "lm_head", "wte", "wpe", "router", ".gate.")
"""Words in the names of tensors that recipes leave in 16 bits."""

MOST_ELEMENTS = 1 << 20
"""Errors of larger matrices are measured on whole rows spread over them."""

MOST_HEADER_BYTES = 100_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """One matrix in a file."""

    name: str
    path: Path
    dtype: str
    shape: tuple[int, int]
    start: int  # where its numbers begin

    def rows(self) -> NDArray[np.float32]:
        """Rows spread over it, at most ``MOST_ELEMENTS`` numbers."""
        count, width = self.shape
        stored = np.memmap(self.path, DTYPES[self.dtype], "r", self.start, self.shape)
        step = max(1, -(-count * width // MOST_ELEMENTS))
        rows = np.ascontiguousarray(stored[::step])
        if self.dtype == "BF16":
            return (rows.astype(np.uint32) << 16).view(np.float32)
        return rows.astype(np.float32)


def layers_in(path: Path, tokens: int, formats: Sequence[str], weights: Mapping[str, float]) -> tuple[Layer, ...]:
    """A layer for every matrix, with its errors.

    A layer that ``weights`` names (a mean trace of the Hessian) has its squared error counted as it is, as HAWQ does;
    the others theirs relative to the weights.
    """
    found = [_layer(tensor, tokens, formats, weights) for file in _files(path) for tensor in matrices(file)]
    if not found:
        raise ScenarioError(f"{path}: holds no matrix of weights; give a checkpoint of a model.")
    return tuple(found)


def _files(path: Path) -> list[Path]:
    files = sorted(path.glob("*.safetensors")) if path.is_dir() else [path]
    if not files:
        raise ScenarioError(f"{path}: holds no .safetensors file; give a folder that does, or the file.")
    return files


def _layer(tensor: Tensor, tokens: int, formats: Sequence[str], weights: Mapping[str, float]) -> Layer:
    rows, (n, k) = tensor.rows(), tensor.shape
    squares = float(np.mean(rows.astype(np.float64) ** 2)) * n * k if tensor.name in weights else 1.0
    return Layer(
        name=tensor.name, group=f"{n} x {k}", work=product(tokens, n, k), num_parameters=n * k,
        weight_ratio=weights.get(tensor.name, 1.0),
        errors={format: relative_error(rows, format) * squares for format in formats},
    )  # fmt: skip


def matrices(path: Path) -> Iterator[Tensor]:
    """The matrices that a format may be chosen for."""
    header, start = _header(path)
    for name, entry in header.items():
        shape = tuple(entry.get("shape", ())) if name != "__metadata__" else ()
        if len(shape) != 2 or any(word in f".{name}." for word in LEFT_OUT):
            continue
        if entry["dtype"] not in DTYPES:
            raise ScenarioError(
                f"{path}: {name} is stored as {entry['dtype']}; give weights in {', '.join(DTYPES)}, not yet quantised."
            )
        yield Tensor(name=name, path=path, dtype=entry["dtype"], shape=shape, start=start + entry["data_offsets"][0])


def _header(path: Path) -> tuple[dict[str, Any], int]:
    """The JSON header and where it ends."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if not 0 < length <= MOST_HEADER_BYTES:
                raise ValueError(f"a header of {length} bytes")
            return json.loads(file.read(length)), 8 + length
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read: {error.strerror}; give a .safetensors file or folder.") from None
    except ValueError as error:
        raise ScenarioError(f"{path}: is no .safetensors file ({error}).") from None
