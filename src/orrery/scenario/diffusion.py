"""Pictures and videos: what a batch of a diffusion pipeline takes, draws and costs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orrery.base.cost import Interval
from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.catalog.diffusion import get_diffusion
from orrery.execution.diffusion import Job
from orrery.execution.generation import Generated, constants_of, energy_spread, generate
from orrery.execution.memory import Infeasible
from orrery.models.diffusion import DiffusionModel
from orrery.planner.money import Tariff, tariff_of
from orrery.scenario.answer import to_json
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.fields_diffusion import DIFFUSION_NAMES
from orrery.scenario.patches import check_patches, patches_json, read_patches
from orrery.scenario.plan_answer import price_json
from orrery.scenario.schema import Scenario

READ = frozenset({"model", "device", "devices", "batch", "usd_per_hour", "electricity", *DIFFUSION_NAMES})
"""Settings that a picture or video has; every other one is of text."""

MEASURED_ON = frozenset({"h100-sxm", "b200"})
LINEAR = "linear attention: no run of such a model was among those measured"
UNET = "a U-Net: no run of such a model was among those measured"
PATCHES = "patches: no such run was among those measured"
UNMEASURED_WIDER = 2.0
"""How much wider (log space) intervals are on a device, or of a kind of model, whose runs were not measured."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DiffusionAnswer:
    """One batch of pictures or videos: time, stages, memory, power and money."""

    job: Job
    generated: Generated
    tariff: Tariff
    notes: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def items_per_s(self) -> float:
        """Pictures or videos a second, batch after batch."""
        return self.job.batch / self.generated.latency_s

    @property
    def energy_j_per_item(self) -> float:
        """Joules of all devices for one picture or video."""
        return self.generated.energy_j / self.job.batch

    @property
    def usd_per_item(self) -> float | None:
        """Dollars for one picture or video; None where no price is known."""
        usd_per_s = self.tariff.usd_per_s(self.job.num_devices, self.generated.power_w)
        return None if usd_per_s is None else usd_per_s / self.items_per_s

    @property
    def seconds_per_item(self) -> float | None:
        """Seconds of one video as it is shown; None for a picture."""
        return self.job.num_frames / self.job.model.frame_rate_hz if self.job.model.is_video else None

    @property
    def usd_per_video_s(self) -> float | None:
        """Dollars for a second of video."""
        usd, shown_s = self.usd_per_item, self.seconds_per_item
        return None if usd is None or shown_s is None else usd / shown_s

    def intervals(self) -> dict[str, Interval]:
        """Intervals of latency and joules, wider on a device that no run was measured on; money goes with latency."""
        device = self.job.device
        spreads = {"latency_s": constants_of(device).spread, "energy_j_per_item": energy_spread(device)}
        unmeasured = (*self._unmeasured(),)
        if unmeasured:
            spreads = {k: s.widened(UNMEASURED_WIDER, "; ".join(unmeasured)) for k, s in spreads.items()}
        found = {"latency_s": spreads["latency_s"].around(self.generated.latency_s)}
        found["energy_j_per_item"] = spreads["energy_j_per_item"].around(self.energy_j_per_item)
        found["items_per_s"] = spreads["latency_s"].inverse().around(self.items_per_s)
        if (usd := self.usd_per_item) is not None:
            found["usd_per_item"] = spreads["latency_s"].around(usd)
        return found

    def _unmeasured(self) -> Iterator[str]:
        """Why no measured run is like this one."""
        if self.job.device.name not in MEASURED_ON:
            yield f"measured on {' and '.join(sorted(MEASURED_ON))}, not on {self.job.device.name}"
        if is_linear(self.job.model):
            yield LINEAR
        if self.job.model.convolutions:
            yield UNET
        if self.job.patches > 1:
            yield PATCHES

    def to_json(self) -> dict[str, Any]:
        """The answer in the shape that scripts rely on; SI units. An item is a picture or a video."""
        job, g = self.job, self.generated
        return to_json(
            {
                "latency_s": g.latency_s,
                "items_per_s": self.items_per_s,
                "num_devices": job.num_devices,
                "bound_by": g.bound_by,
                "stages": [{"name": s.name, "time_s": s.time_s, "bound_by": s.bound_by} for s in g.stages],
                "power_w": g.power_w,
                "energy_j_per_item": self.energy_j_per_item,
                "usd_per_item": self.usd_per_item,
                "usd_per_video_s": self.usd_per_video_s,
                "memory": {
                    "weight_bytes": g.weight_bytes,
                    "activation_bytes": g.activation_bytes,
                    "capacity_bytes": job.device.memory_capacity_bytes,
                },
                "patches": None if self.job.patches == 1 else patches_json(job, g),
                "intervals": self.intervals(),
                "price": price_json(self.tariff),
                "deployment": {
                    "model": job.model.name,
                    "device": job.device.name,
                    "height": job.height,
                    "width": job.width,
                    "num_frames": job.num_frames,
                    "num_inference_steps": job.num_inference_steps,
                    "guidance": job.guidance,
                    "batch": job.batch,
                    "ulysses_degree": job.ulysses,
                    "ring_degree": job.ring,
                    "patch_parallel": job.patches,
                    "tokens": job.model.num_tokens(job.height, job.width, job.num_frames),
                },
                "settings": self.settings,
                "notes": self.notes,
            }
        )


