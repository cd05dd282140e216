"""A start, stage by stage: the node, the image, the process, the weights, compiled code, and captured graphs.

Stages follow each other. Where a replica starts from (a new node, a pod without its image, a process, a sleeping or a
snapshotted one) says which of them are left:

    new-node     node, image, process, weights, compile, profile, capture
    new-pod      image, process, …
    new-process  process, weights, …
    snapshot     all memory of the devices and what the process had, from the same path as weights
    sleep-2      weights alone: process, graphs and compiled code are kept
    sleep-1      weights alone, from the host's own memory
"""

from dataclasses import dataclass, replace

from orrery.fleet.cold_start.weights import Load, Loader, Path, Rates, ReplicaWeights, load

STARTS = ("new-node", "new-pod", "new-process", "snapshot", "sleep-2", "sleep-1")
"""Where a replica may start from, the coldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """Start-up times of machines, images and engines, beside weights."""

    node_s: float
    image_bytes: float
    image_bytes_per_s: float
    process_s: float
    trace_layer_s: float  # a layer traced into a graph
    compile_layer_s: float  # a layer's graph compiled
    compiled_layer_s: float  # the same from a cache on disk
    profile_s: float  # memory profiled, cache allocated, kernels warmed up
    capture_layer_s: float  # a layer of one captured batch size
    registration_layer_s: float  # a layer's memory made known to the network card
    wake_s: float
    wake_frac: float  # of the host's link, while memory is mapped and filled again
    restore_s: float
    state_bytes: float  # of a snapshot, for each device beside its weights


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """Parts of a start that depend on the engine and its settings."""

    num_layers: int
    num_captured: int  # batch sizes whose step is captured; 0 = none
    compiles: bool
    has_compile_cache: bool = False
    host_time_ratio: float = 1.0  # of one thread of this host over one of a usual server


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One thing a replica waits for."""

    name: str
    seconds_s: float
    moved_bytes: float = 0.0
    because: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A replica from nothing to its first token, and what of it weighs most."""

    start: str
    path: str
    loader: str
    stages: tuple[Stage, ...]
    load: Load | None  # None where no weights move over a path

    @property
    def seconds_s(self) -> float:
        """Return the time until it serves."""
        return sum(stage.seconds_s for stage in self.stages)

    @property
    def longest(self) -> Stage:
        """Return the stage that takes most of it."""
        return max(self.stages, key=lambda stage: stage.seconds_s)


def cold_start(
    start: str, path: Path, loader: Loader, held: ReplicaWeights, rates: Rates, engine: Engine, constants: Constants
) -> Start:
    """Return the stages of one start; ``start`` is one of STARTS."""
    if start == "sleep-1":
        rate = constants.wake_frac * rates.link_bytes_per_s
        wake = Stage(
            name="wake",
            seconds_s=constants.wake_s + held.device_bytes / rate,
            moved_bytes=held.device_bytes,
            because="weights from the host's memory; process, graphs and compiled code were kept",
        )
        return Start(start=start, path="host memory", loader="", stages=(wake,), load=None)
    if start == "snapshot":
        extra = constants.state_bytes
        whole = replace(
            held,
            model_bytes=held.model_bytes + extra * held.node_devices,
            device_bytes=held.device_bytes + extra,
        )
        streamed = replace(loader, is_streaming=True, reads_whole=False)
        restored = load(path, streamed, whole, rates)
        stage = Stage(
            name="restore",
            seconds_s=constants.restore_s + restored.seconds_s,
            moved_bytes=whole.node_bytes,
            because=f"memory as it was; {restored.limit} decides",
        )
        return Start(start=start, path=path.name, loader="snapshot", stages=(stage,), load=restored)
    loaded = load(path, loader, held, rates)
    weights = [Stage(name="weights", seconds_s=loaded.seconds_s, moved_bytes=held.node_bytes, because=loaded.limit)]
    if path.is_per_device:
        registered = constants.registration_layer_s * engine.num_layers
        weights.append(Stage(name="registration", seconds_s=registered, because="memory made known to the network"))
    if start == "sleep-2":
        wake = Stage(name="wake", seconds_s=constants.wake_s, because="process, graphs and compiled code were kept")
        return Start(start=start, path=path.name, loader=loader.name, stages=(wake, *weights), load=loaded)
    before = before_process(start, constants)
    slow = engine.host_time_ratio
    process = Stage(
        name="process", seconds_s=constants.process_s * slow, because="imports, device contexts, ranks join"
    )
    stages = (*before, process, *weights, *_ready(engine, constants))
    return Start(start=start, path=path.name, loader=loader.name, stages=stages, load=loaded)


def before_process(start: str, constants: Constants) -> tuple[Stage, ...]:
    """Return what comes before the engine's process: the node and its image, where they are not there."""
    image = Stage(
        name="image",
        seconds_s=constants.image_bytes / constants.image_bytes_per_s,
        moved_bytes=constants.image_bytes,
        because="pulled and unpacked",
    )
    node = Stage(name="node", seconds_s=constants.node_s, because="machine, driver, device plug-in")
    return {"new-node": (node, image), "new-pod": (image,)}.get(start, ())


def _ready(engine: Engine, constants: Constants) -> tuple[Stage, ...]:
    """Return what an engine does between weights and its first request."""
    slow, layers = engine.host_time_ratio, engine.num_layers
    stages: list[Stage] = []
    if engine.compiles:
        each = constants.compiled_layer_s if engine.has_compile_cache else constants.compile_layer_s
        why = (
            "graphs traced, compiled code from the cache" if engine.has_compile_cache else "graphs traced and compiled"
        )
        stages.append(Stage(name="compile", seconds_s=(constants.trace_layer_s + each) * layers * slow, because=why))
    stages.append(
        Stage(name="profile", seconds_s=constants.profile_s * slow, because="memory profiled, cache allocated")
    )
    if engine.num_captured:
        captured = constants.capture_layer_s * layers * engine.num_captured * slow
        stages.append(Stage(name="capture", seconds_s=captured, because=f"graphs of {engine.num_captured} batch sizes"))
    return tuple(stages)


def num_captured(largest: int) -> int:
    """Return how many batch sizes are captured up to a largest one: 1, 2, 4, and every 8 from there."""
    return sum(1 for size in (1, 2, 4) if size <= largest) + largest // 8
