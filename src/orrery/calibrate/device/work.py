"""Works that may be measured: one op or collective with the engine that supplies its kernels."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from orrery import kernels, network
from orrery.hardware.device import Device
from orrery.kernels import host
from orrery.kernels.ops import AttentionDecode, AttentionPrefill, Elementwise, Gemm, Op
from orrery.network.collective import Collective

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Work:
    """One thing to time, and how a reader would call it."""

    op: Op | Collective
    engine: str
    weight_frac: float = 1.0  # of its prediction among all that are to become sure

    @property
    def key(self) -> tuple[str, str, str]:
        """Under which op, format and engine its constants are filed."""
        if isinstance(self.op, Collective):
            return self.op.kind, "any", self.engine
        return host.key(self.op, self.engine)

    @property
    def name(self) -> str:
        """In words, for tables and progress."""
        match self.op:
            case Gemm(m=m, n=n, k=k, format=format, is_cold=is_cold):
                return f"product {m} x {n} x {k}, {format}{'' if is_cold else ', cached'}"
            case AttentionPrefill(query_tokens=q, num_heads=h, head_size=s):
                return f"attention of {q} tokens, {h} heads of {s}"
            case AttentionDecode(batch=b, context_tokens=c, num_heads=h, head_size=s):
                return f"attention of {b} x 1 to {c} tokens, {h} heads of {s}"
            case Elementwise(kind=kind, tokens=t, width=w):
                return f"{kind.replace('_', ' ')} of {t} x {w}"
            case Collective(kind=kind, num_devices=n, message_bytes=size):
                return f"{kind.replace('_', '-')} of {size:g} bytes by {n}"
            case op:
                return type(op).__name__

    def time_s(self, device: Device) -> Floats:
        """Predicted time of the work on ``device``; of the sizes' shape."""
        if isinstance(self.op, Collective):
            return np.asarray(network.predict(self.op, device).time_s, dtype=np.float64)
        return kernels.predict(self.op, device, self.engine).time_s


def stacked(works: Sequence[tuple[int, Work]]) -> Iterator[tuple[NDArray[np.int64], Work]]:
    """Numbered works that differ in their sizes only as one work with arrays for sizes, and their numbers."""
    groups: dict[tuple[object, ...], list[tuple[int, Work]]] = {}
    for number, work in works:
        same = tuple(v for name, v in _fields(work.op) if not _is_size(work.op, name, v))
        groups.setdefault((work.key, type(work.op), *same), []).append((number, work))
    for members in groups.values():
        first = members[0][1]
        sizes = {
            name: np.array([getattr(work.op, name) for _, work in members])
            for name, value in _fields(first.op)
            if _is_size(first.op, name, value)
        }
        yield np.array([number for number, _ in members]), replace(first, op=replace(first.op, **sizes))


def _fields(op: Op | Collective) -> list[tuple[str, object]]:
    return [(f.name, getattr(op, f.name)) for f in fields(op)]


def _is_size(op: Op | Collective, name: str, value: object) -> bool:
    """Whether rules take arrays of it; of a collective, they do of the bytes."""
    if isinstance(op, Collective):
        return name == "message_bytes"
    return isinstance(value, int) and not isinstance(value, bool)
