"""Fit what frameworks add to the kernels of a training step, from measured runs, and the error that remains.

    python tools/fit/training.py --data ../shared/data

Constants are a handful of each kind: of a device generation what its products in a format take, and its collectives
inside and between nodes, alone and beside work; a framework's own (a layer's launches, backward over forward, a
collective, a step; streams it does not fuse), and how well its attention does on a generation. They are fitted in
turns, each given the others, with a pull towards the middle of what was found, so that what the rows leave open stays
there. Rows are split by model and device count: 20 % fit, 20 % give the intervals (see training_widths.py), 60 % are
only scored. Memory has three constants a framework.
"""

import argparse
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import tomli_w
import training_widths
from scipy.optimize import least_squares
from training_runs import Floats, Run, Theta, memory_errors, read_runs, steps_of, time_errors

from orrery.base.files import write_atomically
from orrery.catalog.frameworks import ASSUMED, FITTED, OWN, lineage
from orrery.evidence.split import CALIBRATE, FIT, TEST

Known = dict[tuple[str, str, str], Theta]

Errors = Callable[["Sequence[Run]", Sequence[Theta]], Floats]

DEVICE = ("matrix_ratio",)
"""Of a generation and a format of products."""

LINKS = ("network_ratio", "scaleout_ratio", "contention_ratio")
"""Of a generation: what travels, and what that takes from kernels, does not depend on what these multiply in."""

FRAMEWORK = (
    "host_layer_s",
    "host_backward_ratio",
    "host_collective_s",
    "step_s",
    "elementwise_ratio",
    "host_expert_s",
)
"""Of a framework; how well its attention kernels do is of a framework and generation."""

HOST_STARTS: tuple[Theta, ...] = (
    {"host_layer_s": 5e-4, "host_backward_ratio": 2.5, "host_expert_s": 1.5e-3},
    {"host_layer_s": 1.5e-3, "host_backward_ratio": 2.0, "host_expert_s": 3e-3},
)
"""A host that is hidden behind the device leaves no slope to follow: fits begin where it is not, too."""

MEMORY = ("fragmentation_ratio", "fixed_bytes", "update_bytes")

START = ASSUMED | {
    "fixed_bytes": 1e8,
    "update_bytes": 0.5,
    "contention_ratio": 1.3,
    "attention_ratio": 1.3,
    "elementwise_ratio": 1.0,
    "matrix_ratio": 1.05,
}
LOW = {
    "matrix_ratio": 0.8,
    "attention_ratio": 0.5,
    "elementwise_ratio": 0.4,
    "network_ratio": 0.7,
    "scaleout_ratio": 0.7,
    "contention_ratio": 1.0,
    "host_layer_s": 1e-5,
    "host_backward_ratio": 0.7,
    "host_collective_s": 1e-6,
    "host_expert_s": 1e-5,
    "step_s": 1e-4,
    "fragmentation_ratio": 1.0,
    "fixed_bytes": 1e6,
    "update_bytes": 0.01,
}
HIGH = {
    "matrix_ratio": 1.8,
    "attention_ratio": 4.0,
    "elementwise_ratio": 5.0,
    "network_ratio": 4.0,
    "scaleout_ratio": 6.0,
    "contention_ratio": 3.0,
    "host_layer_s": 2e-3,
    "host_backward_ratio": 8.0,
    "host_collective_s": 1e-3,
    "host_expert_s": 2e-2,
    "step_s": 0.5,
    "fragmentation_ratio": 1.6,
    "fixed_bytes": 8e9,
    "update_bytes": 16.0,
}
PULL = (
    dict.fromkeys(LOW, 0.25)
    | dict.fromkeys(FRAMEWORK[:4], 1.0)
    | {
        "attention_ratio": 0.5,
        "host_layer_s": 0.5,
        "host_backward_ratio": 0.4,
        "step_s": 3.0,
        "fixed_bytes": 2.0,
        "update_bytes": 2.0,
    }
)
"""How far (in logarithms) a constant goes from the pooled value before the pull weighs as much as one row's error."""

TYPICAL = 0.1
"""Log error beyond which a row says more about its run than about the constants."""

MAX_PER_FILE = 60
"""Fit rows of one file that enter, taken evenly, so that no table outvotes the others."""

MIN_FIT, MIN_FIT_MEMORY = 4, 2
ATTENTION_FRAC = 0.08
"""A run that spends a smaller share of its step in attention says more of everything else than of attention."""

HOST_BOUND_FRAC = 0.05
"""A run that waits for its host for a larger share of its step says nothing of the device."""

ROUNDS = 2
MUCH_BETTER = 0.95
"""The second beginning is only believed where it is clearly better."""


