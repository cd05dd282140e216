"""Fit the constants of an attention rule to measured rows, pool them, and say how far they carry.

Shared by ``attention.py`` and ``latent.py``. Constants are fitted in log space with a soft L1 loss on log(predicted /
measured), on the fit side only; how the kernel is built (tile, packing) is the build of least cost on the same rows.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import tomli_w
from intervals import sibling_factor, spread_of, widened
from numpy.typing import NDArray
from residual import Size, save, train
from scipy.optimize import least_squares

from orrery.base.files import write_atomically
from orrery.base.sources import read_toml
from orrery.catalog.calibrations import FOLDER
from orrery.catalog.devices import get_device
from orrery.catalog.residuals import FOLDER as RESIDUALS
from orrery.evidence.split import CALIBRATE, FIT, TEST, sides
from orrery.evidence.tables import Table
from orrery.hardware.calibration import ResidualTrees
from orrery.hardware.device import Device
from orrery.kernels.residual import correction

Floats = NDArray[np.float64]
SOURCE = {
    "title": "AIConfigurator performance database, commit 095f58a51c4c",
    "url": "https://github.com/ai-dynamo/aiconfigurator",
    "retrieved": "2026-11",
}
OWN_ROWS = 300  # rows of a device that tell its own constants: more say no more of a dozen of them
POOL_ROWS = 160  # rows a device brings into a pooled fit, so that every device weighs the same
FOREST = (Size(max_leaf_nodes=12, max_depth=5, min_samples_leaf=8, learning_rate=0.15, max_trees=60),)
FEW_ROWS = 100  # fewer rows to calibrate on are of one shape; then all devices' rows say how wide the interval is
LOSS_SCALE = 0.05  # errors above 5 % count linearly: kernel switches are not to bend the constants
PRIOR_WEIGHT = 0.02  # keeps a constant that no row speaks of at its start


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What is fitted: names, start and limits of the constants, the builds tried, and the columns the kernel takes."""

    op: str
    constants: Mapping[str, tuple[float, float, float]]  # name: start, low, high
    builds: Sequence[Mapping[str, float]]
    columns: Sequence[str]
    machine: Callable[[Device, str, str], Floats]
    vector: Callable[[Mapping[str, float]], Floats]
    rows: Callable[[list[NDArray[np.int64]], Floats, Floats], Floats]  # the kernel's six rows
    features: Callable[[list[NDArray[np.int64]], Floats, Floats], Floats] | None = None  # for a learned correction
    feature_names: Sequence[str] = ()
    restarts: Sequence[Mapping[str, float]] = ()  # further starts, where the cost has more than one valley
    shape: Sequence[str] = ()  # columns that say which rows are of one layer shape


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Group:
    """The rows of one device, format and engine."""

    device: Device
    format: str
    engine: str
    columns: list[NDArray[np.int64]]
    machine: Floats
    time_s: Floats
    side: NDArray[np.str_]

    def on(self, side: str, limit: int = 0) -> "Group":
        """The rows of one side; with ``limit``, evenly thinned to that many."""
        index = np.flatnonzero(self.side == side)
        if limit and index.size > limit:
            index = index[np.linspace(0, index.size - 1, limit).astype(np.int64)]
        return self.at(index)

    def at(self, index: NDArray[np.int64] | NDArray[np.bool_]) -> "Group":
        """The rows of these places."""
        return replace(self, columns=[c[index] for c in self.columns], time_s=self.time_s[index], side=self.side[index])

    def predicted(self, rule: Rule, constants: Mapping[str, float]) -> Floats:
        """Times by the rule."""
        return rule.rows(self.columns, self.machine, rule.vector(constants))[0]


def read_groups(tables: Sequence[Table], rule: Rule) -> tuple[list[Group], int]:
    """The groups of all tables' rows of this op, and how many rows beat a physical bound and were left out."""
    groups: dict[tuple[str, str, str], Group] = {}
    for table in tables:
        for group in _groups(table.take(table.words("op") == rule.op), rule):
            key = (group.device.name, group.format, group.engine)
            groups[key] = joined(groups[key], group) if key in groups else group
    retained = {key: group.at(is_possible(rule, group)) for key, group in groups.items()}
    screened = sum(len(groups[key].time_s) - len(retained[key].time_s) for key in groups)
    return list(retained.values()), screened


