"""Devices left out, on the scorecard: kernels and serving runs as if only the data sheet were known."""

from collections.abc import Mapping
from typing import Any

KERNELS, SERVING = "kernels of a device left out", "serving of a device left out"
"""In the accuracy file, each followed by a way of predicting: by op or metric, then by device."""

HEADING = "### Kernels and serving runs of a device left out"
WAYS = ("its own kernels", "siblings", "new, evenly", "new")

TEXT = """
What is to be expected of a device whose kernels nobody timed. Each device with measured kernels is left out in turn,
and its test rows (at most 200 of a device, op, format and engine) are predicted with constants of others: *siblings*,
those of its generation, where another of it was timed; *new*, those of all other generations, weighed by how long the
last-level cache lasts at the memory's bandwidth and how much of it each compute unit gets, as a device file of a
generation of its own gets them; *new, evenly*, every generation weighing the same. Learned corrections are left out
with the device. Intervals of siblings are those that ship, or twice (log) the one sibling's own; those of three count
on what siblings' trees learned, which is left out here. Intervals of *new* come from generations left out, and the one
that judges a device was made without its generation. Serving runs are predicted with the kernels of other generations;
constants of engines stay, and these runs had a part in them. A cell: median / mean / 90th percentile; then the share of
measurements in the 80 % interval. By `python tools/device_left_out.py --data ../shared/data`.
"""

Entry = Mapping[str, float]


def left_out_section(retained: Mapping[str, Any]) -> list[str]:
    """The section's lines, from the accuracy file: kernels by op and device, then serving runs by metric and device."""
    kernels, serving = ({w: retained.get(f"{what}, {w}", {}) for w in WAYS} for what in (KERNELS, SERVING))
    if not kernels["new"]:
        return []
    return [f"\n{HEADING}\n", TEXT.strip() + "\n", *_kernels(kernels), "", *_serving(serving)]


def _kernels(found: Mapping[str, Any]) -> list[str]:
    head = ["op", "device", "rows", *(f"**{way}**" if way == "new" else way for way in WAYS), "bias of new"]
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for op, devices in found["new"].items():
        for device in ("all", *(d for d in devices if d != "all")):
            cells = [_cell(found[way].get(op, {}).get(device)) for way in WAYS]
            entry = devices[device]
            lines.append(
                f"| `{op}` | `{device}` | {entry['rows']:,} | {' | '.join(cells)} | {100 * entry['bias']:+.1f} |"
            )
    return lines


def _serving(found: Mapping[str, Any]) -> list[str]:
    lines = ["| metric | device | runs | its own kernels | **new** | bias of new |", "|---|---|---|---|---|---|"]
    for metric, devices in found["new"].items():
        for device, entry in devices.items():
            own = _cell(found["its own kernels"].get(metric, {}).get(device))
            lines.append(
                f"| `{metric}` | `{device}` | {entry['rows']:,} | {own} | {_cell(entry)} | {100 * entry['bias']:+.1f} |"
            )
    return lines


def _cell(entry: Entry | None) -> str:
    if entry is None:
        return ""
    errors = " / ".join(f"{100 * entry[name]:.1f}" for name in ("median", "mean", "p90"))
    return errors + (f"; {100 * entry['covered_80']:.0f} %" if "covered_80" in entry else "")