def even(runs: Iterable[Run]) -> list[Run]:
    """At most MAX_PER_FILE of each file, evenly."""
    by: dict[str, list[Run]] = defaultdict(list)
    for r in runs:
        by[r.file].append(r)
    return [r for rows in by.values() for r in rows[:: max(1, -(-len(rows) // MAX_PER_FILE))]]


def fitted(
    runs: Sequence[Run],
    names: Sequence[str],
    start: Theta,
    rest: Sequence[Theta],
    errors: Errors,
    begin: Theta | None = None,
) -> Theta:
    """The values of ``names`` that explain the runs best, pulled to ``start``; ``rest`` are their other constants."""
    weight = np.array([1.0 / np.sqrt(sum(o.file == r.file for o in runs)) for r in runs])
    weight *= np.sqrt(len(runs) / np.sum(weight**2))
    first = np.array([np.log(start[n]) for n in names])

    def values(x: Floats) -> Theta:
        return {n: float(np.exp(v)) for n, v in zip(names, x, strict=True)}

    def residual(x: Floats) -> Floats:
        chosen = values(x)
        found = errors(runs, [t | chosen for t in rest])
        robust = TYPICAL * np.sign(found) * np.sqrt(np.log1p((found / TYPICAL) ** 2))
        pull = TYPICAL * (x - first) / np.array([PULL[n] for n in names])
        return np.append(weight * robust, pull)

    bounds = [np.log([b[n] for n in names]) for b in (LOW, HIGH)]
    here = np.array([np.log((begin or start)[n]) for n in names])
    inside = np.clip(here, bounds[0] + 1e-6, bounds[1] - 1e-6)
    found = least_squares(residual, inside, bounds=bounds, diff_step=0.02, max_nfev=10, xtol=1e-3, ftol=1e-3)
    return {n: float(f"{v:.4g}") for n, v in values(found.x).items()}


def fit(runs: Sequence[Run], begin: Known | None = None, shipped: Known | None = None) -> Known:
    """Constants by (framework, generation, precision); blanks pool. In turns: devices, frameworks, their attention.

    What ``begin`` already holds stays as it is: only what it lacks is fitted. Fits begin at the ``shipped`` constants,
    too, and take what explains the rows to fit better.
    """
    timed = even(r for r in runs if r.side == FIT and r.time_s > 0 and not is_guessed(r))
    stays, before = begin or {}, shipped or {}
    pooled: Theta = START | before.get(("", "", ""), {}) | stays.get(("", "", ""), {})
    devices = {(g, p): theta for (name, g, p), theta in stays.items() if not name and g and p}
    links = {g: theta for (name, g, p), theta in stays.items() if not name and g and not p}
    hosts = {name: theta for (name, g, _), theta in stays.items() if name and not g}
    cores = {(name, g): theta for (name, g, _), theta in stays.items() if name and g}

    def known(run: Run) -> Theta:
        name, generation, precision = run.key
        out = pooled | links.get(generation, {}) | devices.get((generation, precision), {}) | elders(name)
        for elder in lineage(name)[:0:-1]:
            out |= cores.get((elder, generation), {})
        return out | hosts.get(name, {}) | cores.get((name, generation), {})

    def elders(name: str) -> Theta:
        """What the frameworks that this one is like have found."""
        out: Theta = {}
        for elder in lineage(name)[:0:-1]:
            out |= {k: v for k, v in hosts.get(elder, {}).items() if k not in OWN}
        return out

    def shipped_at(key: tuple[str, str, str], first: Theta) -> list[Theta]:
        return [first | before[key]] if key in before else []

    for turn in range(1 if stays else ROUNDS):
        for name in sorted({r.key[0] for r in timed if (r.key[0], "", "") not in stays}):
            if len(mine := [r for r in timed if r.key[0] == name]) >= MIN_FIT:
                rest = [known(r) for r in mine]
                first = pooled if turn == 0 else pooled | hosts.get(name, {})
                anew = turn == ROUNDS - 1  # what was settled first may be a dead end once the devices are known
                starts = [first, *(first | other for other in HOST_STARTS)] if anew else [first]
                hosts[name] = best_of(mine, FRAMEWORK, pooled, rest, [*starts, *shipped_at((name, "", ""), first)])
        for key in sorted({r.key[:2] for r in timed if (*r.key[:2], "") not in stays}):
            mine = [r for r in timed if r.key[:2] == key and is_dense(r)]
            mine = [r for r in mine if attention_share(r, known(r)) > ATTENTION_FRAC]
            if len(mine) >= MIN_FIT:
                starts = [pooled, *shipped_at((*key, ""), pooled)]
                cores[key] = best_of(mine, ("attention_ratio",), pooled, [known(r) for r in mine], starts)
        for key in sorted({r.key[1:] for r in timed if ("", *r.key[1:]) not in stays}):
            mine = [r for r in timed if r.key[1:] == key and launch_share(r, known(r)) < HOST_BOUND_FRAC]
            if len(mine) >= MIN_FIT:
                first = pooled | devices.get(key, {})
                starts = [first, *shipped_at(("", *key), first)]
                devices[key] = best_of(mine, DEVICE, pooled, [known(r) for r in mine], starts)
        for key in sorted({r.key[1] for r in timed if ("", r.key[1], "") not in stays}):
            mine = [r for r in timed if r.key[1] == key and is_dense(r)]
            mine = [r for r in mine if launch_share(r, known(r)) < HOST_BOUND_FRAC]
            if len(mine) >= MIN_FIT:
                first = pooled | links.get(key, {})
                starts = [first, *shipped_at(("", key, ""), first)]
                links[key] = best_of(mine, LINKS, pooled, [known(r) for r in mine], starts)
        found = time_errors(timed, [known(r) for r in timed])
        print(f"turn {turn}: median {np.median(np.abs(found)):.4f}, mean {np.mean(np.abs(found)):.4f}", flush=True)
        every = ((DEVICE, devices), (LINKS, links), (FRAMEWORK, hosts), (("attention_ratio",), cores))
        for names, tables in every:
            if stays:
                break
            for name in (n for n in names if n not in OWN):  # the middle of what was found serves the unmeasured
                values = [t[name] for t in tables.values()]
                pooled[name] = float(f"{np.exp(np.median(np.log(values))):.4g}") if values else pooled[name]
    out: Known = {("", "", ""): pooled}
    out |= {("", generation, ""): theta for generation, theta in links.items()}
    out |= {("", *key): theta for key, theta in devices.items()}
    out |= {(name, "", ""): theta for name, theta in hosts.items()}
    out |= {(name, generation, ""): theta for (name, generation), theta in cores.items()}
    return out


def best_of(
    runs: Sequence[Run], names: Sequence[str], start: Theta, rest: Sequence[Theta], begins: Sequence[Theta]
) -> Theta:
    """The fit that explains its rows best, of those that begin at each of ``begins``."""
    tries = [fitted(runs, names, start, rest, time_errors, begin=begin) for begin in begins]
    return min(tries, key=lambda theta: cost(runs, rest, theta, time_errors))


GUESSED = ("tp:", "pp:", "vp:", "precision:", "sharding and recompute:")
"""Defaults of rows that leave open how the model was cut, what was computed again, or in which format."""


def is_guessed(run: Run) -> bool:
    """Whether the row took one of those: it says little of constants."""
    return any(note.startswith(GUESSED) for note in run.member.row.assumed)


def is_dense(run: Run) -> bool:
    """Without routed experts: what those leave unexplained is not attention's, nor the links'."""
    return not any(b.experts for b in run.member.job.model.blocks)


def attention_share(run: Run, theta: Theta) -> float:
    """The share of the step that takes part in attention: what the step loses when attention costs nothing."""
    whole, without = (float(steps_of(run, t).time_s[0]) for t in (theta, theta | {"attention_ratio": 1e-9}))
    return 1.0 - without / whole


def launch_share(run: Run, theta: Theta) -> float:
    """The share of the step in which the device waits for launches."""
    steps = steps_of(run, theta)
    return float(steps.parts["launches"][0] / steps.time_s[0])


def cost(runs: Sequence[Run], rest: Sequence[Theta], theta: Theta, errors: Errors) -> float:
    """What a fit makes as small as it can, without the pull."""
    found = errors(runs, [t | theta for t in rest])
    return float(np.mean(np.log1p((found / TYPICAL) ** 2)))


def fit_memory(runs: Sequence[Run], known: Known) -> None:
    """What allocators lose, pooled and by framework; written into ``known``."""
    held = even(r for r in runs if r.side == FIT and r.memory_bytes > 0)
    pooled = known[("", "", "")]
    pooled |= {k: v for k, v in _memory(held, pooled).items() if k != "update_bytes"}
    for name in sorted({r.key[0] for r in held}):
        mine = [r for r in held if r.key[0] == name]
        if len(mine) >= MIN_FIT_MEMORY:
            known.setdefault((name, "", ""), {}).update(_memory(mine, pooled))


def _memory(runs: Sequence[Run], pooled: Theta) -> Theta:
    """The best of two beginnings: what an update makes shows only where it is more than the activations."""
    rest = [pooled] * len(runs)
    tries = [fitted(runs, MEMORY, pooled, rest, memory_errors, begin=pooled | {"update_bytes": b}) for b in (0.5, 8.0)]
    one, other = (cost(runs, rest, theta, memory_errors) for theta in tries)
    return tries[1] if other < MUCH_BETTER * one else tries[0]


def theta_of(run: Run, known: Known) -> Theta:
    """The constants that the catalogue will give this run."""
    name, generation, precision = run.key
    out: Theta = {}
    for word in ("", *lineage(name)[::-1]):
        for key in ((word, "", ""), (word, generation, ""), (word, generation, precision)):
            out |= {k: v for k, v in known.get(key, {}).items() if k not in OWN or word in ("", name)}
    return out


def spreads(runs: Sequence[Run], known: Known) -> dict[tuple[str, str, str], dict[str, dict[str, float]]]:
    """Intervals of every entry, by kind of work and metric."""
    out: dict[tuple[str, str, str], dict[str, dict[str, float]]] = defaultdict(dict)
    for metric, errors in (("step_time_s", time_errors), ("peak_memory_bytes", memory_errors)):
        stated = [r for r in runs if (r.time_s if metric == "step_time_s" else r.memory_bytes) > 0]

        def error(rows: Sequence[Run], theirs: Known, errors: Errors = errors) -> Floats:
            return errors(rows, [theta_of(r, theirs) for r in rows])

        for key, kinds in training_widths.spreads(stated, known, error).items():
            out[key] |= {f"{kind}.{metric}": found for kind, found in kinds.items()}
        for (name, kind), (rows, share) in training_widths.coverage(stated, known, error).items():
            print(f"{metric}, {kind} with {name} left out: {100 * share:3.0f} % of {rows} rows inside 80 %")
    return out


def report(runs: Sequence[Run], known: Known, side: str) -> None:
    """Errors of one side by file and metric."""
    for metric, errors in (("time", time_errors), ("memory", memory_errors)):
        ok = [r for r in runs if r.side == side and (r.time_s if metric == "time" else r.memory_bytes) > 0]
        error = np.exp(-errors(ok, [theta_of(r, known) for r in ok])) - 1.0
        for file in ("", *sorted({r.file for r in ok})):
            e = error[[not file or r.file == file for r in ok]]
            size = np.abs(e)
            print(
                f"{side:9} {metric:6} {file or 'all':36} {e.size:4} rows  median {np.median(size):6.3f}  "
                f"mean {size.mean():6.3f}  p90 {np.quantile(size, 0.9):6.3f}  bias {np.median(e):+.3f}"
            )


def document(runs: Sequence[Run], known: Known) -> str:
    """The fact file."""
    found = spreads(runs, known)
    entries = []
    for key in sorted({*known, *found}, key=lambda k: (bool(k[0]), bool(k[1]), bool(k[2]), k)):
        mine = [r for r in runs if all(k in ("", w) for k, w in zip(key, r.key, strict=True))]
        counts = {s: sum(r.side == s for r in mine) for s in (FIT, CALIBRATE)}
        entry = {
            "name": key[0],
            "generation": key[1],
            "precision": key[2],
            "source": "runs",
            "at": f"{counts[FIT]} rows to fit, {counts[CALIBRATE]} for the intervals",
        }
        if known.get(key):
            entry["constants"] = known[key]
        if found.get(key):
            entry["spread"] = found[key]
        entries.append(entry)
    head = "# Fitted by tools/fit/training.py from published training runs; do not edit.\n"
    sources = {"runs": {"title": "Published training runs, by table in docs/scorecard.md", "retrieved": "2026-11"}}
    return head + tomli_w.dumps({"sources": sources, "framework": entries})


def read_known(path: Path) -> Known:
    """The constants of a fact file."""
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["framework"]
    return {(e["name"], e["generation"], e["precision"]): dict(e.get("constants", {})) for e in entries}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=FITTED)
    parser.add_argument("--again", action="store_true", help="begin at the constants that are there, too")
    parser.add_argument("--keep", action="store_true", help="keep the constants that are there, find what they lack")
    parser.add_argument("--widths", action="store_true", help="keep the constants, find the intervals again")
    parser.add_argument("--dry", action="store_true", help="print, write nothing")
    arguments = parser.parse_args()
    runs = read_runs(arguments.data)
    print(len(runs), "rows", {s: sum(r.side == s for r in runs) for s in (FIT, CALIBRATE, TEST)}, flush=True)
    if arguments.widths:
        known = read_known(arguments.out)
    else:
        before = read_known(arguments.out)
        known = fit(runs, begin=before if arguments.keep else None, shipped=before if arguments.again else None)
        if not arguments.keep:
            fit_memory(runs, known)
    for key, theta in known.items():
        print(key, {k: v for k, v in theta.items() if k in ASSUMED})
    for side in (FIT, CALIBRATE):
        report(runs, known, side)
    if not arguments.dry:
        write_atomically(arguments.out, document(runs, known))


if __name__ == "__main__":
    main()
