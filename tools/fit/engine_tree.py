"""Engines, their eras and the generations that they ran on, as a tree along which constants are pooled.

A row's constants are the product of what its nodes say: any engine, any engine on this vendor's devices and on this
generation of them, this engine, this era of it (the [[version]] tables of its fact file; ``unknown`` for runs that do
not say), this generation of devices in it. Each node but the root only says how far it is from its parent, and is
pulled towards saying nothing: the fewer rows speak for a node, the nearer it stays to its parent. A node with fewer
than ``FEWEST`` rows has no say at all.

Nodes of any engine on some devices speak of what their kernels cost alone: the gap of a layer, and the ratios where no
kernel of theirs was measured. So an engine that nobody ran on a generation has what others show there.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from engine_rows import Measured
from numpy.typing import NDArray

from orrery.catalog.calibrations import is_measured
from orrery.catalog.devices import device_names, get_device
from orrery.catalog.engines import engine_names, era_of, get_engine, host_release, on_device

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
BORROWED = [CONSTANTS.index(name) for name in ("memory_ratio", UNIT)]
"""Of borrowed kernels alone."""

START = np.log([1e-3, 1e-5, 1e-5, 8e-6, 8e-6, 1e-2, 2e-6, 5e-2, 1.0, 1.0, 1e12])
"""A millisecond a step, and what published profiles of engines suggest (a launch takes 5 us, and
the Python around it as much again; tokenisers read some hundred thousand tokens a second); kernels as fast as their
constants say, on units that fill any memory's bandwidth."""

PYTHON_LAUNCH_S = 3.1e-5
"""A launch outside CUDA graphs by an engine that runs PyTorch: a step of 128 to 400 tokens of Qwen3.6-35B-A3B on four
B300 takes vLLM 0.20.1 15.8 ms, on eight 16.5, on one 14.8, for 470 launches and 41 graphs of what is between
(ai-dynamo/aiconfigurator: fpm_golden_runs and collector/layerwise/fpm_ground_truth/SMALL_PREFILL_WHY_GOLDEN_16MS.md).
"""

PYTHON = {"vllm": "", "sglang": "", "transformers": "", "deepspeed": "", "deepspeed-mii": "", "tensorrt-llm": "1.0"}
"""Engines whose prompts PyTorch launches operator by operator, and the era from which they do (blank: all)."""

LOW = np.log([1e-6, 1e-9, 1e-9, 1e-9, 1e-7, 1e-5, 1e-8, 1e-5, 0.2, 0.2, 1e9])
HIGH = np.log([1.0, 1e-2, 1e-2, 1e-3, 1e-2, 1e1, 1e-3, 1e1, 20.0, 20.0, 1e12])
"""What physics leaves room for: far enough that only a fit without a hold on its constants would end there."""

MARGIN = float(np.log(1.02))
"""A constant within this of a bound is at it."""

PULL_SD = {0: 1.5, 1: 0.7, 2: 0.5, 3: 0.7}
"""Standard deviation of a node's logarithms around its parent's, by depth; of the root's around ``START``. The host
constants of engines that were fitted each on their own lie 0.4 to 0.8 apart."""

LAUNCH_SD = {0: 0.3, 1: 0.7, 2: 0.5, 3: 0.5}
"""The same for a launch, around ``PYTHON_LAUNCH_S`` where that holds: how many small kernels an engine launches for one
that is counted here is not known, nor what it does before each (shapes, memory, a Triton kernel's arguments)."""

LAUNCHES = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0)
"""Times the launch of an engine, and then of its eras, that are tried where a fit begins: launches bind or do not, and
where none binds slopes do not tell what longer ones would do."""

GAP_SD = {0: 1.5, 1: 0.7, 2: 0.7, 3: 1.5}
"""The same for the gap of a layer: which small kernels an engine fuses, and whether a device starts one before the last
has ended (programmatic dependent launches, from Hopper on), moves it by several times."""

RATIO_SD = {0: 1e-6, 1: 0.35, 2: 0.35, 3: 0.7}
"""The same for the ratios: kernels that nobody measured differ most by generation. Any engine has none."""

OWN_RATIO_SD = {1: 0.1, 2: 0.1, 3: 0.15}
"""The same for compute-bound kernels that were measured themselves, alone and in a loop: in a step they run at the
clock that the power limit leaves, and among operators that nobody measured. Bytes take what they took alone."""

OF_ANY_SD = 0.7
"""The same for what is said of any engine on some devices."""

UNIT_SD = {1: 3.0, 2: 3.0}
"""The same for what a compute unit reads: it is one number of an engine's kernels, or of an era's, and of any size."""

UNITS = (1e12, 2e10, 1.4e10, 1.1e10, 9e9, 7.5e9, 6e9)
"""Bytes/s of a compute unit that are tried for an engine with borrowed kernels: it binds on some devices alone, and
slopes do not tell at one value what lies beyond the turn."""

FREE_UNIT = 9e11
"""What an era's units are tried with beside ``UNITS``: no limit to any memory, and not the bound itself, where a node
would say nothing."""

FEWEST = 10
"""Rows below which a node has no constants of its own."""


@cache
def vendors() -> Mapping[str, str]:
    """The vendor of every generation of devices."""
    return {device.generation: device.vendor for device in map(get_device, device_names())}


def start_of(key: Key) -> Floats:
    """The logarithms of the constants where nothing was measured of a node or those above it."""
    found = START.copy()
    first = PYTHON.get(key[0])
    if first is not None and (not first or key[1] == first):
        found[CONSTANTS.index("launch_s")] = np.log(PYTHON_LAUNCH_S)
    return found


