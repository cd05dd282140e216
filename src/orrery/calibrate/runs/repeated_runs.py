"""Runs of the same conditions: they are left out together, and where they contradict each other they count less."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isclose, log

import numpy as np

from orrery.calibrate.runs.problem import Cell, Floats
from orrery.calibrate.runs.read import RUN
from orrery.evidence.tables import Table

EXACT = (
    "model",
    "device",
    "num_devices",
    "devices_per_node",
    "tp",
    "pp",
    "dp",
    "ep",
    "cp",
    "vp",
    "weights_format",
    "activations_format",
    "kv_format",
    "engine",
    "engine_version",
    "mode",
    "batch_size",
    "concurrency",
    "max_num_seqs",
    "max_num_batched_tokens",
    "scheduler_recv_interval",
    "gpu_memory_utilization_frac",
    "all2all_backend",
    "num_redundant_experts",
    "task",
    "seq_len",
    "global_batch",
    "micro_batch",
    "sharding",
    "recompute",
    "framework",
    "framework_options",
    "precision",
    "torch_compile",
    "technique",
    "num_layers",
    "hidden_size",
    "prefill_workers",
    "decode_workers",
    "prefill_tp",
    "decode_tp",
    "prefill_batch_size",
    "decode_batch_size",
    "experiment",
    "phase",
    "prompt_chunk_tokens",
    "kv_block_tokens",
)
"""Columns that make a run what it is."""

NEAR = {"input_tokens": 0.03, "output_tokens": 0.03, "request_rate_per_s": 0.01}
"""The same, as far as drawn lengths and rates repeat."""

APART = 4.0
"""Distance, in multiples of their noise, from which two measurements of the same thing contradict each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """A measurement that runs of the same conditions do not agree on."""

    runs: tuple[str, ...]
    metric: str
    values: tuple[float, ...]

    def __str__(self) -> str:
        values = ", ".join(f"{v:.4g}" for v in self.values)
        return f"same conditions, different {self.metric} ({values}): {'; '.join(self.runs)}"


def groups_of(table: Table) -> list[int]:
    """The group of every row; rows of the same conditions share one."""
    exact = [tuple(str(table.columns[c][i]) for c in EXACT if c in table.columns) for i in range(len(table))]
    near = [{c: v for c in NEAR if (v := _value(table, c, i)) is not None} for i in range(len(table))]
    out: list[int] = []
    members: dict[tuple[str, ...], list[int]] = {}
    for i, key in enumerate(exact):
        others = members.setdefault(key, [])
        same = next((j for j in others if _is_near(near[i], near[j])), None)
        out.append(i if same is None else out[same])
        others.append(i)
    return out


def _value(table: Table, column: str, row: int) -> float | None:
    text = table.columns[column][row] if column in table.columns else ""
    return float(text) if text else None


def _is_near(one: Mapping[str, float], other: Mapping[str, float]) -> bool:
    return one.keys() == other.keys() and all(isclose(v, other[c], rel_tol=NEAR[c]) for c, v in one.items())


def contradictions(table: Table, cells: Sequence[Cell], groups: Sequence[int]) -> tuple[list[Contradiction], Floats]:
    """Contradicting rows, and the weight of every cell: each side of a contradiction is weighted down by its error."""
    weights = np.ones(len(cells))
    same: dict[tuple[int, str], list[int]] = {}
    for i, cell in enumerate(cells):
        same.setdefault((groups[cell.run], cell.metric), []).append(i)
    found: list[Contradiction] = []
    for (_, metric), members in same.items():
        values = [cells[i].measured for i in members]
        apart = log(max(values) / min(values)) / cells[members[0]].noise
        if apart > APART:
            weights[members] = (APART / apart) ** 2 / len(members)
            names = tuple(table.columns[RUN][cells[i].run] if RUN in table.columns else "" for i in members)
            found.append(Contradiction(runs=names, metric=metric, values=tuple(values)))
    return found, weights
