"""Fit the power constants from the measured tables: ``python tools/fit/energy.py [--data DIR]``.

A device's formats share what being awake and moving bytes draws; each has its own draw of the matrix units. The
meter averages over longer than many of these runs last, so the same work reads up to three times apart; the loss
lets such rows go.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from kernel_scores import quantiles, write_calibrations
from numpy.typing import NDArray
from scipy.optimize import least_squares

from orrery.catalog.devices import get_device
from orrery.evidence.split import CALIBRATE, FIT, TEST, sides
from orrery.evidence.tables import Table, read_table
from orrery.hardware.device import Device
from orrery.kernels.moe import _kernel as moe_kernel
from orrery.kernels.moe.rule import activation_bytes, columns, machine_vector
from orrery.kernels.ops import MoE
from orrery.numerics.registry import get_format

Floats = NDArray[np.float64]

MIN_ROWS = 50  # formats with fewer say nothing
LOSS_SCALE = 0.1
LOW, FIRST, HIGH = (0.0, 0.0, 0.2), (0.1, 0.5, 0.6), (0.5, 2.0, 1.2)  # awake, memory, exponent
MATRIX = (0.1, 0.8, 3.0)
SHARED_FORMAT = "bf16"  # measured on every device and in every op


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """Power rows of one device: the shares of the two roofs that the work reached."""

    device: Device
    op: NDArray[np.str_]
    format: NDArray[np.str_]
    flops_frac: Floats
    bytes_frac: Floats
    power_w: Floats
    side: NDArray[np.str_]

    def take(self, keep: NDArray[np.bool_]) -> "Rows":
        """Only these rows."""
        return Rows(
            device=self.device,
            op=self.op[keep],
            format=self.format[keep],
            flops_frac=self.flops_frac[keep],
            bytes_frac=self.bytes_frac[keep],
            power_w=self.power_w[keep],
            side=self.side[keep],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """Of one device or several: shares of (limit - idle)."""

    awake: float
    memory: float
    exponent: float
    matrix: dict[str, float]

    def power_w(self, rows: Rows) -> Floats:
        """Predicted power of every row."""
        matrix = np.array([self.matrix[f] for f in rows.format])
        share = self.awake + matrix * rows.flops_frac**self.exponent + self.memory * rows.bytes_frac**self.exponent
        idle = rows.device.idle_power_w
        return idle + (rows.device.power_limit_w - idle) * np.minimum(share, 1.0)


def work(table: Table, op: str, format: str, device: Device) -> tuple[Floats, Floats]:
    """Operations and least bytes of every row of one op and format."""
    number = get_format(format)
    read, weight = activation_bytes(number), number.bytes_per_element
    if op == "gemm":
        m, n, k = (table.numbers(c) for c in ("m", "n", "k"))
        return 2 * m * n * k, m * k * read + n * k * weight + 2 * m * n
    if op == "moe":
        return routed_work(table, format, device)
    b, h, g, d, q, c = (
        table.numbers(x) for x in ("batch", "num_heads", "num_kv_heads", "head_size", "query_tokens", "context_tokens")
    )
    window = np.nan_to_num(table.numbers("window_tokens"), nan=np.inf)
    if op == "attention_decode":
        seen = np.minimum(c, window)
        return 4 * b * h * d * seen, 4 * b * g * d * seen
    pairs = np.where(q <= window, q * q / 2, q * np.minimum(window, q) - np.minimum(window, q) ** 2 / 2)
    return 4 * b * h * d * pairs, 4 * b * q * d * (h + g)


def routed_work(table: Table, format: str, device: Device) -> tuple[Floats, Floats]:
    """Operations and bytes of MoE blocks, by the loads of the MoE rule."""
    routing = table.words("routing")
    skew = np.array([float(w.removeprefix("power_law_")) if w.startswith("power_law_") else 0.0 for w in routing])
    names = ("tokens", "hidden_size", "ffn_size", "num_experts", "experts_per_token", "tp", "ep")
    op = MoE(**{n: table.numbers(n) for n in names}, format=format, skew=skew)
    rows = columns(op, np.ones(len(moe_kernel.CONSTANTS)), machine_vector(device, get_format(format)))
    return rows[moe_kernel.FLOPS], rows[moe_kernel.BYTES]


def read(table: Table) -> list[Rows]:
    """The rows of every device."""
    devices, ops, formats = table.words("device"), table.words("op"), table.words("format")
    out: list[Rows] = []
    for name in np.unique(devices):
        device = get_device(str(name))
        parts: list[tuple[Floats, ...]] = []
        for op in np.unique(ops):
            for format in np.unique(formats):
                mine = (devices == name) & (ops == op) & (formats == format)
                if mine.sum() < MIN_ROWS:
                    continue
                part = table.take(mine)
                flops, moved = work(part, op, format, device)
                time_s = part.numbers("time_s")
                peak = device.peak_flops_per_s(get_format(format).rates)[1]
                parts.append(
                    (
                        np.full(len(part), op),
                        np.full(len(part), format),
                        flops / time_s / peak,
                        moved / time_s / device.memory_bandwidth_bytes_per_s,
                        part.numbers("power_w"),
                        sides(part, op),
                    )
                )
        op_, format_, flops_frac, bytes_frac, power, side = (np.concatenate(x) for x in zip(*parts, strict=True))
        out.append(
            Rows(
                device=device,
                op=op_,
                format=format_,
                flops_frac=flops_frac,
                bytes_frac=bytes_frac,
                power_w=power,
                side=side,
            )
        )
    return out


def fit(parts: Sequence[Rows]) -> Constants:
    """The constants that serve all parts best: what all formats share from 16 bits, then each format's matrix units."""

    def seek(requested: str, known: Constants | None) -> Floats:
        mine = [p for p in (p.take(p.format == requested) for p in parts) if p.power_w.size]
        free = [*zip(LOW, FIRST, HIGH, strict=True)] if known is None else []
        low, first, high = np.array([*free, MATRIX]).T

        def residuals(x: Floats) -> Floats:
            tried = constants(x if known is None else [known.awake, known.memory, known.exponent, *x], requested)
            return np.concatenate([np.log(tried.power_w(p) / p.power_w) for p in mine])

        return least_squares(residuals, first, bounds=(low, high), loss="cauchy", f_scale=LOSS_SCALE).x

    def constants(x: Sequence[float], target: str) -> Constants:
        return Constants(awake=x[0], memory=x[1], exponent=x[2], matrix={target: x[3]})

    shared = constants(list(seek(SHARED_FORMAT, None)), SHARED_FORMAT)
    others = sorted({str(f) for p in parts for f in p.format} - {SHARED_FORMAT})
    matrix = {f: float(seek(f, shared)[0]) for f in others}
    return Constants(awake=shared.awake, memory=shared.memory, exponent=shared.exponent, matrix=shared.matrix | matrix)


