"""``orrery bits``: which format each layer takes, so that a model is perturbed least within limits."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from orrery.base.arguments import typed
from orrery.base.errors import ScenarioError
from orrery.base.units import percent, text
from orrery.catalog.devices import get_device
from orrery.catalog.engines import get_engine
from orrery.catalog.models import get_model
from orrery.execution.formats import can_multiply
from orrery.execution.memory import Infeasible
from orrery.hardware.device import Device
from orrery.kernels.ops import Gemm
from orrery.numerics.parse import parse_format
from orrery.numerics.registry import get_format
from orrery.planner.bits.fabric import USED_FRAC, Fabric
from orrery.planner.bits.front import front
from orrery.planner.bits.layer import Layer, layers_of
from orrery.planner.bits.options import UNITS, Options, arithmetic, options_of
from orrery.planner.bits.sensitivity import drawn_errors
from orrery.planner.bits.solve import Assignment, solve, uniform
from orrery.scenario.answer import to_json
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.bits_checkpoint import layers_in
from orrery.scenario.bits_files import read_layers, read_sensitivity
from orrery.scenario.fields_bits import BITS_BY_NAME
from orrery.scenario.format_circuits import SUM_TERMS, check_cost, describe
from orrery.scenario.inputs import Inputs, read_asked
from orrery.scenario.kinds import Count, Number, Switch, Word
from orrery.scenario.resolve import words

TOKENS, SEED = 16, 0
FABRIC = (
    f"latency: between two results of a pipeline whose layers share {percent(USED_FRAC)} of the fabric by their work; "
    "joules at the card's power limit"
)
SOURCES = ("model", "checkpoint", "layers")


class BitsQuestion(Inputs, table=BITS_BY_NAME):
    """Inputs of the integer program."""

    model: Word = None
    checkpoint: Word = None
    layers: Word = None
    device: Word = None
    formats: Word = None
    tokens: Count = None
    engine: Word = None
    integer_only: Switch = None
    cost: Word = None
    sum_terms: Count = None
    sensitivity: Word = None
    latency_ratio: Number = None
    size_ratio: Number = None
    energy_ratio: Number = None
    latency_s: Number = None
    size_bytes: Number = None
    energy_j: Number = None
    seed: Count = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentTotals:
    """Totals of an assignment."""

    name: str  # a format for all, or "mixed"
    perturbation_ratio: float
    latency_s: float
    size_bytes: float
    energy_j: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BitsAnswer:
    """The best assignment, those of one format for all, and the front."""

    what: str
    device: str
    best: Assignment
    limits: Mapping[str, float]  # latency, size, energy in base units
    front: tuple[Assignment, ...]
    notes: tuple[str, ...]

    @property
    def uniform(self) -> tuple[AssignmentTotals, ...]:
        """One format for every layer."""
        options = self.best.options
        return tuple(whole(format, uniform(options, format)) for format in options.formats)

    @property
    def groups(self) -> dict[str, Counter[str]]:
        """By group of layers: how many take each format."""
        options, found = self.best.options, dict[str, Counter[str]]()
        for layer, format in zip(options.layers, self.best.formats, strict=True):
            found.setdefault(layer.group, Counter())[format] += layer.count
        return found

    def to_json(self) -> dict[str, Any]:
        """The answer in the shape that scripts rely on; SI units."""
        options = self.best.options
        rows: list[dict[str, Any]] = [
            {
                "layer": layer.name,
                "group": layer.group,
                "format": options.formats[f],
                "perturbation": options.perturbation_ratio[i, f],
                "latency_s": options.latency_s[i, f],
                "size_bytes": options.size_bytes[i, f],
                "energy_j": options.energy_j[i, f],
            }
            for i, (layer, f) in enumerate(zip(options.layers, map(int, self.best.choice), strict=True))
        ]
        return to_json(
            {
                **_plain(whole("mixed", self.best)),
                "is_proven": self.best.is_proven,
                "formats": options.formats,
                "limits": {f"{name}_{UNITS[name]}": limit for name, limit in self.limits.items()},
                "uniform": [_plain(w) for w in self.uniform],
                "groups": self.groups,
                "assignment": rows,
                "front": [{**_plain(whole("mixed", a)), "layers_by_format": Counter(a.formats)} for a in self.front],
                "notes": self.notes,
            }
        )


def whole(name: str, assignment: Assignment) -> AssignmentTotals:
    """The sums of an assignment."""
    return AssignmentTotals(
        name=name,
        perturbation_ratio=assignment.perturbation_ratio,
        latency_s=assignment.total("latency"),
        size_bytes=assignment.total("size"),
        energy_j=assignment.total("energy"),
    )


def _plain(found: AssignmentTotals) -> dict[str, Any]:
    return {
        "name": found.name,
        "perturbation": found.perturbation_ratio,
        "latency_s": found.latency_s,
        "size_bytes": found.size_bytes,
        "energy_j": found.energy_j,
    }


@typed
def bits(**settings: Any) -> BitsAnswer | InfeasibleAnswer:
    """A format for each layer of a model, a checkpoint or a list of layers: least perturbation within limits.

    Limits are absolute (``latency_s``, ``size_bytes``, ``energy_j``) or shares of the worst uniform assignment
    (``latency_ratio``, …). What cannot be met comes back as ``InfeasibleAnswer`` with the least that can.
    """
    inputs = read_asked(BitsQuestion, settings, BITS_BY_NAME)
    if inputs.device is None:
        raise ScenarioError('device: is missing; write a name, such as device = "b200" (`orrery show devices`).')
    device, notes = get_device(inputs.device), list[str]()
    notes += device.notes
    fabric = _fabric(inputs, device)
    formats = _formats(inputs)
    layers, what = _layers(inputs, formats, notes)
    engine = get_engine(inputs.engine, "", device).kernels if inputs.engine else ""
    if inputs.integer_only:
        _check_integers(layers, formats, device)
        if all(f in x.times_s for x in layers for f in formats):
            notes.append("integer_only: every layer brings its measured times, so that joules alone are of codes")
    errors = _errors(layers, formats, device, inputs, notes)
    options = options_of(
        layers, formats, device, errors, engine, is_integer_only=bool(inputs.integer_only), fabric=fabric
    )
    notes += _describe(formats, device) if fabric is None else [describe(fabric.cost, fabric.num_terms), FABRIC]
    limits = _limits(inputs, options)
    best = solve(options, limits)
    if isinstance(best, Infeasible):
        return InfeasibleAnswer(infeasible=_in_settings(best, inputs, options), notes=tuple(notes))
    if (held := best.total("size")) > device.memory_capacity_bytes:
        notes.append(f"{text(held, 'bytes')} of weights are more than one {device.name} holds; costs are as if it did")
    if not best.is_proven:
        notes.append("the search was stopped by its time limit: a better assignment may exist")
    return BitsAnswer(
        what=what, device=device.name, best=best, limits=limits, front=front(options, limits), notes=tuple(notes)
    )


def _fabric(inputs: BitsQuestion, device: Device) -> Fabric | None:
    """The fabric to build circuits on; refuses devices without one, and settings of kernels beside it."""
    check_cost(inputs.cost, inputs.sum_terms)
    if inputs.cost is None:
        return None
    if not device.num_lookup_tables:
        raise ScenarioError(
            f'cost: {device.name} states no lookup tables; write an FPGA, such as device = "alveo-u280".'
        )
    if other := [name for name in ("engine", "integer_only") if getattr(inputs, name) is not None]:
        raise ScenarioError(f"{', '.join(other)}: of kernels, and circuits have none; leave out, or leave cost out.")
    cost = "dsp" if inputs.cost == "dsp" else "lut"
    return Fabric(device=device, cost=cost, num_terms=inputs.sum_terms or SUM_TERMS)


def _formats(inputs: BitsQuestion) -> tuple[str, ...]:
    read = parse_format if inputs.cost else get_format
    found = tuple(dict.fromkeys(read(word).name for word in words(inputs.formats or "")))
    if len(found) < 2:
        raise ScenarioError(f'formats: got {inputs.formats!r}; write two or more, such as formats = "bf16,fp8,nvfp4".')
    return found


def _check_integers(layers: Sequence[Layer], formats: Sequence[str], device: Device) -> None:
    """Refuse formats whose products do not begin and end in integers on the device, and layers that are no product."""
    for name in formats:
        if get_format(name).kind != "integer" or get_format(name).weight_only or not can_multiply(name, device):
            raise ScenarioError(
                f'integer_only: {device.name} multiplies no integers of {name}; write formats = "int8,int4_int4", or '
                "leave integer_only out."
            )
    if strange := next((x.name for x in layers if not isinstance(x.work, Gemm)), ""):
        raise ScenarioError(f"integer_only: {strange} is a block of experts; leave integer_only out.")


def _layers(inputs: BitsQuestion, formats: Sequence[str], notes: list[str]) -> tuple[tuple[Layer, ...], str]:
    """The layers, and what they are of."""
    given = [name for name in SOURCES if getattr(inputs, name) is not None]
    if len(given) != 1:
        text = f"got {' and '.join(given)}" if given else "all missing"
        raise ScenarioError(f'model, checkpoint and layers: {text}; write one, such as model = "llama-3.1-8b".')
    known = read_sensitivity(Path(inputs.sensitivity), formats) if inputs.sensitivity else {}
    if inputs.layers:
        if inputs.tokens is not None:
            raise ScenarioError("tokens: a list of layers says its own m; leave tokens out.")
        return _weighed(read_layers(Path(inputs.layers), formats), known), inputs.layers
    tokens = inputs.tokens or TOKENS
    if inputs.tokens is None:
        notes.append(f"tokens: {TOKENS} in a step (default)")
    notes.append("latency and energy are of these layers alone, on one device: no attention, norms or gaps between")
    if inputs.checkpoint:
        weights = {name: value for name, value in known.items() if isinstance(value, float)}
        found = layers_in(Path(inputs.checkpoint), tokens, formats, weights)
        notes.append("perturbation: squared error of the checkpoint's weights, times the weight given for a layer")
        return _weighed(found, known), inputs.checkpoint
    model = get_model(inputs.model or "")
    if not (found := layers_of(model, tokens)):
        raise ScenarioError(f"model: {model.name} has no linear layer to choose a format for; give another one.")
    return _weighed(found, known), model.name


def _weighed(layers: tuple[Layer, ...], known: Mapping[str, float | dict[str, float]]) -> tuple[Layer, ...]:
    """The layers with what a user knows of each; a name that is none of them is refused."""
    if strange := next((name for name in known if name not in {x.name for x in layers}), ""):
        raise ScenarioError(f"sensitivity: there is no layer {strange!r}; layers are called like {layers[0].name!r}.")

    def weighed(layer: Layer) -> Layer:
        value = known.get(layer.name)
        if isinstance(value, dict):
            return replace(layer, perturbations=value)
        return layer if value is None else replace(layer, weight_ratio=value)

    return tuple(weighed(layer) for layer in layers)


def _errors(
    layers: Sequence[Layer], formats: Sequence[str], device: Device, inputs: BitsQuestion, notes: list[str]
) -> Mapping[str, float]:
    """The relative squared error of each format, where some layer has none of its own."""
    if all(f in x.perturbations or f in x.errors for x in layers for f in formats):
        return {}
    seed = SEED if inputs.seed is None else inputs.seed
    notes.append(
        f"perturbation: relative squared error of rounding, estimated on drawn numbers (seed {seed}): normal weights, "
        "activations with outliers; bring --sensitivity or --checkpoint for your own"
    )
    return drawn_errors(formats, device, seed, is_fabric=inputs.cost is not None)


def _describe(formats: Sequence[str], device: Device) -> list[str]:
    """Which arithmetic a format runs in, where that is another."""
    runs = {format: arithmetic(format, device) for format in formats}
    return [f"{stored} weights run as {used} on {device.name}" for stored, used in runs.items() if stored != used]


def _limits(inputs: BitsQuestion, options: Options) -> dict[str, float]:
    """Latency, size and energy at most; the tighter where a share and an absolute value are given."""
    found: dict[str, float] = {}
    for metric, unit in UNITS.items():
        share: float | None = getattr(inputs, f"{metric}_ratio")
        value: float | None = getattr(inputs, f"{metric}_{unit}")
        both = [value] if value is not None else []
        if share is not None:
            both.append(share * float(options.uniform(metric).max()))
        if both:
            found[metric] = min(both)
    return found


def _in_settings(found: Infeasible, inputs: BitsQuestion, options: Options) -> Infeasible:
    """The smallest change as a setting that would do."""
    metric = next(name for name, unit in UNITS.items() if unit == found.unit)
    worst = float(options.uniform(metric).max())
    share = -(-found.need / worst * 1e4 // 1) / 1e4
    change = f"Write {metric}_ratio = {share:g}, or offer a format that costs less on this device."
    return replace(found, smallest_change=change)
