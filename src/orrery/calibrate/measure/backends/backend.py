"""Interface of a library of kernels that can be measured."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import cycle
from typing import Any, Protocol

import numpy as np

from orrery.base.sources import Fact
from orrery.base.units import percent
from orrery.calibrate.measure.clock import Timed, time_call
from orrery.calibrate.measure.probes import Probe
from orrery.kernels.ops import AttentionDecode, AttentionPrefill

COLD_RATIO = 2.0
"""Cold operands rotate over so many times the last-level cache: each is long gone when its turn comes again."""

ROPE_HEAD_SIZE = 128
"""Width of rotated heads, where the hidden width is a multiple of it; else the whole width is one head."""

MAX_MEMORY_FRAC = 0.25
"""Operands take no more of the memory that is free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Work with its operands in place: one ``call`` does ``num_ops`` of it, all alike."""

    call: Callable[[], object]
    num_ops: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsupported:
    """Why a backend does not do this work, in one sentence."""

    reason: str


class Backend(Protocol):
    """A library on a device."""

    name: str  # "numpy", "pytorch"
    device_kind: str  # "cpu" or "gpu"
    board: str  # the board's own identity, as power meters name it ("GPU-…"); blank: none is told

    def formats(self) -> tuple[str, ...]:
        """Formats that it multiplies in here."""
        ...

    def prepare(self, probe: Probe) -> Prepared | Unsupported:
        """The work with its operands; cold where the op says ``is_cold`` (others use what was just written)."""
        ...

    def synchronise(self) -> None:
        """Waits until the device is idle."""
        ...

    def facts(self) -> Mapping[str, Fact]:
        """Facts of a device file that are known without measuring, each with where it is from."""
        ...

    def bare(self) -> "Backend":
        """The same library timed a kernel at a time: without what the host does for each call, where that parts."""
        ...


def time_prepared(backend: Backend, prepared: Prepared, *, budget_s: float = 0.25, least_samples: int = 7) -> Timed:
    """How long one of the prepared ops takes."""
    timed = time_call(prepared.call, synchronise=backend.synchronise, budget_s=budget_s, least_samples=least_samples)
    return timed.over(prepared.num_ops)


def num_copies(set_bytes: float, cache_bytes: float, free_bytes: float, *, is_cold: bool) -> int | Unsupported:
    """How many sets of operands to rotate over; a refusal where not even the least number fits."""
    most = int(MAX_MEMORY_FRAC * free_bytes / max(set_bytes, 1.0))
    needed = 1 if not is_cold else max(2, -int(-COLD_RATIO * cache_bytes // max(set_bytes, 1.0)))
    if most < needed:
        return Unsupported(
            reason=f"the operands need {needed * set_bytes / 2**30:.2f} GiB; "
            f"{percent(MAX_MEMORY_FRAC)} of the memory that is free are {MAX_MEMORY_FRAC * free_bytes / 2**30:.2f} GiB"
        )
    return needed


def rotating(work: Callable[..., object], sets: Sequence[tuple[Any, ...]]) -> Callable[[], object]:
    """Calls ``work`` with the next set of operands each time."""
    if len(sets) == 1:
        only = sets[0]
        return lambda: work(*only)
    turns = cycle(sets)
    return lambda: work(*next(turns))


def is_single(probe: Probe) -> bool:
    """Whether every size of an op is one number: an op of arrays stands for many kernels, and none can be run."""
    return not any(isinstance(getattr(probe, f.name), np.ndarray) for f in fields(probe))


def attention_refusal(op: AttentionPrefill | AttentionDecode, formats: tuple[str, ...]) -> Unsupported | None:
    """Why the kernels, which attend causally over the whole context in one format, do not do ``op``; None: they do."""
    if other := [f for f in (op.format, op.kv_format) if f not in formats]:
        return Unsupported(reason=f"attention is done in {', '.join(formats)} here, not in {other[0]}")
    if op.format != op.kv_format:
        return Unsupported(reason="attention is done in the format that the cache keeps")
    if isinstance(op, AttentionPrefill) and not (op.is_causal and int(op.value_head_size) in (0, int(op.head_size))):
        return Unsupported(reason="attention is causal, and values are as wide as keys")
    if int(op.window_tokens):
        return Unsupported(reason="attention is done without a window")
    whole = int(op.num_heads) % int(op.num_kv_heads) == 0 and int(op.head_size) % 2 == 0
    if int(op.context_tokens) < int(op.query_tokens) or not whole:
        return Unsupported(reason="a context holds its new tokens, heads come in whole groups, and their size is even")
    return None


def rope_head_size(width: int) -> int:
    """Into what heads a row of ``width`` elements is cut to be rotated."""
    return ROPE_HEAD_SIZE if width % ROPE_HEAD_SIZE == 0 else width