def path_of(key: Key) -> tuple[Key, ...]:
    """From the root to a node: what is said of any engine on its devices, then what is said of its engine."""
    engine, era, devices = key
    words = [vendors()[devices], devices] if devices in vendors() else [devices] if devices else []
    crossing = [("", "", word) for word in words]
    own = [(engine, "", ""), (engine, era, ""), key] if engine else []
    return tuple(dict.fromkeys([ROOT, *crossing, *own]))


@cache
def measured_engines() -> frozenset[str]:
    """Engines whose kernels were measured themselves, on some device."""
    return frozenset(name for name in engine_names() if get_engine(name).kernels == name)


def row_path(row: Measured) -> tuple[Key, ...]:
    """The nodes that speak for a row."""
    engine = row.deployment.engine
    host, version = host_release(engine.name, engine.version)
    return path_of((host, era_of(host, version), row.deployment.cluster.device.generation))


def is_of_any(key: Key) -> bool:
    """Whether a node speaks of any engine on some devices."""
    return not key[0] and bool(key[2])


def has_ratio(row: Measured) -> bool:
    """Whether the row's kernels were timed with constants of another engine, or of no device of its generation."""
    engine = row.deployment.engine
    return engine.kernels != engine.name or not is_measured(row.deployment.cluster.device.generation)


def spoken_for(rows: Sequence[Measured]) -> Counter[Key]:
    """The nodes that enough rows speak for, with how many do."""
    count = Counter(key for row in rows for key in row_path(row))
    return Counter({key: n for key, n in count.items() if n >= FEWEST})


def nodes_of(rows: Sequence[Measured]) -> tuple[Key, ...]:
    """The nodes that enough rows speak for; one that has the same rows as its parent says nothing more."""
    count = spoken_for(rows)
    return tuple(sorted(k for k in count if k == ROOT or not (k[2] and count[path_of(k)[-2]] == count[k])))


def pull_sd(key: Key) -> Floats:
    """How far each constant of a node may easily be from its parent's. The root has no say on ratios."""
    if is_of_any(key):
        generations = [g for g, vendor in vendors().items() if key[2] in (g, vendor)]
        ratio = 1e-6 if any(map(is_measured, generations)) else OF_ANY_SD
        said = {"per_layer_s": OF_ANY_SD} | dict.fromkeys(RATIOS, ratio)
        return np.array([said.get(name, 1e-6) for name in CONSTANTS])
    depth = sum(bool(word) for word in key)
    special = {"launch_s": LAUNCH_SD[depth], "per_layer_s": GAP_SD[depth]}
    host = [special.get(name, PULL_SD[depth]) for name in HOST]
    is_own = key[0] in measured_engines() and (not key[2] or is_measured(key[2]))
    compute = OWN_RATIO_SD[depth] if is_own else RATIO_SD[depth]
    return np.array([*host, RATIO_SD[depth], compute, UNIT_SD.get(depth, 1e-6)])


def with_launch(tree: Tree, factors: Mapping[Key, float]) -> Tree:
    """The tree where launches at some nodes take so many times as long."""
    found = {key: text.copy() for key, text in tree.items()}
    for key, factor in factors.items():
        found[key][CONSTANTS.index("launch_s")] += np.log(factor)
    return found


def with_unit(tree: Tree, key: Key, unit_bytes_per_s: float) -> Tree:
    """The tree where a compute unit reads so much in the kernels that a node speaks of."""
    found = {key: text.copy() for key, text in tree.items()}
    if key in found:
        unit = CONSTANTS.index(UNIT)
        above = sum(found[k][unit] for k in path_of(key)[:-1] if k in found)
        found[key][unit] = np.log(unit_bytes_per_s) - START[unit] - above
    return found


def units_of(tree: Tree) -> Tree:
    """Of a tree what a unit reads alone: fits of one engine find it (``--only``), a fit of all keeps it."""
    return {key: np.where(np.array(CONSTANTS) == UNIT, text, 0.0) for key, text in tree.items()}


def pooled(tree: Tree) -> Tree:
    """The tree without what takes a constant to a bound: there a node says nothing and has its parent's."""
    out = {key: text.copy() for key, text in tree.items()}
    for key in sorted(out, key=lambda k: len(path_of(k))):
        logs = start_of(key) + sum((out[k] for k in path_of(key) if k in out), np.zeros(len(CONSTANTS)))
        out[key][(logs <= LOW + MARGIN) | (logs >= HIGH - MARGIN)] = 0.0
    return out


def logs_at(tree: Tree, path: Sequence[Key], *, is_scaled: bool) -> Floats:
    """The logarithms of the constants at the end of a path; the ratio of bytes only where kernels are not the row's
    own."""
    found = start_of(path[-1]) + sum((tree[key] for key in path if key in tree), np.zeros(len(CONSTANTS)))
    if not is_scaled:
        found[BORROWED] = START[BORROWED]
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
    tree: dict[Key, Floats] = {}
    for key in sorted(logs, key=lambda k: len(path_of(k))):
        above = sum((tree[k] for k in path_of(key) if k in tree), np.zeros(len(CONSTANTS)))
        tree[key] = logs[key] - start_of(key) - above
    return tree


def row_constants(tree: Tree, row: Measured) -> dict[str, float]:
    """What a tree says of one row, on its host."""
    logs = logs_at(tree, row_path(row), is_scaled=has_ratio(row))
    return on_device(constants_of(logs), row.deployment.cluster.device)
