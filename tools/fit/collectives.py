"""Fit the constants of collectives to measured tables, report the errors, and write the calibration file.

    python tools/fit/collectives.py --data ../shared/data [--dry-run]

Only rows on the FIT side enter a constant; intervals come from the CALIBRATE side; errors are of the TEST side. Rows
are few (some twenty of a collective, library and device), so constants have priors, and the three ring collectives of
a device share all but their launch.
"""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from collective_rows import SYSTEMS, Floats, Rows, baselines, errors, predict_s, quantiles, read_rows, summary
from numpy.typing import NDArray
from scipy.optimize import least_squares

from orrery.base.files import write_atomically
from orrery.evidence.split import CALIBRATE, FIT, TEST

HOME = Path(__file__).parents[2]
FOLDER = HOME / "src/orrery/catalog/facts/calibrations"
RINGS, PAIRS = ("all_reduce", "all_gather", "reduce_scatter"), ("all_to_all",)
ENGINES = ("tensorrt-llm", "vllm", "vllm-eager", "sglang", "sglang-eager", "nccl-eager")
HIGHEST_RATE_FRAC = 0.98  # no library sends more than its link's stated rate

Start = Mapping[str, tuple[float, float]]

# Where a constant is looked for, and how far (natural logarithm) it is expected to lie from there.
VENDOR: Start = {
    "launch_s": (4e-6, 1.0),
    "low_latency_step_s": (8e-7, 0.7),
    "low_latency_rate_frac": (0.1, 0.7),
    "block_launch_s": (2e-6, 0.7),
    "block_step_s": (9e-7, 0.7),
    "block_rate_frac": (0.5, 0.5),
    "bulk_launch_s": (8e-6, 1.0),
    "bulk_step_s": (8e-7, 1.0),
    "bulk_rate_frac": (0.85, 0.15),
    "staging_ratio": (0.4, 0.7),
    "pipeline_ratio": (0.5, 0.7),
    "in_switch_launch_s": (1.5e-5, 1.0),
    "in_switch_step_s": (2e-6, 1.0),
    "in_switch_rate_frac": (0.7, 0.2),
    "contention_ratio": (1.5, 0.7),
}
FUSED: Start = {
    "launch_s": (3e-6, 1.0),
    "one_shot_step_s": (9e-7, 0.7),
    "one_shot_peer_s": (1e-7, 1.0),
    "one_shot_rate_frac": (0.6, 0.4),
    "two_shot_step_s": (3.5e-6, 0.7),
    "two_shot_rate_frac": (0.6, 0.4),
    "host_s": (2e-5, 1.0),
}
BEHIND: Mapping[str, float] = {
    "bulk_launch_s": 0.5,
    "bulk_rate_frac": 0.1,
    "in_switch_launch_s": 0.5,
    "in_switch_rate_frac": 0.1,
}
BEHIND_BUS: Mapping[str, float] = {
    "low_latency_step_s": 0.7,
    "low_latency_rate_frac": 0.5,
    "bulk_launch_s": 0.5,
    "bulk_rate_frac": 0.7,
    "contention_ratio": 0.4,
}
ALL_CARDS_FRAC = 0.94  # 46 to 48 of 50 GB/s a card: NCCL's authors, nccl-tests issue 290; not fitted
BETWEEN_NODES = "between nodes: rate as in NVIDIA/nccl-tests issue 290, step from send_recv on h100-sxm"
NEAR = 0.6  # a device lies this much nearer to its kin than to nothing


