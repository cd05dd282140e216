"""Errors of formats on distributions and files: one tensor at a time in every format, then pooled."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import OrreryError, ScenarioError
from orrery.numerics.error import ErrorReport, error_of
from orrery.numerics.format import Format
from orrery.numerics.rotations.hadamard import has_matrix, signs, transform
from orrery.scenario.signal import Pooled, Survey, pool, survey, tensors_of, why_not
from orrery.scenario.tensor_file import Tensor

SHAPE = (512, 1024)
"""Shape of a drawn tensor."""


def signal_of(
    formats: Sequence[Format],
    sources: Sequence[str],
    *,
    rotates: bool,
    seed: int,
    notes: list[str],
    rotated_elements: int = 0,
) -> dict[str, dict[str, Pooled]]:
    """Errors by format and source; a format that cannot hold some source has none for it, and a note says why."""
    found: dict[str, dict[str, Pooled]] = {f.name: {} for f in formats}
    for source in sources:
        name, tensors = tensors_of(source, SHAPE, seed)
        parts: dict[str, list[tuple[Survey, ErrorReport]]] = {f.name: [] for f in formats}
        num_measured = 0
        for tensor, seen, numbers in _measurable(name, tensors, notes):
            num_measured += 1
            turned = _rotated(numbers, seed, tensor.name, notes, rotated_elements) if rotates else numbers
            for format in formats:
                try:
                    parts[format.name].append((seen, error_of(turned, format)))
                except OrreryError as error:
                    notes.append(f"{format.name} on {name}: {error}")
        if not num_measured:
            raise ScenarioError(f"on: {name} holds no tensor that can be measured; " + "; ".join(notes[-3:]) + ".")
        for format, each in parts.items():
            if each:
                found[format][name] = pool(each)
    return found


def _measurable(
    name: str, tensors: Sequence[Tensor], notes: list[str]
) -> Iterator[tuple[Tensor, Survey, NDArray[Any]]]:
    for tensor in tensors:
        try:
            numbers = tensor.read()
        except OrreryError as error:
            notes.append(f"{name}: {tensor.name} was left out: {error}")
            continue
        seen = survey(numbers)
        if reason := why_not(seen)[0]:
            notes.append(f"{name}: {tensor.name} was left out: {reason}")
        else:
            yield tensor, seen, numbers


def _rotated(numbers: NDArray[Any], seed: int, name: str, notes: list[str], rotated_elements: int = 0) -> NDArray[Any]:
    """Rows by a random Hadamard matrix as wide as divides them, or of so many elements.

    Errors are the same before and after turning back.
    """
    width = numbers.shape[-1] if numbers.ndim else 1
    block = rotated_elements or next((n for n in range(width, 1, -1) if width % n == 0 and has_matrix(n)), 1)
    if rotated_elements and width % block:
        raise ScenarioError(f"rotate_block: {name} has rows of {width}, no multiple of {block}; write a divisor.")
    if block == 1:
        notes.append(f"rotate: {name} has rows of {width}, which no Hadamard matrix divides; it was left as it is")
        return numbers
    notes.append(f"rotate: rows of {width} by blocks of {block}; the rotation's own time is not counted")
    rows = np.asarray(numbers, dtype=np.float32).reshape(-1, width)
    return np.asarray(transform(rows * signs(width, seed), block), dtype=np.float32).reshape(numbers.shape)
