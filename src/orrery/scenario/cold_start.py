"""How long until a new replica serves: the stages of its start, and the same start by other ways."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from orrery.base.arguments import typed
from orrery.base.errors import ScenarioError, UnknownName
from orrery.catalog.cold_start import LOADERS, PATHS, cold_start_facts, constants, path_of, rates_of
from orrery.execution.host import graph_seqs
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible, max_num_seqs, memory_of
from orrery.execution.shard import shard
from orrery.fleet.cold_start.start import STARTS, Constants, Engine, Start, num_captured
from orrery.fleet.cold_start.start import cold_start as started
from orrery.fleet.cold_start.weights import ReplicaWeights
from orrery.scenario.answer import to_json
from orrery.scenario.ask import InfeasibleAnswer, deployment_json
from orrery.scenario.resolve import deploy, find, formats_of, layout_of, one_device
from orrery.scenario.schema import Scenario, merged, refuse_foreign

COMPILING = frozenset({"vllm"})
"""Engines that compile a model's graph before they serve, unless told not to."""

OTHER_WAYS = (
    ("new-process", "registry", "safetensors"),
    ("new-process", "object-store", "runai_streamer"),
    ("new-process", "nvme", "safetensors"),
    ("new-process", "nvme", "runai_streamer"),
    ("new-process", "page-cache", "safetensors"),
    ("new-process", "peer", "safetensors"),
    ("snapshot", "nvme", "runai_streamer"),
    ("sleep-2", "nvme", "safetensors"),
    ("sleep-1", "nvme", "safetensors"),
)
"""Starts that are shown beside the one that was asked for: from what, where weights come from, and how."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ColdStart:
    """One start with its stages, and others to compare."""

    deployment: Deployment
    held: ReplicaWeights
    start: Start
    others: tuple[Start, ...]  # the quickest first
    notes: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def to_json(self) -> dict[str, Any]:
        """The answer in the shape that scripts rely on; SI units."""
        return {
            "cold_start": start_json(self.start),
            "others": [start_json(other) for other in self.others],
            "model_bytes": self.held.model_bytes,
            "device_bytes": self.held.device_bytes,
            "sleeping_host_bytes": self.held.device_bytes * self.held.node_devices,
            "deployment": to_json(deployment_json(self.deployment)),
            "facts": [fact.cite() for fact in cold_start_facts().values()],
            "settings": to_json(self.settings),
            "notes": list(self.notes),
        }


def start_json(start: Start) -> dict[str, Any]:
    """One start: its stages in order, and the longest."""
    return to_json(
        {
            "start": start.start,
            "weights_from": start.path,
            "load_format": start.loader,
            "seconds_s": start.seconds_s,
            "longest": start.longest.name,
            "stages": start.stages,
            "load": start.load,
        }
    )


@typed
def cold_start(scenario: Scenario | None = None, /, **settings: Any) -> ColdStart | InfeasibleAnswer:
    """How long until a new replica of a deployment serves, stage by stage, and what of it takes longest.

    Settings are those of a scenario file; given beside a scenario they override it.
    """
    inputs = merged(scenario, settings)
    refuse_foreign("cold-start", settings)
    deployment, notes = _deployment(inputs)
    memory = memory_of(deployment)
    if isinstance(memory, Infeasible):
        return InfeasibleAnswer(infeasible=memory, notes=notes, settings=inputs.written())
    return cold_start_of(inputs, deployment, notes)


def cold_start_of(inputs: Scenario, deployment: Deployment, notes: tuple[str, ...] = ()) -> ColdStart:
    """The start of a deployment that fits."""
    chosen = (
        _known("start", inputs.start or "new-process", STARTS),
        _known("weights_from", inputs.weights_from or "nvme", PATHS),
        _known("load_format", inputs.load_format or "safetensors", tuple(LOADERS)),
    )
    held, engine, needs = held_by(deployment), engine_of(inputs, deployment), _constants(inputs)
    rate = inputs.weights_bytes_per_s

    def one(start: str, path: str, loader: str) -> Start:
        device = deployment.cluster.device
        taken = path_of(path, device, rate if path == chosen[1] else None)
        return started(start, taken, LOADERS[loader], held, rates_of(device), engine, needs)

    others = sorted((one(*way) for way in OTHER_WAYS if way != chosen), key=lambda s: s.seconds_s)
    return ColdStart(
        deployment=deployment,
        held=held,
        start=one(*chosen),
        others=tuple(others),
        notes=(*notes, *_notes(inputs, deployment, chosen)),
        settings=inputs.written(),
    )


def _deployment(inputs: Scenario) -> tuple[Deployment, tuple[str, ...]]:
    """The deployment of a scenario; it needs no traffic."""
    parts = find(inputs, one_device(inputs))
    layout, layout_notes = layout_of(inputs, parts)
    formats, format_notes = formats_of(inputs, parts)
    return deploy(inputs, parts, layout, formats), (*parts.notes, *layout_notes, *format_notes)


def held_by(deployment: Deployment) -> ReplicaWeights:
    """A deployment's weights: of one copy, of the fullest device, and of how many devices in a node."""
    layout, whole = deployment.layout, shard(deployment)
    single = replace(deployment, layout=replace(layout, tp=1, pp=1, dp=1, ep=1, etp=0, cp=1))
    return ReplicaWeights(
        model_bytes=shard(single).weight_bytes,
        device_bytes=whole.weight_bytes,
        node_devices=min(layout.num_devices, deployment.cluster.devices_per_node),
    )