def joined(one: Group, other: Group) -> Group:
    """The rows of one group from two tables."""
    columns = [np.concatenate(both) for both in zip(one.columns, other.columns, strict=True)]
    time_s, side = (np.concatenate([getattr(one, name), getattr(other, name)]) for name in ("time_s", "side"))
    return replace(one, columns=columns, time_s=time_s, side=side)


def _groups(table: Table, rule: Rule) -> Iterator[Group]:
    side = sides(table, rule.op)
    keys = [table.words(c) for c in ("device", "format", "kv_format", "engine")]
    columns = [np.nan_to_num(table.numbers(c)).astype(np.int64) for c in rule.columns]
    time_s = table.numbers("time_s")
    for key in sorted(set(zip(*(k.tolist() for k in keys), strict=True))):
        rows = np.flatnonzero(np.logical_and.reduce([k == w for k, w in zip(keys, key, strict=True)]))
        device = get_device(key[0])
        machine = rule.machine(device, key[1], key[2] or key[1])
        yield Group(
            device=device,
            format=f"{key[1]}+{key[2]}" if key[2] else key[1],
            engine=key[3],
            columns=[c[rows] for c in columns],
            machine=machine,
            time_s=time_s[rows],
            side=side[rows],
        )


def is_possible(rule: Rule, group: Group) -> NDArray[np.bool_]:
    """Rows that no datasheet bound forbids; bytes that fit in the last-level cache need not come from memory."""
    start = {name: limits[0] for name, limits in rule.constants.items()} | rule.builds[0]
    roofs = rule.rows(group.columns, group.machine, rule.vector(start))
    is_cached = roofs[5] < group.device.last_level_cache_bytes
    return (group.time_s >= roofs[1]) & (is_cached | (group.time_s >= roofs[2]))


def fit(rule: Rule, groups: Sequence[Group], builds: Sequence[Mapping[str, float]] = ()) -> dict[str, float]:
    """The constants that suit these rows best, over all builds and starts."""
    low, high = (np.log([limits[i] for limits in rule.constants.values()]) for i in (1, 2))
    usual = {name: limits[0] for name, limits in rule.constants.items()}
    starts = [np.log(list((usual | dict(other)).values())) for other in ({}, *rule.restarts)]
    best: tuple[float, dict[str, float]] | None = None
    for build, start in product(builds or rule.builds, starts):

        def residuals(logs: Floats, build: Mapping[str, float] = build, start: Floats = starts[0]) -> Floats:
            vector = rule.vector(dict(zip(rule.constants, np.exp(logs), strict=True)) | build)
            parts = [np.log(rule.rows(g.columns, g.machine, vector)[0] / g.time_s) for g in groups]
            return np.concatenate([*parts, PRIOR_WEIGHT * (logs - start)])

        found = least_squares(residuals, start, bounds=(low, high), loss="soft_l1", f_scale=LOSS_SCALE, max_nfev=60)
        if best is None or found.cost < best[0]:
            values = {n: float(f"{v:.4g}") for n, v in zip(rule.constants, np.exp(found.x), strict=True)}
            best = (float(found.cost), values | dict(build))
    assert best is not None
    return best[1]


def ratios(rule: Rule, group: Group, constants: Mapping[str, float], side: str) -> Floats:
    """measured / predicted on one side."""
    rows = group.on(side)
    return rows.time_s / rows.predicted(rule, constants)


def error_line(label: str, values: Floats) -> str:
    """Median, mean, 90th percentile of |predicted / measured - 1|, and the median bias."""
    relative = 1 / values
    errors = np.abs(relative - 1)
    return (
        f"{label:46s} {np.median(errors):6.1%} {errors.mean():6.1%} {np.quantile(errors, 0.9):6.1%} "
        f"{np.median(relative) - 1:+6.1%} {values.size:6d}"
    )


