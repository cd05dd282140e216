"""Least squares over the whole tree of engines at once, and again without some rows.

Predictions answer smoothly to the logarithms of the constants: each round takes their slopes at every row, solves

    sum over values of  weight x TYPICAL^2 log(1 + (error / TYPICAL)^2)
    + sum over nodes of  (log / sd)^2 x TYPICAL^2

for all nodes together, and goes there if that is better, no further than slopes hold. The slopes of the last round also
say what the constants would be without a campaign: the same sum without its rows.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from engine_rows import Measured, predicted_values
from engine_tree import (
    CONSTANTS,
    FREE_UNIT,
    LAUNCHES,
    UNIT,
    UNITS,
    Floats,
    Key,
    Tree,
    has_ratio,
    logs_at,
    nodes_of,
    path_of,
    pooled,
    pull_sd,
    row_constants,
    row_path,
    with_launch,
    with_unit,
)

TYPICAL = 0.2
"""Log error around which a value begins to count less the farther off it is (Cauchy's law): some runs went wrong, and
one that takes ten times as long as another of the same service says nothing of the host."""

STEP = 0.25
"""Of a logarithm, for slopes: far enough that a run's discrete steps do not hide them."""

FARTHEST = 0.8
"""Of a logarithm, in one round: slopes do not hold for ever."""

ROUNDS, AGAIN, SETTLED = 14, 2, 0.01
"""Most rounds; the one before which slopes are taken afresh; the gain below which it is done."""

MAX_FRESH = 3
"""How often slopes are taken afresh because a round led nowhere: launches bind or do not, so they turn corners."""

SOLVES = 25
"""Rounds of weights in one solution: they settle."""

FIRST_TOKEN_WEIGHT = 0.5
"""Queues decide most of the first token's time and the constants here little of it; so it counts less."""

EXPERTS_WEIGHT = 0.3
"""How traffic spreads over experts is not known of a run, and must not pass for the host's work."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Slopes:
    """Errors of every measured value at some constants, and how they answer to each constant's logarithm."""

    row: np.ndarray  # which row a value belongs to
    metric: tuple[str, ...]
    error: Floats  # log(measured / predicted)
    slope: Floats  # of log(predicted), values x constants
    weight: Floats
    logs: Tree  # where these were taken


def weights_of(rows: Sequence[Measured], sizes: Mapping[str, int]) -> Floats:
    """How much each row counts. Rows of a campaign err alike: together they count as the root of how many it has."""
    count = Counter(r.campaign for r in rows)
    mixed = [any(b.experts for b in r.deployment.model.blocks) for r in rows]
    each = [EXPERTS_WEIGHT if m else 1.0 for m in mixed]
    return np.array([w * np.sqrt(sizes[r.campaign]) / count[r.campaign] for r, w in zip(rows, each, strict=True)])


def errors_at(rows: Sequence[Measured], tree: Tree, shift: Mapping[str, float] | None = None) -> list[dict[str, float]]:
    """log(measured / predicted) by metric of every row, with its constants times what ``shift`` says."""
    out: list[dict[str, float]] = []
    for row in rows:
        constants = row_constants(tree, row)
        constants |= {name: constants[name] * factor for name, factor in (shift or {}).items()}
        found = predicted_values(row, constants)
        out.append({m: float(np.log(row.values[m] / v)) for m, v in found.items() if v > 0})
    return out


def slopes_at(rows: Sequence[Measured], tree: Tree, sizes: Mapping[str, int]) -> Slopes:
    """One prediction of every row for each constant, and one as it is."""
    here, weight = errors_at(rows, tree), weights_of(rows, sizes)
    index = [(i, m) for i, found in enumerate(here) for m in sorted(found)]
    slope = np.zeros((len(index), len(CONSTANTS)))
    place = {key: n for n, key in enumerate(index)}
    scaled = [i for i, r in enumerate(rows) if has_ratio(r)]
    for c, name in enumerate(CONSTANTS):
        if name == UNIT:
            continue  # it stays where the fit begins
        requested = scaled if name == "memory_ratio" else range(len(rows))
        if name == "handover_s":
            requested = [i for i, r in enumerate(rows) if len(r.service.pools) > 1]
        there = errors_at([rows[i] for i in requested], tree, {name: float(np.exp(STEP))})
        for i, found in zip(requested, there, strict=True):
            for metric, error in found.items():
                if (i, metric) in place:
                    slope[place[i, metric], c] = (here[i][metric] - error) / STEP
    return Slopes(
        row=np.array([i for i, _ in index]),
        metric=tuple(m for _, m in index),
        slope=slope,
        logs=tree,
        error=np.array([here[i][m] for i, m in index]),
        weight=np.array(
            [weight[i] * (FIRST_TOKEN_WEIGHT if m == "ttft_s" else 1.0) / np.sqrt(len(here[i])) for i, m in index]
        ),
    )


def solve(rows: Sequence[Measured], slopes: Slopes, retained: np.ndarray) -> Tree:
    """The nodes' logarithms that fit the kept rows best, as far as the slopes hold."""
    nodes = nodes_of([r for r, k in zip(rows, retained, strict=True) if k])
    column = {key: n * len(CONSTANTS) for n, key in enumerate(nodes)}
    mine = retained[slopes.row]
    size = len(nodes) * len(CONSTANTS)
    design = np.zeros((int(mine.sum()), size))
    for n, (row, slope) in enumerate(zip(slopes.row[mine], slopes.slope[mine], strict=True)):
        for key in row_path(rows[row]):
            if key in column:
                design[n, column[key] : column[key] + len(CONSTANTS)] = slope
    start = np.concatenate([slopes.logs.get(key, np.zeros(len(CONSTANTS))) for key in nodes])
    lost = [k for k in slopes.logs if k not in column]  # nodes of too few rows now: what they said is said no more
    text = np.array(
        [
            sum((slope @ slopes.logs[key] for key in row_path(rows[row]) if key in lost), 0.0)
            for row, slope in zip(slopes.row[mine], slopes.slope[mine], strict=True)
        ]
    )
    target = slopes.error[mine] + design @ start + text  # what is left when every node says nothing
    pull = (TYPICAL / np.concatenate([pull_sd(key) for key in nodes])) ** 2
    found = start
    for _ in range(SOLVES):
        left = target - design @ found
        weight = slopes.weight[mine] / (1.0 + (left / TYPICAL) ** 2)
        found = np.linalg.solve((design.T * weight) @ design + np.diag(pull), (design.T * weight) @ target)
    held = [c + CONSTANTS.index(UNIT) for c in column.values()]
    found[held] = start[held]
    return {key: found[c : c + len(CONSTANTS)] for key, c in column.items()}


def cost(slopes: Slopes, error: Floats, tree: Tree) -> float:
    """What is made as small as it can be."""
    return float(losses(slopes, error).sum()) + sum(pulled(key, logs) for key, logs in tree.items())


def losses(slopes: Slopes, error: Floats) -> Floats:
    """What every value's error counts."""
    return slopes.weight * TYPICAL**2 * np.log1p((error / TYPICAL) ** 2)


def pulled(key: Key, logs: Floats) -> float:
    """What a node's distance from its parent counts."""
    return float(((TYPICAL * logs / pull_sd(key)) ** 2).sum())


def fit(
    rows: Sequence[Measured], sizes: Mapping[str, int], start: Tree | None = None, rounds: int = ROUNDS
) -> tuple[Tree, Slopes]:
    """The tree that explains the rows best, and the slopes there; ``sizes``: rows that each campaign has; ``start``: a
    tree of an earlier fit to go on from."""
    known = start or {}
    best: Tree = {key: known.get(key, np.zeros(len(CONSTANTS))) for key in nodes_of(rows)}
    slopes = slopes_at(rows, best, sizes)
    if rounds and (tried := best_launches(rows, slopes, best)) is not best:
        best = tried
        slopes = slopes_at(rows, best, sizes)
    least, farthest, fresh, is_fresh = cost(slopes, slopes.error, best), FARTHEST, 0, True
    for number in range(rounds):
        if number == AGAIN and not is_fresh:
            slopes, is_fresh = slopes_at(rows, best, sizes), True
        goal = solve(rows, slopes, np.ones(len(rows), dtype=bool))
        tried = {k: np.clip(v, _at(best, k) - farthest, _at(best, k) + farthest) for k, v in goal.items()}
        moved = slopes_after(rows, slopes, tried)
        found = cost(moved, moved.error, tried)
        print(f"round {number + 1}: {least:.3f} -> {found:.3f}, steps of at most {farthest:.2f}", flush=True)
        if found < least:
            slopes, best, gained, least, is_fresh = moved, tried, least - found, found, False
            if gained < SETTLED * least and number > AGAIN:
                if fresh == MAX_FRESH:
                    break
                slopes, fresh, is_fresh = slopes_at(rows, best, sizes), fresh + 1, True
        elif (parts := by_engine(rows, slopes, tried, best)) is not None:
            slopes, best, is_fresh = *parts, False
            least = cost(slopes, slopes.error, best)
            print(f"    engine by engine: {least:.3f}", flush=True)
        elif is_fresh or fresh == MAX_FRESH:  # what was learned of the slopes stays; the place does not
            slopes, is_fresh = replace(moved, error=slopes.error, logs=slopes.logs), False
            farthest /= 2
        else:
            slopes, fresh, is_fresh = slopes_at(rows, best, sizes), fresh + 1, True
    return pooled(best), slopes


def best_launches(rows: Sequence[Measured], slopes: Slopes, tree: Tree) -> Tree:
    """The tree with the launches of ``LAUNCHES`` that serve each engine's rows best, and then each era's, everything
    else as it is."""
    for is_era in (False, True):
        nodes = [key for key in tree if key[0] and not key[2] and bool(key[1]) == is_era]
        costs: dict[float, dict[Key, float]] = {}
        for factor in LAUNCHES:
            tried = with_launch(tree, dict.fromkeys(nodes, factor))
            found = errors_at(rows, tried)
            error = [found[i].get(m, e) for i, m, e in zip(slopes.row, slopes.metric, slopes.error, strict=True)]
            costs[factor] = costs_by_node(rows, slopes, np.array(error), tried, nodes)
        chosen = {key: min(LAUNCHES, key=lambda f: costs[f][key]) for key in nodes}
        said = ", ".join(f"{' '.join(key).strip()} {factor:g}" for key, factor in sorted(chosen.items()))
        print(f"launches begin at, times as long: {said}", flush=True)
        if any(factor != 1.0 for factor in chosen.values()):
            tree = with_launch(tree, chosen)
    return tree


def fit_unit(
    rows: Sequence[Measured], sizes: Mapping[str, int], engine: str, rounds: int = ROUNDS
) -> tuple[Tree, Slopes]:
    """The best of fits with each of ``UNITS`` for one engine's kernels, and then for those of each of its eras."""
    nodes = nodes_of(rows)
    known: Tree = {key: np.zeros(len(CONSTANTS)) for key in nodes}
    found: list[tuple[float, Tree, Slopes]] = []
    for key in [(engine, "", ""), *(k for k in nodes if k[0] == engine and k[1] and not k[2])]:
        for unit in UNITS if not key[1] else (*UNITS[1:], FREE_UNIT):
            tree, slopes = fit(rows, sizes, with_unit(known, key, unit), rounds)
            found.append((cost(slopes, slopes.error, tree), tree, slopes))
            print(f"a unit of {key} reads {unit:.3g} bytes/s: {found[-1][0]:.3f}", flush=True)
        known = min(found, key=lambda f: f[0])[1]
    _, tree, slopes = min(found, key=lambda f: f[0])
    return tree, slopes


def by_engine(rows: Sequence[Measured], slopes: Slopes, tried: Tree, best: Tree) -> tuple[Slopes, Tree] | None:
    """The nodes of those engines whose own rows are served better by them, with those of any engine where they were;
    None if no engine's are. Given these, engines say nothing of one another: one that turns a corner stops no other."""
    alone = {k: v if k[0] else best[k] for k, v in tried.items()}
    moved = slopes_after(rows, slopes, alone)
    before, after = (costs_by_engine(rows, slopes, e, t) for e, t in ((slopes.error, best), (moved.error, alone)))
    better = {name for name in before if after[name] < before[name]}
    if not better:
        return None
    mine = np.array([engine_of(rows[i]) in better for i in slopes.row])
    chosen = {k: alone[k] if k[0] in better else best[k] for k in best}
    error = np.where(mine, moved.error, slopes.error)
    slope = np.where(mine[:, None], moved.slope, slopes.slope)
    return replace(slopes, error=error, slope=slope, logs=chosen), chosen


def costs_by_engine(rows: Sequence[Measured], slopes: Slopes, error: Floats, tree: Tree) -> dict[str, float]:
    """The part of what is made small that each engine's rows and nodes stand for."""
    engines = sorted({engine_of(row) for row in rows})
    found = costs_by_node(rows, slopes, error, tree, [(name, "", "") for name in engines])
    return {key[0]: value for key, value in found.items()}


def costs_by_node(
    rows: Sequence[Measured], slopes: Slopes, error: Floats, tree: Tree, nodes: Sequence[Key]
) -> dict[Key, float]:
    """The part of what is made small that each node's rows stand for, with the node and those below it."""
    out = dict.fromkeys(nodes, 0.0)
    paths = [out.keys() & set(row_path(row)) for row in rows]
    for i, value in zip(slopes.row, losses(slopes, error).tolist(), strict=True):
        for key in paths[i]:
            out[key] += value
    for key, logs in tree.items():
        for above in out.keys() & set(path_of(key)):
            out[above] += pulled(key, logs)
    return out


def engine_of(row: Measured) -> str:
    """The engine of a row's nodes."""
    return row_path(row)[-1][0]


def slopes_after(rows: Sequence[Measured], slopes: Slopes, tree: Tree) -> Slopes:
    """The errors at another place, and the slopes turned so that they explain them (Broyden's update, by value)."""
    found = errors_at(rows, tree)
    error = slopes.error.copy()
    slope = slopes.slope.copy()
    shift = [_logs(tree, r) - _logs(slopes.logs, r) for r in rows]
    for n, (i, metric) in enumerate(zip(slopes.row, slopes.metric, strict=True)):
        error[n] = found[i].get(metric, error[n])
        if (length := float(shift[i] @ shift[i])) > 1e-6:
            slope[n] += (slopes.error[n] - error[n] - slope[n] @ shift[i]) * shift[i] / length
    return replace(slopes, error=error, slope=slope, logs=tree)


def without(rows: Sequence[Measured], slopes: Slopes, held: np.ndarray) -> Tree:
    """The tree without some rows: no further than one round from where the slopes were taken, but for lost nodes."""
    found = solve(rows, slopes, ~held)
    near = {k: np.clip(v, _at(slopes.logs, k) - FARTHEST, _at(slopes.logs, k) + FARTHEST) for k, v in found.items()}
    return pooled(near)


def _logs(tree: Tree, row: Measured) -> Floats:
    return logs_at(tree, row_path(row), is_scaled=has_ratio(row))


def _at(tree: Tree, key: Key) -> Floats:
    return tree.get(key, np.zeros(len(CONSTANTS)))
