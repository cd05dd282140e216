"""Fit the element-wise constants from the measured tables: ``python tools/fit/elementwise.py [--data DIR]``.

Launches are those of the kernels themselves: where a table times the same rows both ways, CUDA-event times (which
add the host's gap) are left out.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from kernel_scores import Score, Spread, baseline, print_scores, quantiles, write_calibrations
from numpy.typing import NDArray
from scipy.optimize import least_squares

from orrery.catalog.devices import get_device
from orrery.evidence.split import CALIBRATE, FIT, TEST, sides
from orrery.evidence.tables import Table, read_table
from orrery.kernels.elementwise import _kernel as kernel
from orrery.kernels.elementwise.rule import KINDS, MEASURED_ENGINE, MEASURED_FORMAT, bytes_each, machine_vector

Floats = NDArray[np.float64]

LOW = np.array([np.log(5e-7), np.log(0.02), np.log(1.0), 0.0])
FIRST = np.array([np.log(3e-6), np.log(0.5), np.log(2.0), 0.3])
HIGH = np.array([np.log(1e-4), np.log(1.0), np.log(8.0), 0.9])
LOSS_SCALE = 0.1  # relative error beyond which a row counts less
MIN_ROWS = 10  # below, only launch and bandwidth are fitted, and the interval is pooled
PLAIN = np.array([0.0, 0.0, np.log(2.0), 0.0])  # how the two meet, and no cache, where they are not fitted


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """The rows of one kind on one device."""

    device: str
    generation: str
    kind: str
    source: str
    tokens: Floats
    width: Floats
    machine: Floats
    time_s: Floats
    side: NDArray[np.str_]

    def columns(self, constants: Floats) -> Floats:
        """The kernel's columns for every row."""
        out = np.empty((self.time_s.size, kernel.COLUMNS))
        each = bytes_each(self.kind, MEASURED_FORMAT)
        kernel.many(self.tokens * self.width, each, KINDS[self.kind].flops, constants, self.machine, out)
        return out.T

    def predict(self, constants: Floats) -> Floats:
        """Seconds of every row."""
        return self.columns(constants)[kernel.TIME]

    def roofs(self) -> tuple[Floats, Floats]:
        """Compute and memory roof of every row."""
        rows = self.columns(np.ones(len(kernel.CONSTANTS)))
        return rows[kernel.COMPUTE], rows[kernel.MEMORY]

    def take(self, keep: NDArray[np.bool_]) -> "Rows":
        """Only these rows."""
        return Rows(
            device=self.device,
            generation=self.generation,
            kind=self.kind,
            source=self.source,
            tokens=self.tokens[keep],
            width=self.width[keep],
            machine=self.machine,
            time_s=self.time_s[keep],
            side=self.side[keep],
        )


def groups(table: Table) -> Iterator[Rows]:
    """The rows of one table by device and kind."""
    ops, devices, timer = table.words("op"), table.words("device"), table.words("timer")
    side = sides(table, "elementwise")
    for device in np.unique(devices):
        known_only = (devices == device) & (timer == "kernels only")
        usable = known_only if known_only.any() else devices == device
        for kind in KINDS:
            mine = usable & (ops == kind)
            if mine.any():
                known = get_device(str(device))
                yield Rows(
                    device=known.name,
                    generation=known.generation,
                    kind=kind,
                    source="frontier" if known_only.any() else "vidur",
                    tokens=table.numbers("tokens")[mine],
                    width=table.numbers("width")[mine],
                    machine=machine_vector(known),
                    time_s=table.numbers("time_s")[mine],
                    side=side[mine],
                )


def unpack(x: Floats) -> Floats:
    """Constants from the fitted numbers: all but the last in logarithms."""
    return np.append(np.exp(x[:3]), x[3])


def fit(parts: Sequence[Rows]) -> Floats:
    """The constants that serve all parts best, every part with the same say."""
    parts = [p for p in parts if p.time_s.size]

    free = np.arange(4) < (4 if sum(p.time_s.size for p in parts) >= MIN_ROWS else 2)

    def residuals(x: Floats) -> Floats:
        constants = unpack(np.where(free, x, PLAIN))
        return np.concatenate([np.log(p.predict(constants) / p.time_s) / np.sqrt(p.time_s.size) for p in parts])

    found = least_squares(residuals, FIRST, bounds=(LOW, HIGH), loss="soft_l1", f_scale=LOSS_SCALE)
    return unpack(np.where(free, found.x, PLAIN))


def on(rows: Rows, side: str) -> Rows:
    """The rows of one side."""
    return rows.take(rows.side == side)