def entry(
    rule: Rule,
    owner: Mapping[str, str],
    groups: Sequence[Group],
    constants: Mapping[str, float],
    spread: Mapping[str, float],
    at: str,
) -> dict[str, object]:
    """One [[calibration]] table."""
    lows = [int(min(g.columns[i].min() for g in groups)) for i in range(len(rule.columns))]
    highs = [int(max(g.columns[i].max() for g in groups)) for i in range(len(rule.columns))]
    limits = {n: [low, high] for n, low, high in zip(rule.columns, lows, highs, strict=True) if high > 0}
    return {
        **owner,
        "op": rule.op,
        "format": groups[0].format,
        "engine": groups[0].engine,
        "from": "aiconfigurator",
        "at": at,
        "constants": dict(constants),
        "spread": dict(spread),
        "range": limits,
    }


def forests(rule: Rule, groups: Sequence[Group], own: Sequence[Mapping[str, float]]) -> dict[str, ResidualTrees]:
    """Learned corrections by "device|format|engine", trained on the fit side of all devices of a generation."""
    found: dict[str, ResidualTrees] = {}
    if rule.features is None:
        return found
    families: dict[tuple[str, str, str], list[int]] = {}
    for i, group in enumerate(groups):
        families.setdefault((group.device.generation, group.format, group.engine), []).append(i)
    for family, members in families.items():
        parts = [groups[i].on(FIT) for i in members]
        vectors = [rule.vector(own[i]) for i in members]
        x = np.concatenate([rule.features(g.columns, g.machine, v) for g, v in zip(parts, vectors, strict=True)])
        y = np.concatenate([np.log(g.time_s / g.predicted(rule, own[i])) for g, i in zip(parts, members, strict=True)])
        trees, report = train(x, rule.feature_names, y, np.concatenate([shapes(rule, g) for g in parts]), sizes=FOREST)
        print(
            f"{' '.join(family):46s} trees {report.num_trees:3d}, mean |log error| of unseen shapes "
            f"{report.without:.3f} -> {report.with_trees:.3f}{'' if trees else ', not used'}",
            flush=True,
        )
        if trees is not None:
            found |= {f"{groups[i].device.name}|{groups[i].format}|{groups[i].engine}": trees for i in members}
    return found


def shapes(rule: Rule, group: Group) -> NDArray[np.str_]:
    """A word a layer shape, the same on every device."""
    columns = [group.columns[list(rule.columns).index(name)] for name in rule.shape]
    return np.array(["|".join(map(str, sizes)) for sizes in zip(*columns, strict=True)])


def corrected(rule: Rule, group: Group, constants: Mapping[str, float], trees: ResidualTrees | None) -> Floats:
    """Times by the rule and, where there are trees, their correction."""
    time_s = group.predicted(rule, constants)
    if trees is None or rule.features is None:
        return time_s
    return time_s * correction(rule.features(group.columns, group.machine, rule.vector(constants)), trees)


def stored(rule: Rule) -> list[dict[str, Any]]:
    """The entries as they stand, for a run that trains trees alone."""
    return list(read_toml(FOLDER / f"{rule.op}.toml")["calibration"])


def own_entries(
    rule: Rule, groups: Sequence[Group], known: Sequence[Mapping[str, Any]] = ()
) -> tuple[list[dict[str, object]], list[dict[str, float]]]:
    """One entry a measured device, format and engine; their constants beside them, fitted unless ``known``."""
    entries: list[dict[str, object]] = []
    own = {(e["device"], e["format"], e["engine"]): dict(e["constants"]) for e in known if "device" in e}
    constants = [own.get((g.device.name, g.format, g.engine)) or fit(rule, [g.on(FIT, OWN_ROWS)]) for g in groups]
    learned = forests(rule, groups, constants)
    if learned:
        save(RESIDUALS / f"{rule.op}.npz", learned)
    for group, found in zip(groups, constants, strict=True):
        trees = learned.get(f"{group.device.name}|{group.format}|{group.engine}")
        calibrated, tested = group.on(CALIBRATE), group.on(TEST)
        count = {side: int((group.side == side).sum()) for side in (FIT, CALIBRATE, TEST)}
        at = (
            f"{rule.op} table, {group.engine}: {count[FIT]} rows fitted, {count[CALIBRATE]} for the interval, "
            f"{count[TEST]} tested"
        )
        off = calibrated.time_s / corrected(rule, calibrated, found, trees)
        if off.size < FEW_ROWS:
            off = np.concatenate([ratios(rule, g, c, CALIBRATE) for g, c in zip(groups, constants, strict=True)])
        spread = spread_of(off)
        entries.append(entry(rule, {"device": group.device.name}, [group], found, spread, at))
        label = " ".join((group.device.name, group.format, group.engine))
        print(error_line(label, ratios(rule, group, found, TEST)), flush=True)
        if trees is not None:
            print(error_line("  with trees", tested.time_s / corrected(rule, tested, found, trees)), flush=True)
    return entries, constants


