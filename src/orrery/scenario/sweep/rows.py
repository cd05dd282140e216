"""One summary row a run: what varied, and the figures that runs are compared by."""

from collections.abc import Mapping, Sequence
from typing import Any

Cell = str | float | int | None

FIGURES: tuple[str, ...] = (
    "num_devices",
    "request_throughput",
    "output_throughput",
    "total_token_throughput",
    "request_goodput",
    "slo_attainment",
    "mean_ttft_ms",
    "p99_ttft_ms",
    "mean_tpot_ms",
    "p99_tpot_ms",
    "mean_e2el_ms",
    "p99_e2el_ms",
    "kv_use_peak_frac",
    "preemptions",
    "power_w",
    "energy_j_per_output_token",
    "usd_per_million_tokens",
    "saturated_first",
)
"""Keys of an answer that a row repeats."""


def rows_of(runs: Sequence[Mapping[str, Any]]) -> list[dict[str, Cell]]:
    """A row for each run, all with the same columns; what a run does not have is None."""
    rows = [_row(run) for run in runs]
    columns = dict.fromkeys(key for row in rows for key in row)
    last = ("status", "why")
    return [{key: row.get(key) for key in (*(c for c in columns if c not in last), *last)} for row in rows]


def _row(run: Mapping[str, Any]) -> dict[str, Cell]:
    row: dict[str, Cell] = {key: _plain(value) for key, value in run["varied"].items()}
    row |= {"status": status(run), "why": why(run)}
    if status(run) != "done":
        return row
    devices = run["num_devices"]
    if found := run.get("capacity"):
        row |= {
            "capacity_requests_per_s": found["requests_per_s"],
            "capacity_requests_per_s_per_device": found["requests_per_s_per_device"],
            "limited_by": found["limited_by"],
        }
    row |= {key: run.get(key) for key in FIGURES}
    tpot_ms = run.get("mean_tpot_ms")
    row["output_tokens_per_s_per_device"] = run["output_throughput"] / devices
    row["output_tokens_per_s_per_user"] = 1e3 / tpot_ms if tpot_ms else None
    return row


def status(run: Mapping[str, Any]) -> str:
    """``done``, ``infeasible`` or ``failed``."""
    return "failed" if "error" in run else "infeasible" if "infeasible" in run else "done"


def why(run: Mapping[str, Any]) -> str:
    """Why a run came to nothing; empty where it did not."""
    if "error" in run:
        return str(run["error"]["message"])
    if infeasible := run.get("infeasible"):
        return (
            f"{infeasible['what']}: needs {infeasible['need']:.4g}, has {infeasible['have']:.4g} {infeasible['unit']}. "
            + str(infeasible["smallest_change"])
        )
    return ""


def _plain(value: Any) -> Cell:
    return value if value is None or isinstance(value, str | float | int) else " ".join(map(str, value))
