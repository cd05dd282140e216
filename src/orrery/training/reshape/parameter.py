"""One parameter, and how tensor parallelism cuts it: into pieces that put together give every bit back.

Weights are (out, in). ``split``:

- "column": rows of ``out`` are dealt out; "row": columns of ``in``. Where it is not even, the first ranks get more.
- "vocab": rows are padded with zeros to a multiple of tp and of ``pad_rows``, then dealt out evenly.
- "qkv": query, key and value rows stand in one matrix; each rank holds its heads' queries, keys and values, stacked.
  Where there are fewer heads than ranks, several ranks hold the same head.
- "whole": every rank holds all of it (norms, biases of row-split layers).

Experts carry one more axis in front, which expert parallelism deals out. Patterns as in [lian-2024].
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError

Array = NDArray[np.generic]

SPLITS = ("column", "row", "vocab", "qkv", "whole")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """Name, shape and place of one parameter.

    ``stage_position``: where it stands among the model's layers, 0 for the embedding; pipeline stages are cut along it.
    ``heads`` of "qkv" are (query, key, value) heads, each of ``shape[0] / sum(heads)`` rows.
    """

    name: str
    shape: tuple[int, ...]
    split: str = "whole"
    stage_position: int = 0
    is_expert: bool = False
    heads: tuple[int, int, int] = (0, 0, 0)
    pad_rows: int = 1

    def __post_init__(self) -> None:
        if self.split not in SPLITS:
            raise ScenarioError(f"{self.name}: split = {self.split!r}; write one of {', '.join(SPLITS)}.")
        if self.split == "qkv" and (min(self.heads) < 1 or self.shape[self.axis] % sum(self.heads)):
            raise ScenarioError(
                f"{self.name}: {self.shape} cannot be {self.heads} heads; write heads that divide the rows."
            )

    @property
    def axis(self) -> int:
        """Which axis tensor parallelism cuts; the expert axis does not count."""
        return int(self.is_expert) + int(self.split == "row")

    @property
    def num_elements(self) -> int:
        """Elements of the whole parameter."""
        return int(np.prod(self.shape))


def check_degree(parameter: Parameter, tp: int) -> None:
    """Refuse heads that a tensor degree can neither deal out nor share."""
    bad = [h for h in parameter.heads if parameter.split == "qkv" and h % tp and tp % h]
    if bad:
        raise ScenarioError(
            f"{parameter.name}: {bad[0]} heads over tp = {tp}; write a degree that divides them, or a multiple."
        )


def piece(parameter: Parameter, whole: Array, tp: int, rank: int) -> Array:
    """Slice of ``whole`` on tensor rank ``rank`` of ``tp``."""
    check_degree(parameter, tp)
    if parameter.split == "whole" or (tp == 1 and parameter.split != "vocab"):
        return whole
    if parameter.split == "vocab":
        return _dealt(_padded(parameter, whole, tp), parameter.axis, tp, rank)
    if parameter.split == "qkv":
        parts = [
            _dealt(p, parameter.axis, _owners(h, tp), rank * _owners(h, tp) // tp) for p, h in _parts(parameter, whole)
        ]
        return np.concatenate(parts, axis=parameter.axis)
    return _dealt(whole, parameter.axis, tp, rank)


def joined(parameter: Parameter, pieces: list[Array]) -> Array:
    """The whole parameter from the pieces of all tensor ranks, in their order."""
    tp = len(pieces)
    if parameter.split == "whole":
        return pieces[0]
    if parameter.split == "qkv":
        return _joined_heads(parameter, pieces)
    whole = pieces[0] if tp == 1 else np.concatenate(pieces, axis=parameter.axis)
    rows = parameter.shape[parameter.axis]
    return whole.take(np.arange(rows), axis=parameter.axis) if parameter.split == "vocab" else whole


def piece_shape(parameter: Parameter, tp: int, rank: int) -> tuple[int, ...]:
    """The shape of a piece, without the data."""
    outline = np.broadcast_to(np.zeros((), dtype=np.int8), parameter.shape)
    return piece(parameter, outline, tp, rank).shape


def _dealt(whole: Array, axis: int, ranks: int, rank: int) -> Array:
    """Contiguous share ``rank`` of ``ranks``; the first shares are longer by one where it does not come out even."""
    return np.array_split(whole, ranks, axis=axis)[rank]


def _padded(parameter: Parameter, whole: Array, tp: int) -> Array:
    """Zeros below, up to a multiple of tp and ``pad_rows``."""
    step = int(np.lcm(tp, parameter.pad_rows))
    missing = -whole.shape[parameter.axis] % step
    widths = [(0, missing if axis == parameter.axis else 0) for axis in range(whole.ndim)]
    return np.pad(whole, widths)


def _owners(heads: int, tp: int) -> int:
    """Into how many different shares so many heads go."""
    return min(heads, tp)


def _parts(parameter: Parameter, whole: Array) -> list[tuple[Array, int]]:
    """Queries, keys and values of the whole matrix, each with its heads."""
    rows = whole.shape[parameter.axis] // sum(parameter.heads)
    cuts = np.cumsum(parameter.heads)[:-1] * rows
    return list(zip(np.split(whole, cuts.tolist(), axis=parameter.axis), parameter.heads, strict=True))


def _joined_heads(parameter: Parameter, pieces: list[Array]) -> Array:
    """Queries of all ranks, then keys, then values; of a head that several ranks hold, the first copy."""
    tp, axis = len(pieces), parameter.axis
    rows = parameter.shape[axis] // sum(parameter.heads)
    each = [heads // _owners(heads, tp) * rows for heads in parameter.heads]
    cut = [np.split(p, np.cumsum(each)[:-1].tolist(), axis=axis) for p in pieces]
    found: list[Array] = []
    for part, heads in enumerate(parameter.heads):
        step = tp // _owners(heads, tp)
        found += [cut[rank][part] for rank in range(0, tp, step)]
    return np.concatenate(found, axis=axis)
