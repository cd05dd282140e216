"""Recommendation: what ranking a batch of samples takes, draws and costs on one device."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from orrery.base.errors import OutOfRange, ScenarioError
from orrery.catalog.devices import get_device
from orrery.catalog.network_runtimes import NetworkRuntime
from orrery.catalog.recommendation import get_recommendation
from orrery.execution.edge.eager import num_operators, pass_costs, with_passes
from orrery.execution.edge.times import LayerCosts, Numbers, layer_costs
from orrery.execution.formats import can_multiply
from orrery.execution.memory import USABLE_FRAC, Infeasible
from orrery.hardware.device import Device
from orrery.kernels import energy
from orrery.kernels.elementwise.rule import calibration
from orrery.kernels.gather import line_bytes, useful_frac
from orrery.models.networks import Network, Unit
from orrery.models.recommendation import RecommendationModel
from orrery.planner.money import Tariff, tariff_of
from orrery.scenario.answer import to_json
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.network_runtime import runtime_of
from orrery.scenario.plan_answer import price_json
from orrery.scenario.schema import Scenario

READ = frozenset({"model", "device", "devices", "engine", "batch", "weights", "usd_per_hour", "electricity"})
FORMATS = {"fp32": 4.0, "fp16": 2.0, "bf16": 2.0, "int8": 1.0}
DEFAULT_BATCH, MILLION = 2048, 1e6
PUBLISHED = "three published runs (MLPerf) took 0.75 to 0.91 times as long as is said here"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """The rows of all tables for one batch."""

    time_s: float
    moved_bytes: float
    useful_frac: float  # of what the memory moves


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecommendationAnswer:
    """A batch of samples on one device."""

    model: RecommendationModel
    device: Device
    batch: int
    format: str
    gathered: Gathered
    products: LayerCosts  # and what runs apart from them
    host_s: float  # in which the host launches a batch, meanwhile
    runtime: NetworkRuntime
    weight_bytes: float
    tariff: Tariff
    notes: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def latency_s(self) -> float:
        """Seconds of the batch: rows gathered, then products; or those of the host that launches them."""
        return max(self.gathered.time_s + float(self.products.time_s.sum()), self.host_s)

    @property
    def samples_per_s(self) -> float:
        """Samples a second, batch after batch."""
        return self.batch / self.latency_s

    @property
    def bound_by(self) -> str:
        """The longest part: the host, gathering, or the limit of most products."""
        if self.host_s >= self.latency_s:
            return "host"
        return "gather" if self.gathered.time_s > self.latency_s / 2.0 else self.products.bound_by

    @property
    def power_w(self) -> float:
        """Mean power of the device."""
        moved = self.gathered.moved_bytes + float(self.products.moved_bytes.sum())
        rates = float(self.products.flops.sum()) / self.latency_s, moved / self.latency_s
        return float(np.squeeze(energy.power_w(self.device, self.format, *rates)))

    @property
    def usd_per_million_samples(self) -> float | None:
        """Dollars for a million samples; None where no price is known."""
        usd_per_s = self.tariff.usd_per_s(1, self.power_w)
        return None if usd_per_s is None else MILLION * usd_per_s / self.samples_per_s

    def to_json(self) -> dict[str, Any]:
        """The answer in the shape that scripts rely on; SI units."""
        return to_json(
            {
                "latency_s": self.latency_s,
                "samples_per_s": self.samples_per_s,
                "gather_s": self.gathered.time_s,
                "products_s": float(self.products.time_s.sum()),
                "gather_useful_frac": self.gathered.useful_frac,
                "host_s": self.host_s,
                "bound_by": self.bound_by,
                "power_w": self.power_w,
                "energy_j_per_sample": self.power_w / self.samples_per_s,
                "usd_per_million_samples": self.usd_per_million_samples,
                "memory": {"weight_bytes": self.weight_bytes, "capacity_bytes": self.device.memory_capacity_bytes},
                "price": price_json(self.tariff),
                "deployment": {
                    "model": self.model.name,
                    "device": self.device.name,
                    "engine": self.runtime.name,
                    "batch": self.batch,
                    "weights": self.format,
                },
                "settings": self.settings,
                "notes": self.notes,
            }
        )


def recommendation(scenario: Scenario) -> RecommendationAnswer | InfeasibleAnswer:
    """The answer for a scenario whose model ranks items."""
    written = scenario.written()
    if other := [name for name in written if name not in READ]:
        raise ScenarioError(
            f"{', '.join(other)}: not of recommendation; {scenario.model} takes {', '.join(sorted(READ))}: leave out."
        )
    if scenario.device is None:
        raise ScenarioError('device: missing; write device = "h100-sxm".')
    if scenario.devices not in (None, 1):
        raise ScenarioError(f"devices: got {scenario.devices}; all tables lie on one device: leave it out.")
    format = scenario.weights or "fp16"
    if format not in FORMATS:
        raise ScenarioError(f"weights: got {format!r}; write {', '.join(FORMATS)}.")
    model, device = get_recommendation(str(scenario.model)), get_device(scenario.device)
    if format == "int8" and not can_multiply(format, device):
        raise ScenarioError(f"weights: {device.name} multiplies no int8; write fp16.")
    batch = scenario.batch or DEFAULT_BATCH
    need, have = FORMATS[format] * model.num_parameters, USABLE_FRAC * device.memory_capacity_bytes
    if need > have:
        change = 'Narrower weights (weights = "fp16"), or a device with more memory.'
        lacking = Infeasible(what="memory of a device", need=need, have=have, unit="bytes", smallest_change=change)
        return InfeasibleAnswer(infeasible=lacking, settings=written)
    runtime = runtime_of(scenario, device)
    fused = runtime.fuses and model.interaction == "dot"
    try:
        gathered = gather(model, device, format, batch, is_met=fused)
    except OutOfRange as error:
        raise ScenarioError(f"device: {error}") from None
    network = _network(model, fused)
    numbers = Numbers(format=format, is_integer_only=format == "int8" and runtime.passes_codes)
    products = layer_costs(network.units[0].layers, device, numbers, batch)
    if not runtime.fuses:
        products = with_passes(products, pass_costs(network, device, numbers, batch))
    tariff = tariff_of(device, scenario.usd_per_hour, scenario.electricity)
    taken = () if scenario.batch else (f"batch = {DEFAULT_BATCH}",)
    return RecommendationAnswer(
        model=model,
        device=device,
        batch=batch,
        format=format,
        gathered=gathered,
        products=products,
        host_s=runtime.operator_s * (1 + num_operators(network)),
        runtime=runtime,
        weight_bytes=need,
        tariff=tariff,
        notes=(
            *taken,
            f"no interval: {PUBLISHED}; rows are looked up evenly, none stays in a cache",
            f"{'vectors meet while they are gathered' if fused else 'every layer is a kernel'} ({runtime.title})",
            *tariff.notes,
        ),
        settings=written,
    )


def _network(model: RecommendationModel, fused: bool) -> Network:
    """The products as one unit, without the dot products where they run with the gathering."""
    layers = tuple(x for x in model.products() if x.positions == 1 or not fused)
    return Network(
        name=model.name,
        units=(Unit(name="products", layers=layers, num_results=1, num_channels=1),),
        num_elements=model.num_dense,
    )


def gather(model: RecommendationModel, device: Device, format: str, batch: int, *, is_met: bool = False) -> Gathered:
    """All rows of a batch in whole lines, and the sum of each table written, or what enters the top where they meet."""
    row_bytes = model.width * FORMATS[format]
    useful = useful_frac(row_bytes, line_bytes(device))
    written = model.met_width * FORMATS[format] if is_met else model.num_tables * row_bytes
    moved = batch * (row_bytes * sum(model.lookups) / useful + written)
    share = calibration("add", device).constants["bandwidth_frac"]
    return Gathered(time_s=moved / (share * device.memory_bandwidth_bytes_per_s), moved_bytes=moved, useful_frac=useful)