def engine_of(inputs: Scenario, deployment: Deployment) -> Engine:
    """The engine's start after weights: compilation, and capture of batch sizes up to twice the sequences of a step."""
    engine, eager = deployment.engine, bool(inputs.enforce_eager)
    largest = min(graph_seqs(deployment), 2 * max_num_seqs(deployment))
    return Engine(
        num_layers=deployment.model.num_layers,
        num_captured=num_captured(largest) if engine.has_cuda_graphs and not eager else 0,
        compiles=engine.name in COMPILING and not eager,
        has_compile_cache=bool(inputs.compile_cache),
        host_time_ratio=deployment.cluster.device.host_time_ratio,
    )


def _constants(inputs: Scenario) -> Constants:
    own = {k: v for k in ("image_bytes", "image_bytes_per_s", "node_s") if (v := getattr(inputs, k)) is not None}
    return replace(constants(), **own)


def _known(name: str, word: str, known: tuple[str, ...]) -> str:
    if word not in known:
        raise ScenarioError(f"{name}: {UnknownName(name, word, known)}")
    return word


def _notes(inputs: Scenario, deployment: Deployment, chosen: tuple[str, str, str]) -> tuple[str, ...]:
    """Assumptions, and settings that this start does not read."""
    start, path, _ = chosen
    notes = [
        f"{name}: {value} (default)"
        for name, value in zip(("start", "weights_from", "load_format"), chosen, strict=True)
        if getattr(inputs, name) is None
    ]
    unread: dict[str, bool] = {
        "weights_from": start == "sleep-1",
        "weights_bytes_per_s": start == "sleep-1" or path == "page-cache",
        "load_format": start in ("sleep-1", "snapshot") or path == "peer",
        "compile_cache": start in ("sleep-1", "sleep-2", "snapshot") or deployment.engine.name not in COMPILING,
        "enforce_eager": start in ("sleep-1", "sleep-2", "snapshot"),
        "image_bytes": start not in ("new-node", "new-pod"),
        "image_bytes_per_s": start not in ("new-node", "new-pod"),
        "node_s": start != "new-node",
    }
    notes += [
        f"{n}: not used; start {start}, weights from {path}" for n, u in unread.items() if u and getattr(inputs, n)
    ]
    if deployment.engine.name != "vllm":
        notes.append(f"constants of the process and of graphs are vLLM's; {deployment.engine.name}'s are not known")
    if deployment.cluster.num_nodes > 1:
        notes.append("all nodes load at once; a path that they share is slower")
    notes.append("autotuning of kernels and code built at the first start are not counted")
    return tuple(notes)
