"""Fit the MoE constants from the measured tables: ``python tools/fit/moe.py [--data DIR]``.

For every device, format and engine: constants on the fit rows, quantiles of measured/predicted on the calibrate
rows, errors printed on the test rows. Generations pool their devices; their interval is that of a device left out.
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
from orrery.kernels.moe import _kernel as kernel
from orrery.kernels.moe.rule import columns, machine_vector
from orrery.kernels.ops import MoE
from orrery.numerics.registry import get_format

Floats = NDArray[np.float64]

START = {
    "overhead_s": (2e-6, 2e-5, 3e-4), "plain_overhead_s": (2e-6, 3e-5, 3e-4), "expert_s": (1e-10, 5e-8, 1e-5),
    "peak_frac": (0.1, 0.8, 1.0), "bandwidth_frac": (0.2, 0.8, 1.0), "row_ratio": (0.02, 0.5, 10.0),
    "token_ratio": (0.02, 0.5, 20.0), "fill_elements": (1.0, 100.0, 4000.0),
    "cache_ratio": (0.01, 0.5, 4.0), "uneven_frac": (0.001, 0.05, 0.5),
}  # fmt: skip
"""Lowest, first and highest value of every constant; rates may not pass the datasheet."""

LOW, FIRST, HIGH = (np.log([START[n][i] for n in START]) for i in range(3))
CHOICES = ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0))
"""Values of sees_all and runs_all."""

LOSS_SCALE = 0.1  # relative error beyond which a row counts less: mistuned kernels in the tables are up to 10x slow


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """The rows of one device, format and engine."""

    device: str
    generation: str
    format: str
    engine: str
    op: tuple[MoE, MoE]  # plain blocks, gated blocks
    order: NDArray[np.int64]  # where the rows of the two stand
    machine: Floats
    time_s: Floats
    side: NDArray[np.str_]

    def predict(self, constants: Floats) -> Floats:
        """Seconds of every row."""
        both = np.concatenate([columns(op, constants, self.machine)[kernel.TIME].ravel() for op in self.op])
        return both[self.order]

    def roofs(self) -> tuple[Floats, Floats]:
        """Compute and memory roof of every row."""
        ones = np.ones(len(kernel.CONSTANTS))
        both = np.concatenate([columns(op, ones, self.machine) for op in self.op], axis=1)[:, self.order]
        return both[kernel.COMPUTE], both[kernel.MEMORY]

    def take(self, keep: NDArray[np.bool_]) -> "Rows":
        """Only these rows."""
        gated = self._gated()[keep]
        ops = tuple(_op(_sizes(self)[:, keep][:, gated == want], self.format, want) for want in (False, True))
        order = np.empty(gated.size, dtype=np.int64)
        order[np.flatnonzero(~gated)] = np.arange((~gated).sum())
        order[np.flatnonzero(gated)] = (~gated).sum() + np.arange(gated.sum())
        return Rows(
            device=self.device, generation=self.generation, format=self.format, engine=self.engine,
            op=(ops[0], ops[1]), order=order, machine=self.machine, time_s=self.time_s[keep], side=self.side[keep],
        )  # fmt: skip

    def _gated(self) -> NDArray[np.bool_]:
        return self.order >= np.size(self.op[0].tokens)


SIZES = ("tokens", "hidden_size", "ffn_size", "num_experts", "experts_per_token", "tp", "ep", "skew")


def _sizes(rows: Rows) -> Floats:
    return np.concatenate([np.array([getattr(op, s) for s in SIZES]) for op in rows.op], axis=1)[:, rows.order]


def _op(sizes: Floats, format: str, is_gated: bool) -> MoE:
    return MoE(**dict(zip(SIZES, sizes, strict=True)), format=format, is_gated=is_gated)


def engine_of(engine: str, kernel_name: str) -> str:
    """The low-latency kernels are chosen by the user, not by the shape: an engine of their own."""
    return f"{engine}-min-latency" if kernel_name.endswith("min_latency") else engine


def skew_of(routing: str) -> float:
    """``power_law_1.2`` -> 1.2; balanced or blank -> 0."""
    return float(routing.removeprefix("power_law_")) if routing.startswith("power_law_") else 0.0


def groups(table: Table) -> Iterator[Rows]:
    """The rows of the table by device, format and engine."""
    side = sides(table, "moe")
    engine = np.array([engine_of(*pair) for pair in zip(table.words("engine"), table.words("kernel"), strict=True)])
    skew = np.array([skew_of(word) for word in table.words("routing")])
    sizes = np.array([table.numbers(s) if s != "skew" else skew for s in SIZES])
    gated = table.words("gated_ffn") == "true"
    keys = np.array([table.words("device"), table.words("format"), engine])
    for device, format, name in np.unique(keys, axis=1).T:
        mine = (keys == np.array([[device], [format], [name]])).all(axis=0)
        known = get_device(device)
        whole = Rows(
            device=device, generation=known.generation, format=format, engine=name,
            op=(_op(sizes[:, mine & ~gated], format, False), _op(sizes[:, mine & gated], format, True)),
            order=np.argsort(np.argsort(gated[mine], kind="stable"), kind="stable"),
            machine=machine_vector(known, get_format(format)), time_s=table.numbers("time_s")[mine], side=side[mine],
        )  # fmt: skip
        yield whole


def screen(rows: Rows) -> tuple[Rows, int]:
    """Drop what beats the datasheet's rate, or its bandwidth where the experts hit cannot sit in the cache."""
    compute_s, memory_s = rows.roofs()
    cached_s = rows.machine[3] / rows.machine[2]
    beats = (rows.time_s < compute_s) | (rows.time_s < memory_s - cached_s)
    return rows.take(~beats), int(beats.sum())


