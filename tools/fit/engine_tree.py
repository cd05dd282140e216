"""Engines, their eras and the generations that they ran on, as a tree along which constants are pooled.

A row's constants are the product of what its nodes say: any engine, this engine, this era of it (the [[version]] tables
of its fact file; ``unknown`` for runs that do not say), this generation of devices in it. Each node but the root only
says how far it is from its parent, and is pulled towards saying nothing: the fewer rows speak for a node, the nearer it
stays to its parent. A node with fewer than ``FEWEST`` rows has no say at all.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from engine_rows import Measured
from numpy.typing import NDArray

from orrery.catalog.calibrations import is_measured
from orrery.catalog.engines import era_of, host_of, on_device

Key = tuple[str, str, str]
"""Engine, era, generation; empty words pool over all."""

Floats = NDArray[np.float64]
Tree = Mapping[Key, Floats]
"""By node: the logarithm of what it multiplies its parent's constants by."""

ROOT: Key = ("", "", "")
HOST = (
    "step_s",
    "per_sequence_s",
    "sampling_s",
    "per_layer_s",
    "launch_s",
    "request_s",
    "per_prompt_token_s",
    "handover_s",
)
RATIOS = ("memory_ratio", "compute_ratio")
UNIT = "unit_bytes_per_s"
CONSTANTS = (*HOST, *RATIOS, UNIT)
START = np.log([1e-3, 1e-5, 1e-5, 8e-6, 8e-6, 1e-2, 2e-6, 5e-2, 1.0, 1.0, 1e12])
"""A millisecond a step, and what published profiles of engines suggest (a launch takes 5 us, and
the Python around it as much again; tokenisers read some hundred thousand tokens a second); kernels as fast as their
constants say, on units that fill any memory's bandwidth."""

LOW = np.log([1e-6, 1e-9, 1e-9, 1e-9, 1e-7, 1e-5, 1e-8, 1e-5, 0.2, 0.2, 1e9])
HIGH = np.log([1.0, 1e-2, 1e-2, 1e-3, 1e-2, 1e1, 1e-3, 1e1, 20.0, 20.0, 1e12])
"""What physics leaves room for: far enough that only a fit without a hold on its constants would end there."""

MARGIN = float(np.log(1.02))
"""A constant within this of a bound is at it."""

PULL_SD = {0: 1.5, 1: 0.7, 2: 0.5, 3: 0.7}
"""Standard deviation of a node's logarithms around its parent's, by depth; of the root's around ``START``. The host
constants of engines that were fitted each on their own lie 0.4 to 0.8 apart."""

LAUNCH_SD = 0.3
"""The same for a launch, at every depth: what one costs is known better than what queues in front of it make of it."""

GAP_SD = {0: 1.5, 1: 0.7, 2: 0.7, 3: 1.5}
"""The same for the gap of a layer: which small kernels an engine fuses, and whether a device starts one before the last
has ended (programmatic dependent launches, from Hopper on), moves it by several times."""

RATIO_SD = {0: 1e-6, 1: 0.35, 2: 0.35, 3: 0.7}
"""The same for the ratios: kernels that nobody measured differ most by generation. Any engine has none."""

UNIT_SD = {1: 3.0}
"""The same for what a compute unit reads: it is one number of an engine's kernels, and of any size."""

UNITS = (1e12, 2e10, 1.4e10, 1.1e10, 9e9, 7.5e9, 6e9)
"""Bytes/s of a compute unit that are tried for an engine with borrowed kernels: it binds on some devices alone, and
slopes do not tell at one value what lies beyond the turn."""

FEWEST = 10
"""Rows below which a node has no constants of its own."""


def path_of(engine: str, era: str, generation: str) -> tuple[Key, ...]:
    """From the root to the node of one kind of run."""
    return ROOT, (engine, "", ""), (engine, era, ""), (engine, era, generation)


def row_path(row: Measured) -> tuple[Key, ...]:
    """The nodes that speak for a row."""
    engine = row.deployment.engine
    return path_of(host_of(engine.name), era_of(engine.name, engine.version), row.deployment.cluster.device.generation)


