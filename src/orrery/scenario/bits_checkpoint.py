"""Layers and their measured errors from the .safetensors files of a model.

Every matrix that is no embedding, norm or head is a layer of (out, in) weights.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.planner.bits.layer import Layer, product
from orrery.planner.bits.sensitivity import relative_error
from orrery.scenario.tensor_file import Tensor, tensors_in

DTYPES = ("F64", "F32", "F16", "BF16")
LEFT_OUT = ("embed", "norm", "lm_head", "wte", "wpe", "router", ".gate.")
"""Words in the names of tensors that recipes leave in 16 bits."""

MAX_ELEMENTS = 1 << 20
"""Errors of larger matrices are measured on whole rows spread over them."""


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
    n, k = tensor.shape
    step = max(1, -(-n * k // MAX_ELEMENTS))
    rows = np.ascontiguousarray(tensor.read()[::step], dtype=np.float32)
    squares = float(np.mean(rows.astype(np.float64) ** 2)) * n * k if tensor.name in weights else 1.0
    return Layer(
        name=tensor.name,
        group=f"{n} x {k}",
        work=product(tokens, n, k),
        num_parameters=n * k,
        weight_ratio=weights.get(tensor.name, 1.0),
        errors={format: relative_error(rows, format) * squares for format in formats},
    )


def matrices(path: Path) -> Iterator[Tensor]:
    """The matrices that a format may be chosen for."""
    if path.suffix.casefold() != ".safetensors":
        raise ScenarioError(f"{path}: is no .safetensors file; give one, or a folder that holds some.")
    for tensor in tensors_in(path):
        if len(tensor.shape) != 2 or any(word in f".{tensor.name}." for word in LEFT_OUT):
            continue
        if tensor.dtype not in DTYPES:
            raise ScenarioError(
                f"{path}: {tensor.name} is stored as {tensor.dtype}; give weights in {', '.join(DTYPES)}, "
                "not yet quantised."
            )
        yield tensor