def is_linear(model: DiffusionModel) -> bool:
    """Whether any of its blocks has linear attention."""
    return any(block.kind == "linear" for block in model.blocks)


def diffusion(scenario: Scenario) -> DiffusionAnswer | InfeasibleAnswer:
    """The answer for a scenario whose model is a diffusion pipeline."""
    written = scenario.written()
    if other := [name for name in written if name not in READ]:
        raise ScenarioError(
            f"{', '.join(other)}: of text, and {scenario.model} makes pictures or videos; leave out, and write "
            f"{', '.join(DIFFUSION_NAMES)} where its defaults are not meant."
        )
    job = _job(scenario)
    found = generate(job)
    need, have = found.weight_bytes + found.activation_bytes, job.device.memory_capacity_bytes
    if need > have:
        change = (
            "Smaller pictures, fewer frames or a smaller batch; every device holds all weights."
            if found.weight_bytes < have
            else "A device with more memory: every device holds the weights of all networks, in 16 bits."
        )
        lacking = Infeasible(what="memory of a device", need=need, have=have, unit="bytes", smallest_change=change)
        return InfeasibleAnswer(infeasible=lacking, settings=written)
    tariff = tariff_of(job.device, scenario.usd_per_hour, scenario.electricity)
    notes = (*_notes(scenario, job), *tariff.notes)
    return DiffusionAnswer(job=job, generated=found, tariff=tariff, notes=notes, settings=written)


def _job(scenario: Scenario) -> Job:
    if scenario.device is None:
        raise ScenarioError('device: missing; write device = "h100-sxm".')
    model = get_diffusion(Path(str(scenario.model)) if str(scenario.model).endswith(".toml") else str(scenario.model))
    ulysses, ring = scenario.ulysses_degree or 1, scenario.ring_degree or 1
    job = Job(
        model=model,
        device=get_device(scenario.device),
        height=scenario.height or model.height,
        width=scenario.width or model.width,
        num_frames=scenario.num_frames or model.num_frames,
        num_inference_steps=scenario.num_inference_steps or model.num_inference_steps,
        batch=scenario.batch or 1,
        ulysses=ulysses,
        ring=ring,
        guides=scenario.guidance is not False,
        patches=scenario.patch_parallel or 1,
        has_graphs=bool(scenario.cuda_graph),
        **read_patches(scenario, model),
    )
    _check(scenario, job)
    check_patches(job)
    return job


def _check(scenario: Scenario, job: Job) -> None:
    """Refuse sizes and degrees that the pipeline cannot run with."""
    model, granule = job.model, job.model.spatial * job.model.patch * job.model.shrink
    for name, side in (("height", job.height), ("width", job.width)):
        if side % granule:
            near = max(granule, round(side / granule) * granule)
            raise ScenarioError(f"{name}: got {side}; {model.name} has tokens of {granule} pixels; write {near}.")
    if job.num_frames > 1 and not model.is_video:
        raise ScenarioError(f"num_frames: got {job.num_frames}; {model.name} makes pictures; leave it out.")
    if scenario.devices is not None and scenario.devices != job.num_devices:
        raise ScenarioError(
            f"devices: got {scenario.devices}; ulysses_degree x ring_degree is {job.num_devices}; write ulysses_degree "
            f"= {max(1, scenario.devices // job.ring)} beside ring_degree = {job.ring}, or leave devices out."
            if job.patches == 1
            else f"devices: got {scenario.devices}; patch_parallel is {job.patches}; write as many, or leave it out."
        )
    for block in model.blocks:
        if block.kind != "linear" and block.num_heads % job.ulysses:
            fits = [n for n in range(1, block.num_heads + 1) if block.num_heads % n == 0]
            raise ScenarioError(
                f"ulysses_degree: got {job.ulysses}; it deals out the {block.num_heads} heads of {model.name} evenly; "
                f"write one of {', '.join(map(str, fits))}, and the rest as ring_degree."
            )
    if scenario.guidance and model.guidance == "none":
        raise ScenarioError(f"guidance: {model.name} is guided by a number that it reads, in one pass; leave it out.")


def _notes(scenario: Scenario, job: Job) -> tuple[str, ...]:
    """Defaults that were taken, and what the runtime is."""
    names = ("height", "width", "num_inference_steps", *(("num_frames",) if job.model.is_video else ()))
    taken = [f"{name} = {getattr(job, name)}" for name in names if getattr(scenario, name) is None]
    graphs = "passes replayed as graphs" if job.has_graphs else "no compiled graphs"
    found = [f"runtime: diffusers and xDiT, eager PyTorch in 16 bits, FlashAttention 2, {graphs}"]
    if taken:
        found.append(f"defaults of {job.model.name}: {', '.join(taken)}")
    if scenario.batch is None:
        found.append("batch = 1: one at a time")
    if is_linear(job.model):
        found.append(LINEAR)
    if job.model.convolutions:
        found.append(UNET)
    if job.patches > 1:
        found.append("patch_parallel: pictures change where attention sees others a step late, or not at all")
    if job.num_devices > job.device.devices_per_node:
        found.append("degrees: more devices than a node has; no run over several nodes was measured")
    return tuple(found)