def pooled_entries(rule: Rule, groups: Sequence[Group], own: Sequence[Mapping[str, float]]) -> list[dict[str, object]]:
    """Entries a generation and for anybody, each with the error of devices (generations) left out."""
    entries: list[dict[str, object]] = []
    pairs: list[tuple[Floats, Floats]] = []
    single: list[tuple[Group, Mapping[str, float]]] = []
    for kind in sorted({(g.format, g.engine) for g in groups}):
        alike = [(g, c) for g, c in zip(groups, own, strict=True) if (g.format, g.engine) == kind]
        for generation in sorted({g.device.generation for g, _ in alike}):
            members = [(g, c) for g, c in alike if g.device.generation == generation]
            if len(members) == 1:
                single.append(members[0])
                continue
            left_out = _left_out(rule, members, lambda g: g.device.name)
            inside = [ratios(rule, g, c, CALIBRATE) for g, c in members]
            pairs += zip(inside, left_out, strict=True)
            entries.append(_pooled(rule, {"generation": generation}, members, left_out, "devices"))
        if len({g.device.generation for g, _ in alike}) > 1:
            left_out = _left_out(rule, alike, lambda g: g.device.generation)
            entries.append(_pooled(rule, {"generation": ""}, alike, left_out, "generations"))
    factor = sibling_factor(pairs)
    for group, constants in single:
        spread = widened(spread_of(ratios(rule, group, constants, CALIBRATE)), factor)
        at = f"{rule.op} table, {group.device.name} alone; interval {factor:.2f} times its own, as between siblings"
        owner = {"generation": group.device.generation}
        entries.append(entry(rule, owner, [group], constants, spread, at))
    return entries


def _left_out(
    rule: Rule, members: Sequence[tuple[Group, Mapping[str, float]]], family: Callable[[Group], str]
) -> list[Floats]:
    """measured / predicted of every member, by constants fitted on the other families."""
    out: list[Floats] = []
    known: dict[str, dict[str, float]] = {}
    for group, _ in members:
        if (name := family(group)) not in known:
            others = [(g, c) for g, c in members if family(g) != name]
            known[name] = pool(rule, others)
        out.append(ratios(rule, group, known[name], CALIBRATE))
    return out


def pool(rule: Rule, members: Sequence[tuple[Group, Mapping[str, float]]]) -> dict[str, float]:
    """One set of constants for several devices, tried with the builds that the devices chose themselves."""
    names = list(rule.builds[0])
    builds = [dict(zip(names, b, strict=True)) for b in sorted({tuple(c[n] for n in names) for _, c in members})]
    return fit(rule, [g.on(FIT, POOL_ROWS) for g, _ in members], builds)


def _pooled(
    rule: Rule,
    owner: Mapping[str, str],
    members: Sequence[tuple[Group, Mapping[str, float]]],
    left_out: Sequence[Floats],
    what: str,
) -> dict[str, object]:
    constants = pool(rule, members)
    groups = [g for g, _ in members]
    names = ", ".join(g.device.name for g in groups)
    values = np.concatenate(left_out)
    label = f"{owner['generation'] or 'anybody'} {groups[0].format} {groups[0].engine} left out"
    print(error_line(label, values), flush=True)
    at = f"{rule.op} table, {groups[0].engine}: {names} together; interval from {what} left out of the fit"
    return entry(rule, owner, groups, constants, spread_of(values), at)


def write(rule: Rule, tool: str, entries: list[dict[str, object]]) -> None:
    """``facts/calibrations/<op>.toml``."""
    body = tomli_w.dumps({"sources": {"aiconfigurator": SOURCE}, "calibration": entries})
    write_atomically(FOLDER / f"{rule.op}.toml", f"# made by: python tools/fit/{tool}\n{body}")