def fit(parts: Sequence[Rows], choice: tuple[float, float]) -> tuple[Floats, float]:
    """The constants that serve all parts best, every part with the same say, and the loss that is left."""
    parts = [p for p in parts if p.time_s.size]

    def residuals(x: Floats) -> Floats:
        constants = np.append(np.exp(x), choice)
        errors = [np.log(p.predict(constants) / p.time_s) / LOSS_SCALE for p in parts]
        return np.concatenate([np.sign(e) * _soft(e) / np.sqrt(e.size) for e in errors])

    found = least_squares(residuals, FIRST, bounds=(LOW, HIGH), max_nfev=60, diff_step=1e-4)
    best = np.append(np.exp(found.x), choice)
    if not any(np.size(p.op[0].tokens) for p in parts):
        best[1] = best[0]  # no plain blocks measured: they launch as many kernels as gated ones
    return best, float(found.cost)


def choose(parts: Sequence[Rows]) -> tuple[float, float]:
    """How the kernels of a format and engine pick tiles and treat remote experts: what serves all devices best."""
    return min(CHOICES, key=lambda choice: fit([on(p, FIT) for p in parts], choice)[1])


def _soft(error: Floats) -> Floats:
    """Square root of the soft absolute loss, so that squares of it add up to that loss."""
    return np.sqrt(2.0 * (np.sqrt(1.0 + error**2) - 1.0))


def on(rows: Rows, side: str) -> Rows:
    """The rows of one side."""
    return rows.take(rows.side == side)


def entry(
    rows: Sequence[Rows], owner: tuple[str, str], constants: Floats, spread: Spread, at: str
) -> dict[str, object]:
    """One ``[[calibration]]``."""
    sizes = np.concatenate([_sizes(r) for r in rows], axis=1)
    spans = {s: [float(sizes[i].min()), float(sizes[i].max())] for i, s in enumerate(SIZES) if s != "skew"}
    named = dict(zip(kernel.CONSTANTS, (float(f"{c:.4g}") for c in constants), strict=True))
    return {
        owner[0]: owner[1], "op": "moe", "format": rows[0].format, "engine": rows[0].engine, "from": "aiconfigurator",
        "at": at, "constants": named, "spread": spread, "range": spans,
    }  # fmt: skip


def ratios(rows: Rows, constants: Floats) -> Floats:
    """Measured over predicted."""
    return rows.time_s / rows.predict(constants)


