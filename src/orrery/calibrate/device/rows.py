"""Measurements of kernels as rows of a measured table, there and back."""

from collections.abc import Mapping
from typing import Any

from orrery.calibrate.device.work import Work
from orrery.kernels.ops import AttentionDecode, AttentionPrefill, Elementwise, Gemm
from orrery.network.collective import Collective

COLUMNS = (
    "kind",
    "source",
    "note",
    "device",
    "engine",
    "op",
    "format",
    "kv_format",
    "m",
    "n",
    "k",
    "batch",
    "query_tokens",
    "context_tokens",
    "num_heads",
    "num_kv_heads",
    "head_size",
    "tokens",
    "width",
    "is_cold",
    "collective",
    "num_devices",
    "devices_per_node",
    "message_bytes",
    "library",
    "time_s",
    "spread_frac",
    "slowness_ratio",
    "foreseen_s",
)
"""Columns of the table; ``orrery check`` carries through those that the schema does not know (``foreseen_s``, …)."""

_SIZES: Mapping[type, tuple[str, ...]] = {
    Gemm: ("m", "n", "k", "format", "is_cold"),
    AttentionPrefill: (
        "batch",
        "query_tokens",
        "context_tokens",
        "num_heads",
        "num_kv_heads",
        "head_size",
        "format",
        "kv_format",
    ),
    AttentionDecode: (
        "batch",
        "context_tokens",
        "num_heads",
        "num_kv_heads",
        "head_size",
        "format",
        "kv_format",
        "is_cold",
    ),
    Elementwise: ("tokens", "width", "format"),
    Collective: ("num_devices", "message_bytes", "devices_per_node", "library"),
}
_OPS: Mapping[str, type] = {
    "gemm": Gemm,
    "attention_prefill": AttentionPrefill,
    "attention_decode": AttentionDecode,
}


def row_of(work: Work, device: str, source: str, **measured: Any) -> dict[str, Any]:
    """One line of the table."""
    op = work.op
    is_collective = isinstance(op, Collective)
    if is_collective:
        name = ""
    elif isinstance(op, Elementwise):
        name = op.kind
    else:
        name = next(word for word, kind in _OPS.items() if type(op) is kind)
    return {
        "kind": "collective" if is_collective else "kernel",
        "source": source,
        "device": device,
        "engine": work.engine,
        "op": name,
        "collective": op.kind if is_collective else "",
        **{size: _plain(getattr(op, size)) for size in _SIZES[type(op)]},
        **measured,
    }


def work_of(row: Mapping[str, str]) -> Work:
    """The work that a line of such a table measured."""
    if row["kind"] == "collective":
        sizes: dict[str, Any] = {
            "kind": row["collective"],
            "num_devices": int(row["num_devices"]),
            "library": row["library"],
            "message_bytes": float(row["message_bytes"]),
            "devices_per_node": int(row["devices_per_node"]),
            "has_peer_to_peer": True,
        }
        return Work(op=Collective(**sizes), engine=row["engine"])
    kind = _OPS.get(row["op"], Elementwise)
    words: dict[str, Any] = {size: _read(row[size]) for size in _SIZES[kind]}
    if kind is Elementwise:
        words["kind"] = row["op"]
    if kind is Gemm:
        words["quantises_input"] = False
    return Work(op=kind(**words), engine=row["engine"])


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, bool) or (isinstance(value, float) and value.is_integer()) else value


def _read(cell: str) -> int | str:
    return int(cell) if cell.isdigit() else cell