def fit(groups: list[Rows], start: Start, fixed: Mapping[str, float]) -> dict[str, float]:
    """Constants for the logarithm of the time, with a weak prior, robust against noisy rows.

    A name such as ``launch_s@all_gather`` is one collective's own; ``constants_of`` reads the answer.
    """
    names = list(start)
    centre = np.log([start[n][0] for n in names])
    width = np.array([start[n][1] for n in names])
    ceiling = np.array([np.log(HIGHEST_RATE_FRAC) if n.endswith("_rate_frac") else np.inf for n in names])
    rows = [g.on(FIT) for g in groups]

    def constants(x: Floats) -> dict[str, float]:
        return {**fixed, **{n: float(np.exp(v)) for n, v in zip(names, x, strict=True)}}

    def residual(x: Floats) -> Floats:
        c = constants(x)
        data = [np.log(predict_s(g, constants_of(c, g.kind)) / g.time_s) / 0.05 for g in rows]
        return np.concatenate(
            [*[np.sign(d) * np.sqrt(2 * (np.sqrt(1 + d * d) - 1)) for d in data], (x - centre) / width]
        )

    rng, best = np.random.default_rng(7), None
    for trial in range(3):
        x0 = np.minimum(centre + (rng.normal(size=len(names)) * width * 0.4 if trial else 0.0), ceiling - 1e-3)
        found = least_squares(residual, x0, diff_step=1e-3, max_nfev=40, bounds=(-np.inf, ceiling))
        if best is None or found.cost < best.cost:
            best = found
    assert best is not None
    return constants(best.x)


def constants_of(c: Mapping[str, float], kind: str) -> dict[str, float]:
    """The constants of one collective: the shared ones and its own."""
    own = {k.split("@")[0]: v for k, v in c.items() if k.endswith(f"@{kind}")}
    return {k: v for k, v in c.items() if "@" not in k} | own


def vendor_start(groups: list[Rows], centre: Mapping[str, float] | None) -> Start:
    """The constants that these rows speak of; nearer to pooled ones where there are any."""
    start: dict[str, tuple[float, float]] = {}
    kinds = sorted({g.kind for g in groups})
    switched = any(g.device.scaleup.has_reduction for g in groups) and "all_reduce" in kinds
    for name, (value, width) in VENDOR.items():
        if (name.startswith("in_switch") and not switched) or (name.startswith("block") and kinds == ["all_to_all"]):
            continue
        if name == "contention_ratio" and not any(g.is_bus for g in groups):
            continue
        for own in [f"{name}@{k}" for k in kinds] if name == "launch_s" else [name]:
            near = centre is not None and own in centre
            start[own] = (centre[own], width * NEAR) if centre and near else (value, width)
    return start