def has_ratio(row: Measured) -> bool:
    """Whether the row's kernels were timed with constants of another engine, or of no device of its generation."""
    engine = row.deployment.engine
    return engine.kernels != engine.name or not is_measured(row.deployment.cluster.device.generation)


def nodes_of(rows: Sequence[Measured]) -> tuple[Key, ...]:
    """The nodes that enough rows speak for; one that has the same rows as its parent says nothing more."""
    count = Counter(key for row in rows for key in row_path(row))
    parent = {key: path[i] for row in rows for path in (row_path(row),) for i, key in enumerate(path[1:])}
    retained = [k for k, n in count.items() if n >= FEWEST]
    return tuple(sorted(k for k in retained if k == ROOT or (k[0] and not (k[2] and count[parent[k]] == count[k]))))


def pull_sd(key: Key) -> Floats:
    """How far each constant of a node may easily be from its parent's. The root has no say on ratios."""
    depth = sum(bool(word) for word in key)
    special = {"launch_s": LAUNCH_SD, "per_layer_s": GAP_SD[depth]}
    host = [special.get(name, PULL_SD[depth]) for name in HOST]
    return np.array([*host, *[RATIO_SD[depth]] * len(RATIOS), UNIT_SD.get(depth, 1e-6)])


def with_unit(tree: Tree, engine: str, unit_bytes_per_s: float) -> Tree:
    """The tree where a compute unit reads so much in an engine's kernels."""
    found = {key: text.copy() for key, text in tree.items()}
    if (engine, "", "") in found:
        found[engine, "", ""][CONSTANTS.index(UNIT)] = np.log(unit_bytes_per_s) - START[CONSTANTS.index(UNIT)]
    return found


def units_of(tree: Tree) -> Tree:
    """Of a tree what a unit reads alone: fits of one engine find it (``--only``), a fit of all keeps it."""
    return {key: np.where(np.array(CONSTANTS) == UNIT, text, 0.0) for key, text in tree.items()}


def pooled(tree: Tree) -> Tree:
    """The tree without what takes a constant to a bound: there a node says nothing and has its parent's."""
    out = {key: text.copy() for key, text in tree.items()}
    for key in sorted(out, key=lambda k: sum(bool(word) for word in k)):
        path = path_of(*key)[: 1 + sum(bool(word) for word in key)]
        logs = START + sum((out[k] for k in path if k in out), np.zeros(len(CONSTANTS)))
        out[key][(logs <= LOW + MARGIN) | (logs >= HIGH - MARGIN)] = 0.0
    return out


def logs_at(tree: Tree, path: Sequence[Key], *, is_scaled: bool) -> Floats:
    """The logarithms of the constants at the end of a path; ratios only where kernels are not the row's own."""
    found = START + sum((tree[key] for key in path if key in tree), np.zeros(len(CONSTANTS)))
    if not is_scaled:
        found[len(HOST) :] = START[len(HOST) :]
    return np.clip(found, LOW, HIGH)


def constants_of(logs: Floats) -> dict[str, float]:
    """Constants by name, with the digits that are worth writing."""
    return {name: float(f"{value:.4g}") for name, value in zip(CONSTANTS, np.exp(logs), strict=True)}


def tree_from(entries: Sequence[Mapping[str, Any]]) -> Tree:
    """The tree whose constants an earlier fit wrote down: what each node says over its parent."""
    logs: dict[Key, Floats] = {}
    for entry in entries:
        known = entry["constants"]
        key = entry["name"], entry["version"], entry["generation"]
        logs[key] = np.array([np.log(known.get(c, np.exp(s))) for c, s in zip(CONSTANTS, START, strict=True)])
    paths = {key: path_of(*key)[: 1 + sum(bool(word) for word in key)] for key in logs}
    above = {key: [logs[k] for k in path[:-1] if k in logs] for key, path in paths.items()}
    return {key: own - (above[key][-1] if above[key] else START) for key, own in logs.items()}


def row_constants(tree: Tree, row: Measured) -> dict[str, float]:
    """What a tree says of one row, on its host."""
    logs = logs_at(tree, row_path(row), is_scaled=has_ratio(row))
    return on_device(constants_of(logs), row.deployment.cluster.device)