def on(rows: Rows, side: str) -> Rows:
    """The rows of one side."""
    return rows.take(rows.side == side)


def left_out(parts: Sequence[Rows], key: Callable[[Rows], str]) -> dict[str, Floats]:
    """Measured/predicted by format on calibrate rows, by constants of the parts with another key."""
    out: dict[str, list[Floats]] = {}
    for name in sorted({key(p) for p in parts}):
        others = [on(p, FIT) for p in parts if key(p) != name]
        if not others:
            continue
        constants = fit(others)
        for held in (on(p, CALIBRATE) for p in parts if key(p) == name):
            known = held.take(np.isin(held.format, list(constants.matrix)))
            ratio = known.power_w / constants.power_w(known)
            for format in np.unique(known.format):
                out.setdefault(str(format), []).append(ratio[known.format == format])
    return {f: np.concatenate(r) for f, r in out.items()}


def entries(
    owner: tuple[str, str], constants: Constants, ratios: dict[str, Floats], fallback: Floats, at: str
) -> list[dict[str, object]]:
    """One ``[[calibration]]`` a format."""
    return [
        {
            owner[0]: owner[1],
            "op": "power",
            "format": format,
            "engine": "vllm",
            "from": "aiconfigurator",
            "at": at,
            "constants": {
                "awake_frac": round(float(constants.awake), 4),
                "matrix_frac": round(float(matrix), 4),
                "memory_frac": round(float(constants.memory), 4),
                "concave_power": round(float(constants.exponent), 4),
            },
            "spread": quantiles(ratios.get(format, fallback)),
        }
        for format, matrix in constants.matrix.items()
    ]


def report(rows: Rows, constants: Constants) -> None:
    """Errors on the test rows by op and format, beside always drawing the limit."""
    test = on(rows, TEST)
    off = np.abs(constants.power_w(test) / test.power_w - 1) * 100
    full = np.abs(rows.device.power_limit_w / test.power_w - 1) * 100
    for op in [*np.unique(test.op), "all"]:
        for format in np.unique(test.format):
            mine = ((test.op == op) | (op == "all")) & (test.format == format)
            if mine.any():
                cells = (np.median(off[mine]), off[mine].mean(), np.quantile(off[mine], 0.9))
                print(
                    f"| {rows.device.name} | {op} | {format} | {mine.sum()} | {np.median(full[mine]):.0f} | "
                    + "/".join(f"{c:.1f}" for c in cells)
                    + " |"
                )


def main() -> None:
    """Fit everything, print the errors, write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    root = Path(__file__).resolve().parents[2]
    parser.add_argument("--data", type=Path, default=root.parent / "shared" / "data")
    parts = read(read_table(parser.parse_args().data / "kernels" / "kernel_power.csv.gz"))
    out: list[dict[str, object]] = []
    print("| device | op | format | rows | limit | ours |")
    for rows in parts:
        constants = fit([on(rows, FIT)])
        held = on(rows, CALIBRATE)
        ratio = held.power_w / constants.power_w(held)
        by_format = {str(f): ratio[held.format == f] for f in np.unique(held.format)}
        at = f"power table: {(rows.side == FIT).sum()} rows fitted, {len(ratio)} for the interval"
        out += entries(("device", rows.device.name), constants, by_format, ratio, at)
        report(rows, constants)
        print(constants)
    far = left_out(parts, lambda p: p.device.generation)
    everything = np.concatenate(list(far.values()))
    for generation in sorted({p.device.generation for p in parts}):
        kin = [p for p in parts if p.device.generation == generation]
        near = left_out(kin, lambda p: p.device.name)
        how = "one device left out" if near else "one generation left out: one device measured"
        at = f"power table, {', '.join(p.device.name for p in kin)}; interval: {how}"
        pool = np.concatenate(list(near.values())) if near else everything
        out += entries(("generation", generation), fit([on(p, FIT) for p in kin]), near or far, pool, at)
    at = f"power table, {len(parts)} devices; interval: one generation left out"
    out += entries(("generation", ""), fit([on(p, FIT) for p in parts]), far, everything, at)
    target = root / "src/orrery/catalog/facts/calibrations/energy.toml"
    write_calibrations(target, "python tools/fit/energy.py", out)


if __name__ == "__main__":
    main()
