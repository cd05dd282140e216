"""Operators of set-ups, answered by the same call as ``orrery kernel``."""

from collections.abc import Mapping
from typing import Any

from orrery.scenario.kernel.answer import KernelRow
from orrery.scenario.kernel.run import predict_kernel, read_kernel


def kernel_rows(op: str, **settings: Any) -> Mapping[str, KernelRow]:
    """Rows of an operator by variant; of several formats of one variant the first."""
    answer, _ = predict_kernel(read_kernel({"op": op, **settings}))
    return {row.variant: row for row in reversed(answer.rows)}


def swept_rows(op: str, sweep: str, **settings: Any) -> tuple[KernelRow, ...]:
    """Rows of the operator's first variant over a sweep of one size, in its order."""
    answer, _ = predict_kernel(read_kernel({"op": op, "sweep": [sweep], **settings}))
    return tuple(row for row in answer.rows if row.variant == answer.rows[0].variant)