def left_out(parts: Sequence[Rows], key: Callable[[Rows], str]) -> Floats:
    """Measured/predicted on calibrate rows, by constants of the parts with another key."""
    out: list[Floats] = []
    for name in sorted({key(p) for p in parts}):
        others = [on(p, FIT) for p in parts if key(p) != name]
        if any(p.time_s.size for p in others):
            constants = fit(others)
            held = [on(p, CALIBRATE) for p in parts if key(p) == name]
            out += [p.time_s / p.predict(constants) for p in held]
    return np.concatenate(out) if out else np.empty(0)


def entry(
    owner: tuple[str, str], parts: Sequence[Rows], constants: Floats, spread: Spread, at: str
) -> dict[str, object]:
    """One ``[[calibration]]``."""
    spans = {
        name: [float(min(getattr(p, name).min() for p in parts)), float(max(getattr(p, name).max() for p in parts))]
        for name in ("tokens", "width")
    }
    named = dict(zip(kernel.CONSTANTS, (float(f"{c:.4g}") for c in constants), strict=True))
    return {
        owner[0]: owner[1],
        "op": f"elementwise_{parts[0].kind}",
        "format": MEASURED_FORMAT,
        "engine": MEASURED_ENGINE,
        "from": parts[0].source,
        "at": at,
        "constants": named,
        "spread": spread,
        "range": spans,
    }


def score(rows: Rows, constants: Floats) -> Score:
    """Errors on the test rows beside the baselines."""
    test, train = on(rows, TEST), on(rows, FIT)
    rival = baseline(train.roofs(), train.time_s)
    return Score(
        group=(rows.device, rows.kind),
        rows=test.time_s.size,
        ours=test.predict(constants) / test.time_s,
        roofline=np.maximum(*test.roofs()) / test.time_s,
        simple=rival(*test.roofs()) / test.time_s,
    )


def main() -> None:
    """Fit everything, print the errors, write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    root = Path(__file__).resolve().parents[2]
    parser.add_argument("--data", type=Path, default=root.parent / "shared" / "data")
    folder = parser.parse_args().data / "kernels"
    small = read_table(folder / "small_kernels.csv")
    # PyTorch's norm on an A100 starts at 50 us there: the host's time. Only softmax, which no other table has.
    small = small.take(small.words("op") == "softmax")
    parts = [r for t in (read_table(folder / "model_layers.csv.gz"), small) for r in groups(t)]
    entries: list[dict[str, object]] = []
    scores: list[Score] = []
    for rows in parts:
        kin = [p for p in parts if p.kind == rows.kind]
        enough = on(rows, CALIBRATE).time_s.size >= MIN_ROWS
        constants = fit([on(rows, FIT)])
        held = [on(p, CALIBRATE) for p in ([rows] if enough else kin)]
        numbers = [int((rows.side == s).sum()) for s in (FIT, CALIBRATE, TEST)]
        at = "{} rows: {} fitted, {} for the interval, {} tested".format(rows.kind, *numbers)
        at += "" if enough else "; interval pooled over the devices measured"
        spread = quantiles(np.concatenate([h.time_s / h.predict(constants) for h in held]))
        entries.append(entry(("device", rows.device), [rows], constants, spread, at))
        scores.append(score(rows, constants))
    for kind in KINDS:
        entries += pooled([p for p in parts if p.kind == kind], f"{kind} rows of")[0]
    print_scores(scores)
    target = root / "src/orrery/catalog/facts/calibrations/elementwise.toml"
    write_calibrations(target, "python tools/fit/elementwise.py", entries)


def pooled(parts: Sequence[Rows], text: str) -> tuple[list[dict[str, object]], Floats]:
    """Entries of one kind for generations and for everybody, which ``said`` names; and what is measured over predicted
    with a generation left out."""
    if not parts:
        return [], np.zeros(0)
    far = left_out(parts, lambda p: p.generation)
    out: list[dict[str, object]] = []
    for generation in sorted({p.generation for p in parts}):
        kin = [p for p in parts if p.generation == generation]
        near = left_out(kin, lambda p: p.device)
        how = "one device left out" if near.size else "one generation left out: one device measured"
        at = f"{text} {', '.join(p.device for p in kin)}; interval: {how}"
        constants = fit([on(p, FIT) for p in kin])
        out.append(entry(("generation", generation), kin, constants, quantiles(near if near.size else far), at))
    at = f"{text} {len(parts)} devices; interval: one generation left out"
    out.append(entry(("generation", ""), parts, fit([on(p, FIT) for p in parts]), quantiles(far), at))
    return out, far


if __name__ == "__main__":
    main()
