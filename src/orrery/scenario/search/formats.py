"""The space of number formats: one for each linear layer of a model."""

import numpy as np

from orrery.hardware.device import Device
from orrery.planner.architecture.problem import Choice, Metric
from orrery.planner.architecture.toys import FormatLayers
from orrery.planner.bits.layer import Layer, product
from orrery.planner.bits.options import options_of
from orrery.planner.bits.sensitivity import drawn_errors
from orrery.scenario.search.costs import Costs

LIKENED = (
    "score: a stand-in, less the relative squared error of rounding every layer's numbers, estimated on drawn ones; "
    "`orrery bits` takes sensitivities and checkpoints"
)


def toy_layers(formats: tuple[str, ...], tokens: int) -> tuple[Layer, ...]:
    """The layers of the small network that is trained in formats."""
    return tuple(
        Layer(name=name, group="layers", work=product(tokens, n, k), num_parameters=n * k)
        for name, (n, k) in FormatLayers(formats=formats).shapes.items()
    )


def costs_of(
    layers: tuple[Layer, ...], formats: tuple[str, ...], device: Device, seed: int, *, is_toy: bool = False
) -> Costs:
    """Every layer in every format; the reference is the first format throughout."""
    options = options_of(layers, formats, device, drawn_errors(formats, device, seed))
    parent = np.zeros((1, len(layers)), np.int64)
    metrics = {
        "latency": Metric(table=options.latency_s),
        "energy": Metric(table=options.energy_j),
        "memory": Metric(table=options.size_bytes),
    }
    return Costs(
        choices=tuple(Choice(name=layer.name, alternatives=formats) for layer in layers),
        metrics=metrics,
        stand_in=Metric(table=-options.perturbation_ratio),
        likened=LIKENED,
        reference_name=f"all {formats[0]}",
        reference={name: float(found.of(parent)[0]) for name, found in metrics.items()},
        parent=parent,
        toy=FormatLayers(formats=formats) if is_toy else None,
        notes=("latency and energy: these layers' products alone, on one device",),
    )
