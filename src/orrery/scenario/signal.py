"""Errors of number formats on a tensor: its source, whether it can be measured at all, and errors pooled."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import hypot, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError, UnknownName
from orrery.base.user_file import is_user_file
from orrery.numerics.codec import _kernel as loops
from orrery.numerics.codec.pieces import View, let_go
from orrery.numerics.codec.rounding import as_floats
from orrery.numerics.draws import DISTRIBUTIONS, draw
from orrery.numerics.error import ErrorReport, decibels
from orrery.numerics.format import Format
from orrery.scenario.tensor_file import PIECE_ELEMENTS, SUFFIXES, Tensor, numbers_of, tensors_in

MAX_FP32 = float(np.finfo(np.float32).max)


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """One pass over a tensor: what its errors are measured against."""

    num_elements: int
    num_bad: int  # NaN or infinite
    num_beyond: int  # finite, but beyond FP32
    norm: float  # root of the sum of squares
    largest: float

    @property
    def crest_factor(self) -> float:
        """The largest magnitude over the root mean square."""
        return self.largest / self.norm * sqrt(self.num_elements) if self.norm else 1.0


def survey(numbers: NDArray[Any]) -> Survey:
    """Count, norm and largest, piece by piece."""
    flat, sums = numbers.reshape(-1), np.zeros(4)
    for start in range(0, flat.size, PIECE_ELEMENTS):
        loops.add_sizes(as_floats(flat[start : start + PIECE_ELEMENTS]), MAX_FP32, sums)
        let_go(numbers)
    bad, beyond, squares, largest = sums.tolist()
    return Survey(num_elements=flat.size, num_bad=int(bad), num_beyond=int(beyond), norm=sqrt(squares), largest=largest)


def why_not(found: Survey) -> tuple[str, int]:
    """Why a tensor's error would mean nothing, and of how many numbers that is true; "" where it means something."""
    if not found.num_elements:
        return "it has no numbers", 0
    if found.num_bad:
        return f"{found.num_bad:,} of {found.num_elements:,} numbers are NaN or infinite", found.num_bad
    if found.num_beyond:
        return f"{found.num_beyond:,} of {found.num_elements:,} numbers are beyond FP32", found.num_beyond
    return "", 0


def tensors_of(source: str | Path | NDArray[Any], shape: tuple[int, int], seed: int) -> tuple[str, tuple[Tensor, ...]]:
    """A source's name and its tensors: a file's, one that is drawn, or an array as it is."""
    if isinstance(source, np.ndarray):
        if source.dtype.kind not in "fiu":
            raise ScenarioError(f"sources: an array of {source.dtype} holds no real numbers; give floats or integers.")
        return "array", (_in_memory("array", numbers_of(source)),)
    name = str(source)
    if name in DISTRIBUTIONS:
        tensor = Tensor(name=name, dtype="drawn", shape=shape, read=lambda: draw(name, shape, seed))
        return name, (tensor,)
    if Path(name).suffix.casefold() not in SUFFIXES and not is_user_file(Path(name)):
        raise UnknownName("distribution", name, (*DISTRIBUTIONS, *(f"FILE{suffix}" for suffix in SUFFIXES)))
    return name, tensors_in(Path(name))


def _in_memory(name: str, numbers: NDArray[Any]) -> Tensor:
    return Tensor(name=name, dtype=str(numbers.dtype), shape=numbers.shape, read=lambda: numbers)


def stored_bytes(shape: tuple[int, ...], format: Format) -> float:
    """Bytes of a tensor in a format, the scales of ragged blocks, rows and the tensor itself counted."""
    count = int(np.prod(shape, dtype=np.int64))
    bits = -(-count * format.element_bits // 8) * 8.0
    if levels := format.scaling.levels:
        one = replace(format.scaling, levels=(replace(levels[0], share=(1, 1)),))  # a scale with its zero point
        view = View.of(shape, format)
        bits += one.bits_per_element * view.row_blocks * view.groups + sum(level.bits for level in levels[1:])
    return bits / 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pooled:
    """Errors over several tensors, as if they were one."""

    num_elements: int
    sqnr_db: float
    mean_square_error: float
    max_abs_error: float
    mean_error: float
    relative_error_frac: float
    zeros_frac: float


def pool(parts: Iterable[tuple[Survey, ErrorReport]]) -> Pooled:
    """Noise and signal summed over all, then compared."""
    found: Sequence[tuple[Survey, ErrorReport]] = tuple(parts)
    reports = [report for _, report in found]
    count = sum(report.num_elements for report in reports)
    noise = sum(report.mean_square_error * report.num_elements for report in reports)
    norm = hypot(*(looked.norm for looked, _ in found))
    relative = sqrt(noise) / norm if norm else float("inf") if noise else 0.0
    return Pooled(
        num_elements=count,
        sqnr_db=decibels(relative**2),
        mean_square_error=noise / count,
        max_abs_error=max(report.max_abs_error for report in reports),
        mean_error=sum(report.mean_error * report.num_elements for report in reports) / count,
        relative_error_frac=relative,
        zeros_frac=sum(r.zeros_frac * r.num_elements for r in reports) / count,
    )


def on_front(costs: Sequence[float], gains: Sequence[float]) -> list[bool]:
    """Which points no other beats: none costs as little and gains more, or costs less and gains as much."""
    points = list(zip(costs, gains, strict=True))
    return [not any(c <= cost and g >= gain and (c < cost or g > gain) for c, g in points) for cost, gain in points]