def left_out(parts: Sequence[Rows], choice: tuple[float, float], key: Callable[[Rows], str]) -> Floats:
    """Measured/predicted on calibrate rows of every part, by constants of the parts with another key."""
    out: list[Floats] = []
    for name in sorted({key(p) for p in parts}):
        others = [on(p, FIT) for p in parts if key(p) != name]
        if others:
            constants, _ = fit(others, choice)
            out += [ratios(on(p, CALIBRATE), constants) for p in parts if key(p) == name]
    return np.concatenate(out) if out else np.empty(0)


def score(rows: Rows, constants: Floats) -> Score:
    """Errors on the test rows beside the two baselines."""
    test, train = on(rows, TEST), on(rows, FIT)
    roofline = np.maximum(*test.roofs())
    simple = baseline(train.roofs(), train.time_s)
    return Score(
        group=(rows.device, rows.format, rows.engine), rows=test.time_s.size,
        ours=test.predict(constants) / test.time_s, roofline=roofline / test.time_s,
        simple=simple(*test.roofs()) / test.time_s,
    )  # fmt: skip


def main() -> None:
    """Fit everything, print the errors, write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    root = Path(__file__).resolve().parents[2]
    parser.add_argument("--data", type=Path, default=root.parent / "shared" / "data")
    table = read_table(parser.parse_args().data / "kernels" / "moe.csv.gz")
    entries: list[dict[str, object]] = []
    scores: list[Score] = []
    screened = 0
    whole: dict[Key, list[Rows]] = {}
    for raw in groups(table):
        rows, beaten = screen(raw)
        screened += beaten
        whole.setdefault((rows.format, rows.engine), []).append(rows)
    choices = {key: choose(parts) for key, parts in whole.items()}
    for key, parts in whole.items():
        for rows in parts:
            constants, _ = fit([on(rows, FIT)], choices[key])
            numbers = [int((rows.side == s).sum()) for s in (FIT, CALIBRATE, TEST)]
            at = "MoE table, {}: {} rows fitted, {} for the interval, {} tested".format(rows.engine, *numbers)
            spread = quantiles(ratios(on(rows, CALIBRATE), constants))
            entries.append(entry([rows], ("device", rows.device), constants, spread, at))
            scores.append(score(rows, constants))
    print_scores(scores)
    print(f"{screened} of {len(table)} rows beat a physical bound and were left out", flush=True)
    entries += pooled(whole, choices)
    target = root / "src/orrery/catalog/facts/calibrations/moe.toml"
    write_calibrations(target, "python tools/fit/moe.py", entries)


Key = tuple[str, str]  # format, engine


def pooled(whole: dict[Key, list[Rows]], choices: dict[Key, tuple[float, float]]) -> list[dict[str, object]]:
    """Entries for generations and for everybody."""
    anybody = {key: left_out(parts, choices[key], lambda p: p.generation) for key, parts in whole.items()}
    widest = np.concatenate(list(anybody.values()))
    out: list[dict[str, object]] = []
    for key, parts in whole.items():
        far = anybody[key] if anybody[key].size else widest
        for generation in sorted({p.generation for p in parts}):
            kin = [p for p in parts if p.generation == generation]
            near = left_out(kin, choices[key], lambda p: p.device)
            names = ", ".join(p.device for p in kin)
            how = "one device left out" if near.size else "another generation's constants: one device measured"
            at = f"MoE table, {key[1]}, {names}; interval: {how}"
            constants, _ = fit([on(p, FIT) for p in kin], choices[key])
            out.append(entry(kin, ("generation", generation), constants, quantiles(near if near.size else far), at))
        how = "one generation left out" if anybody[key].size else "that of the other formats: one generation measured"
        at = f"MoE table, {key[1]}, {len(parts)} devices; interval: {how}"
        constants, _ = fit([on(p, FIT) for p in parts], choices[key])
        out.append(entry(parts, ("generation", ""), constants, quantiles(far), at))
    return out


if __name__ == "__main__":
    main()