@dataclass
class Book:
    """The calibration entries and the table of errors, as they grow."""

    far: Mapping[str, float]
    entries: list[dict[str, Any]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    ratios: list[tuple[str, bool, NDArray[np.float64]]] = field(default_factory=list)

    def add(
        self, owner: Mapping[str, str], rows: list[Rows], c: Mapping[str, float], ratios: list[Floats], at: str
    ) -> None:
        """One calibration entry."""
        sizes = np.concatenate([r.size_bytes for r in rows])
        counts = np.concatenate([r.num_devices for r in rows])
        kind, library = rows[0].kind, rows[0].library
        is_vidur = library == "nccl-eager" or kind == "send_recv"
        at += "" if kind == "send_recv" else f"; {BETWEEN_NODES}"
        all_cards = {} if kind == "send_recv" else {"scaleout_rate_frac": ALL_CARDS_FRAC}
        constants = self.far | all_cards | constants_of(c, kind)
        self.entries.append(
            {
                **owner,
                "op": kind,
                "format": "any",
                "engine": "nccl" if kind == "send_recv" else library,
                "from": "vidur" if is_vidur else "aiconfigurator",
                "at": at,
                "constants": {k: float(f"{v:.5g}") for k, v in sorted(constants.items())},
                "spread": quantiles(*ratios),
                "range": {
                    "message_bytes": [float(sizes.min()), float(sizes.max())],
                    "num_devices": [float(counts.min()), float(counts.max())],
                },
            }
        )

    def report(self, rows: Rows, c: Mapping[str, float], left_out: Mapping[str, float]) -> None:
        """One line of the error table."""
        test = rows.on(TEST)
        away = errors(test, constants_of(left_out, rows.kind))
        roof, two = baselines(rows)
        mine = errors(test, constants_of(c, rows.kind))
        self.ratios.append((rows.library, rows.is_bus, np.array([mine, away, two, roof])))
        self.lines.append(
            f"{rows.device.name:14s} {rows.kind:15s} {rows.library:13s}{summary(mine)}   {summary(away)[:27]}   "
            f"{summary(two)[:6]}   {summary(roof)[:6]}"
        )

    def totals(self) -> list[str]:
        """The same over all rows of a library, and of all, with and without devices on a bus."""
        lines: list[str] = []
        for library in [*dict.fromkeys(r[0] for r in self.ratios), ""]:
            for is_bus_too in (True, False):
                some = [r[2] for r in self.ratios if (not library or r[0] == library) and (is_bus_too or not r[1])]
                mine, away, two, roof = np.concatenate(some, axis=1)
                words = f"{library or 'all':13s} {'' if is_bus_too else 'no bus':16s}"
                lines.append(
                    f"{words}{summary(mine)}   {summary(away)[:27]}   {summary(two)[:6]}   {summary(roof)[:6]}"
                )
        return lines


Refit = Callable[[list[Rows], Mapping[str, float] | None], dict[str, float]]


def family(groups: list[Rows], refit: Refit, book: Book) -> dict[str, dict[str, float]]:
    """Constants for each device, each generation and everybody (""), with what was left out as their spread."""
    pool = refit([g for g in groups if not g.is_bus] or groups, None)
    known = {"": refit(groups, None)}
    generations = {g.device.generation for g in groups}
    away = {g: refit(rest, None) for g in generations if (rest := [r for r in groups if r.device.generation != g])}
    for name in sorted({g.device.name for g in groups}):
        mine = [g for g in groups if g.device.name == name]
        generation = mine[0].device.generation
        known[name] = refit(mine, pool)
        kin = [g for g in groups if g.device.generation == generation and g.device.name != name]
        known[f"without {name}"] = refit(kin, pool) if kin else away.get(generation, known[""])
        for g in mine:
            book.report(g, known[name], known[f"without {name}"])
    for kind in sorted({g.kind for g in groups}):
        write_kind([g for g in groups if g.kind == kind], groups, known, away, refit, pool, book)
    return known


def write_kind(
    same: list[Rows],
    groups: list[Rows],
    known: Mapping[str, dict[str, float]],
    away: Mapping[str, dict[str, float]],
    refit: Refit,
    pool: Mapping[str, float],
    book: Book,
) -> None:
    """The entries of one collective: its devices, their generations, and everybody."""
    pooled = np.concatenate([ratio(g, known[g.device.name]) for g in same])
    for g in same:
        n = [len(g.on(s).time_s) for s in (FIT, CALIBRATE, TEST)]
        at = f"{g.kind} by {g.library} on {g.device.name}: {n[0]} rows fitted, {n[1]} for the interval, {n[2]} tested"
        c = known[g.device.name]
        book.add({"device": g.device.name}, [g], c, [ratio(g, c), pooled], at)
    for generation in sorted({g.device.generation for g in same}):
        mine = [g for g in same if g.device.generation == generation]
        c = refit([g for g in groups if g.device.generation == generation], pool)
        how = "of each left out" if len(mine) > 1 else "of its generation left out"
        at = f"pooled over {', '.join(g.device.name for g in mine)}; interval {how}"
        left = np.concatenate([ratio(g, known[f"without {g.device.name}"]) for g in mine])
        book.add({"generation": generation}, mine, c, [left, pooled], at)
    some = [g for g in same if not g.is_bus] or same
    left = np.concatenate([ratio(g, away.get(g.device.generation, known[""])) for g in some])
    at = f"pooled over {', '.join(g.device.name for g in same)}; interval of each generation left out"
    book.add({"generation": ""}, same, known[""], [left, pooled], at)


def ratio(rows: Rows, c: Mapping[str, float]) -> Floats:
    """measured / predicted on the rows for intervals."""
    return errors(rows.on(CALIBRATE), constants_of(c, rows.kind))


def vendor(groups: list[Rows], book: Book) -> dict[str, dict[str, float]]:
    """The vendor's library."""
    return family(groups, lambda some, centre: fit(some, vendor_start(some, centre), {}), book)


def engine(groups: list[Rows], bases: Mapping[str, dict[str, float]], book: Book) -> None:
    """An engine's own all-reduce, with the vendor's library behind it for large messages and without peer access."""
    is_eager_vendor = groups[0].library == "nccl-eager"

    def refit(some: list[Rows], centre: Mapping[str, float] | None) -> dict[str, float]:
        alone = some[0].device.name if len(some) == 1 else ""
        base = constants_of(bases.get(alone, bases[""]), "all_reduce")
        is_bus = all(g.is_bus for g in some)
        if not is_bus and not is_eager_vendor:
            base = {k: v for k, v in base.items() if not k.startswith(("low_latency", "block"))}
        start = {n: (base[n], w) for n, w in (BEHIND_BUS if is_bus else BEHIND).items() if n in base}
        for name, (value, width) in FUSED.items():
            is_own = name.startswith(("one_shot", "two_shot"))
            if (name == "host_s") > groups[0].library.endswith("eager") or (is_eager_vendor and is_own):
                continue
            if is_bus and name.startswith("two_shot"):
                continue
            near = centre is not None and name in centre
            start[name] = (centre[name], width * NEAR) if centre and near else (value, width)
        return fit(some, start, base)

    family(groups, refit, book)


def one_to_one(groups: list[Rows], book: Book) -> None:
    """Send and receive between two devices of a node."""
    start = {k: v for k, v in VENDOR.items() if not k.startswith(("in_switch", "contention", "block"))}
    family(groups, lambda some, centre: fit(some, start, {}), book)


def scaleout(rows: list[Rows]) -> dict[str, float]:
    """Between nodes: the share of a network card's rate and the latency of a message, from H100 send and receive.

    The A100 machines of the same study have a slower network than a card for each device would allow.
    """
    far = next(r for r in rows if r.kind == "send_recv" and r.device.name == "h100-sxm")
    far = far.take(far.per_node < far.num_devices).on(FIT)
    fixed = {"launch_s": 4e-6, "bulk_rate_frac": 0.9, "bulk_step_s": 1e-6}
    found = fit([far], {"scaleout_step_s": (1e-5, 1.0), "scaleout_rate_frac": (0.8, 0.3)}, fixed)
    return {k: found[k] for k in ("scaleout_step_s", "scaleout_rate_frac")}


SOURCES = {
    "aiconfigurator": {
        "title": "AIConfigurator performance database, commit 095f58a51c4c",
        "url": "https://github.com/ai-dynamo/aiconfigurator",
        "retrieved": "2026-11",
    },
    "vidur": {
        "title": "Vidur, profiles of network operations",
        "url": "https://github.com/microsoft/vidur",
        "retrieved": "2026-11",
    },
}


def main() -> None:
    """Fit, report, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=HOME.parent / "shared/data")
    parser.add_argument("--dry-run", action="store_true", help="print the errors, write nothing")
    options = parser.parse_args()
    rows = read_rows(options.data)
    inside = [r.inside() for r in rows]
    book = Book(far=scaleout(rows))
    bases = vendor([r for r in inside if r.library == "nccl" and r.kind in RINGS], book)
    vendor([r for r in inside if r.library == "nccl" and r.kind in PAIRS], book)
    for library in ENGINES:
        mine = [r for r in inside if r.library == library and r.kind == "all_reduce"]
        engine([r for r in mine if r.device.name in (*bases, *SYSTEMS.values())], bases, book)
    one_to_one([r for r in inside if r.kind == "send_recv" and r.device.name in bases], book)
    print(
        "device         collective      library      median   mean    p90   bias  rows   "
        "left out: median mean p90 bias   2-const   roofline"
    )
    print("\n".join([*book.lines, *book.totals()]))
    if not options.dry_run:
        text = tomli_w.dumps({"sources": SOURCES, "calibration": book.entries})
        write_atomically(FOLDER / "collectives.toml", f"# made by: python tools/fit/collectives.py\n{text}")


if __name__ == "__main__":
    main()
