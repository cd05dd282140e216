"""Image networks and vision encoders: what classifying or encoding a batch of pictures takes, draws and costs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from orrery.base.cost import Interval
from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.catalog.network_runtimes import NetworkRuntime
from orrery.catalog.workload_spreads import published_spread
from orrery.execution.edge.eager import num_operators, pass_costs, with_passes
from orrery.execution.edge.times import LayerCosts, Numbers, layer_costs
from orrery.execution.formats import can_multiply
from orrery.execution.memory import USABLE_FRAC, Infeasible
from orrery.hardware.device import Device
from orrery.kernels import energy
from orrery.models.image_networks import network_of
from orrery.models.networks import Convolution, Network
from orrery.numerics.registry import find_format, get_format
from orrery.planner.money import Tariff, tariff_of
from orrery.scenario.answer import to_json
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.network_runtime import runtime_of
from orrery.scenario.plan_answer import price_json
from orrery.scenario.schema import Scenario

READ = frozenset(
    {"model", "device", "devices", "engine", "batch", "weights", "integer_only", "usd_per_hour", "electricity"}
)
FLOATS, INTEGERS = ("fp32", "fp16", "bf16"), ("int8", "int4_int4")
THOUSAND = 1e3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ImageModelAnswer:
    """A batch of pictures on one device."""

    network: Network
    device: Device
    runtime: NetworkRuntime
    batch: int
    numbers: Numbers
    costs: LayerCosts  # of layers, and of what runs apart from them
    host_s: float  # in which the host launches a batch, meanwhile
    tariff: Tariff
    weight_bytes: float
    activation_bytes: float
    notes: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def latency_s(self) -> float:
        """Seconds of the batch: the device's, or those of the host that launches its operators."""
        return max(float(self.costs.time_s.sum()), self.host_s)

    @property
    def bound_by(self) -> str:
        """The limit on most of the time."""
        return "host" if self.host_s >= self.latency_s else self.costs.bound_by

    @property
    def images_per_s(self) -> float:
        """Pictures a second, batch after batch."""
        return self.batch / self.latency_s

    @property
    def power_w(self) -> float:
        """Mean power of the device."""
        rates = float(self.costs.flops.sum()) / self.latency_s, float(self.costs.moved_bytes.sum()) / self.latency_s
        return float(np.squeeze(energy.power_w(self.device, self.numbers.format, *rates)))

    @property
    def usd_per_thousand_images(self) -> float | None:
        """Dollars for a thousand pictures; None where no price is known."""
        usd_per_s = self.tariff.usd_per_s(1, self.power_w)
        return None if usd_per_s is None else THOUSAND * usd_per_s / self.images_per_s

    def intervals(self) -> dict[str, Interval]:
        """Where latency and rate are expected to lie, by published runs."""
        spread = published_spread("images")
        return {
            "latency_s": spread.around(self.latency_s),
            "images_per_s": spread.inverse().around(self.images_per_s),
        }

    def to_json(self) -> dict[str, Any]:
        """The answer in the shape that scripts rely on; SI units."""
        return to_json(
            {
                "latency_s": self.latency_s,
                "images_per_s": self.images_per_s,
                "bound_by": self.bound_by,
                "host_s": self.host_s,
                "intervals": self.intervals(),
                "power_w": self.power_w,
                "energy_j_per_image": self.power_w / self.images_per_s,
                "usd_per_thousand_images": self.usd_per_thousand_images,
                "memory": {
                    "weight_bytes": self.weight_bytes,
                    "activation_bytes": self.activation_bytes,
                    "capacity_bytes": self.device.memory_capacity_bytes,
                },
                "price": price_json(self.tariff),
                "deployment": {
                    "model": self.network.name,
                    "device": self.device.name,
                    "engine": self.runtime.name,
                    "batch": self.batch,
                    "weights": self.numbers.format,
                    "integer_only": self.numbers.is_integer_only,
                },
                "settings": self.settings,
                "notes": self.notes,
            }
        )


def image_model(scenario: Scenario) -> ImageModelAnswer | InfeasibleAnswer:
    """The answer for a scenario whose model is an image network."""
    written = scenario.written()
    if other := [name for name in written if name not in READ]:
        raise ScenarioError(
            f"{', '.join(other)}: not of pictures; {scenario.model} takes {', '.join(sorted(READ))}: leave out."
        )
    if scenario.device is None:
        raise ScenarioError('device: missing; write device = "l4".')
    if scenario.devices not in (None, 1):
        raise ScenarioError(f"devices: got {scenario.devices}; an image network runs on one device: leave it out.")
    network, device, batch = network_of(str(scenario.model)), get_device(scenario.device), scenario.batch or 1
    runtime = runtime_of(scenario, device)
    numbers = _numbers(scenario, device, runtime.passes_codes and _is_convolutional(network))
    weights = numbers.code_bytes * network.num_weights
    widest = max(network.num_elements, *(unit.num_results for unit in network.units))
    between = numbers.code_bytes if numbers.is_integer_only else get_format(numbers.between).bytes_per_element
    activations = 2.0 * between * batch * widest
    need, have = weights + activations, USABLE_FRAC * device.memory_capacity_bytes
    if need > have:
        change = "A smaller batch."
        lacking = Infeasible(what="memory of a device", need=need, have=have, unit="bytes", smallest_change=change)
        return InfeasibleAnswer(infeasible=lacking, settings=written)
    tariff = tariff_of(device, scenario.usd_per_hour, scenario.electricity)
    costs = layer_costs([layer for unit in network.units for layer in unit.layers], device, numbers, batch)
    if not runtime.fuses:
        costs = with_passes(costs, pass_costs(network, device, numbers, batch))
    return ImageModelAnswer(
        network=network,
        device=device,
        runtime=runtime,
        batch=batch,
        numbers=numbers,
        costs=costs,
        host_s=runtime.operator_s * num_operators(network),
        tariff=tariff,
        weight_bytes=weights,
        activation_bytes=activations,
        notes=(*_notes(scenario, runtime, numbers), *tariff.notes),
        settings=written,
    )


def _is_convolutional(network: Network) -> bool:
    return all(isinstance(layer, Convolution) for unit in network.units for layer in unit.layers)


def _notes(scenario: Scenario, runtime: NetworkRuntime, numbers: Numbers) -> tuple[str, ...]:
    apart = "run with them" if runtime.fuses else "are kernels of their own"
    found = [f"convolutions are timed as products; norms of batches and activations {apart} ({runtime.title})"]
    if numbers.is_integer_only and not scenario.integer_only:
        found.append(f"codes of {numbers.format} pass between convolutions ({runtime.title})")
    return tuple(found)


def _numbers(scenario: Scenario, device: Device, passes_codes: bool) -> Numbers:
    """The formats asked for; refuses integers that the device does not multiply, and integer-only floats."""
    found = find_format(scenario.weights or "fp16")
    if found is None or found.name not in (*FLOATS, *INTEGERS):
        raise ScenarioError(f"weights: got {scenario.weights!r}; write {', '.join((*FLOATS, *INTEGERS))}.")
    if found.name in INTEGERS and not can_multiply(found.name, device):
        raise ScenarioError(f"weights: {device.name} multiplies no {found.name}; write {', '.join(FLOATS)}.")
    if scenario.integer_only and found.name not in INTEGERS:
        raise ScenarioError(f'integer_only: got weights in {found.name}; write weights = "int8", or "int4_int4".')
    is_integer_only = bool(scenario.integer_only) or (passes_codes and found.name in INTEGERS)
    return Numbers(format=found.name, is_integer_only=is_integer_only)
