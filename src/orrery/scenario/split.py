"""One network over a device, a link and a server: where to cut it, as the link changes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from math import inf, isinf
from typing import Any

import numpy as np
from pydantic import Field

from orrery import kernels
from orrery.base.arguments import typed
from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.execution.edge.cuts import BestRange, Cut, best_ranges
from orrery.hardware.device import Device
from orrery.kernels.ops import Gemm
from orrery.models.networks import BUILDERS, Convolution, Network, network_of
from orrery.scenario.answer import to_json
from orrery.scenario.fields_split import SPLIT_BY_NAME
from orrery.scenario.inputs import Inputs, read_asked
from orrery.scenario.kinds import Number, Word
from orrery.scenario.validation_errors import limited

BYTES_PER_S_OF_MBIT = 1e6 / 8.0
ELEMENT_BYTES = {"fp32": 4.0, "fp16": 2.0, "bf16": 2.0}
MAX_RATES, MAX_BOTTLENECKS = 1000, 100


class SplitQuestion(Inputs):
    """A network, both ends, and the link."""

    model: Word = None
    device: Word = None
    server: Word = None
    link_rates: Word = None
    round_trip_s: Number = Field(**limited(SPLIT_BY_NAME["round_trip_s"]))
    input_bytes: Number = Field(**limited(SPLIT_BY_NAME["input_bytes"]))
    precision: Word = None
    bottleneck: Word = None
    bottleneck_bits: Number = Field(**limited(SPLIT_BY_NAME["bottleneck_bits"]))
    filter_pass_frac: Number = Field(**limited(SPLIT_BY_NAME["filter_pass_frac"]))
    filter_macs: Number = Field(**limited(SPLIT_BY_NAME["filter_macs"]))
    sending_w: Number = Field(**limited(SPLIT_BY_NAME["sending_w"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class AtRate:
    """The best cut at one rate, beside both extremes."""

    link_bytes_per_s: float
    best: str
    delay_s: float
    energy_j: float  # of the device
    device_s: float  # all on the device
    server_s: float  # all on the server


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SplitAnswer:
    """Every cut, the ranges of link rates in which each is best, and the rates that were asked for."""

    cuts: tuple[Cut, ...]
    ranges: tuple[BestRange, ...]
    rates: tuple[AtRate, ...]
    notes: tuple[str, ...]
    settings: Mapping[str, Any]

    @property
    def split_ranges(self) -> tuple[tuple[float, float], ...]:
        """Link rates (bytes/s) between which cutting inside the network answers first; empty where it never does."""
        found = list[tuple[float, float]]()
        for each in self.ranges:
            if not 0 < each.index < len(self.cuts) - 1:
                continue
            touches = bool(found) and found[-1][0] == each.to_bytes_per_s
            upper = found.pop()[1] if touches else each.to_bytes_per_s
            found.append((each.from_bytes_per_s, upper))
        return tuple(found)

    def to_json(self) -> dict[str, Any]:
        """The answer in the shape that scripts rely on; SI units; null: no bound."""
        return to_json(
            {
                "cuts": self.cuts,
                "ranges": [
                    {
                        "cut": self.cuts[r.index].name,
                        "from_bytes_per_s": _bound(r.from_bytes_per_s),
                        "to_bytes_per_s": _bound(r.to_bytes_per_s),
                    }
                    for r in self.ranges
                ],
                "split_ranges_bytes_per_s": [[_bound(rate) for rate in ends] for ends in self.split_ranges],
                "rates": self.rates,
                "settings": self.settings,
                "notes": self.notes,
            }
        )


def _bound(rate: float) -> float | None:
    return None if isinf(rate) else rate


@typed
def split(**settings: Any) -> SplitAnswer:
    """The cut that answers first at each link rate, and the ranges of rates in which each cut does.

    Settings are those of `orrery split`: model, device, server, link_rates, round_trip_s, input_bytes, precision,
    bottleneck, bottleneck_bits, filter_pass_frac, filter_macs, sending_w.
    """
    inputs = read_asked(SplitQuestion, settings, SPLIT_BY_NAME)
    missing = [name for name in ("model", "device", "server", "link_rates") if getattr(inputs, name) is None]
    if missing:
        examples = ", ".join(f"{name} = {SPLIT_BY_NAME[name].example}" for name in missing)
        raise ScenarioError(f"{', '.join(missing)}: missing; write {examples}.")
    name, format = str(inputs.model), inputs.precision or "fp32"
    if name not in BUILDERS:
        raise ScenarioError(f"model: got {name[:80]!r}; write {', '.join(BUILDERS)}.")
    if format not in ELEMENT_BYTES:
        raise ScenarioError(f"precision: got {format[:80]!r}; write {', '.join(ELEMENT_BYTES)}.")
    device, server = get_device(str(inputs.device)), get_device(str(inputs.server))
    network = network_of(name)
    cuts = cuts_of(network, device, server, format, inputs.input_bytes)
    if inputs.bottleneck is not None:
        bits = inputs.bottleneck_bits or 8.0 * ELEMENT_BYTES[format]
        placements = bottlenecks_of(inputs.bottleneck, network)
        cuts = with_bottlenecks(cuts, network, device, server, format, placements, bits)
    elif inputs.bottleneck_bits is not None:
        raise ScenarioError('bottleneck_bits: set without bottleneck; write bottleneck = "conv2_3:12" beside it.')
    cuts = filtered(cuts, network, *_filter(inputs))
    way_s = inputs.round_trip_s or 0.0
    watts = device.power_limit_w, inputs.sending_w or device.idle_power_w, device.idle_power_w
    return SplitAnswer(
        cuts=cuts,
        ranges=best_ranges(cuts, way_s),
        rates=tuple(_at(cuts, rate, way_s, watts) for rate in _rates(str(inputs.link_rates))),
        notes=(
            "energy: the device draws its power limit while it computes and its idle power while it waits",
            "times are of convolutions as products, with constants of the devices or of the nearest measured ones",
        ),
        settings=inputs.written(),
    )


def cuts_of(
    network: Network, device: Device, server: Device, format: str, input_bytes: float | None = None
) -> tuple[Cut, ...]:
    """All on the server, a cut behind each unit but the last, all on the device."""
    head = [0.0, *accumulate(_unit_s(network, device, format))]
    later = _unit_s(network, server, format)
    tail = [sum(later[i:]) for i in range(len(later) + 1)]
    sent = [input_bytes or float(network.num_pixels)]
    sent += [ELEMENT_BYTES[format] * unit.num_results for unit in network.units[:-1]]
    names = ["server", *(unit.name for unit in network.units[:-1]), "device"]
    parts = zip(names, head, tail, [*sent, 0.0], strict=True)
    return tuple(Cut(name=n, head_s=h, tail_s=t, sent_bytes=b) for n, h, t, b in parts)


def bottlenecks_of(text: str, network: Network) -> list[tuple[int, int]]:
    """Index of the unit and channels of each "AFTER:CHANNELS" with commas."""
    names = [unit.name for unit in network.units[:-1]]
    parts = text.split(",")
    if len(parts) > MAX_BOTTLENECKS:
        raise ScenarioError(f"bottleneck: {len(parts)} of them; write at most {MAX_BOTTLENECKS}.")
    found = list[tuple[int, int]]()
    for part in parts:
        after, _, channels = part.strip().partition(":")
        if after not in names:
            raise ScenarioError(
                f"bottleneck: got {part[:80]!r}; write UNIT:CHANNELS with a unit of {', '.join(names)}."
            )
        index = names.index(after)
        most = network.units[index].num_channels
        if not (channels.isascii() and channels.isdigit() and len(channels) < 9 and 1 <= int(channels) <= most):
            raise ScenarioError(
                f"bottleneck: got {part[:80]!r}; write 1 to {most} channels, such as {after}:{most // 8}."
            )
        found.append((index, int(channels)))
    return found


def with_bottlenecks(
    cuts: tuple[Cut, ...],
    network: Network,
    device: Device,
    server: Device,
    format: str,
    placements: Sequence[tuple[int, int]],
    bits: float,
) -> tuple[Cut, ...]:
    """The plain cuts of ``cuts_of`` and, before the last, those at bottlenecks: (unit, channels) each."""
    between = [network.units[i].squeezed(channels) for i, channels in placements]
    encoding = layer_times_s([b.encoder for b in between], device, format)
    decoding = layer_times_s([b.decoder for b in between], server, format)
    more = [
        Cut(
            name=f"{network.units[i].name}:{channels}",
            head_s=cuts[i + 1].head_s + encode_s,
            tail_s=cuts[i + 1].tail_s + decode_s,
            sent_bytes=b.num_results * bits / 8.0,
        )
        for (i, channels), b, encode_s, decode_s in zip(placements, between, encoding, decoding, strict=True)
    ]
    return (*cuts[:-1], *more, cuts[-1])


def filtered(cuts: tuple[Cut, ...], network: Network, macs: float, passed_frac: float) -> tuple[Cut, ...]:
    """Cuts inside the network with a filter of what leaves the head; both extremes are as they were.

    Its multiply-adds run at the pace at which the device runs the network's.
    """
    filter_s = cuts[-1].head_s * macs / network.num_macs
    inside = (replace(c, head_s=c.head_s + filter_s, passed_frac=passed_frac) for c in cuts[1:-1])
    return (cuts[0], *inside, cuts[-1])


def _filter(inputs: SplitQuestion) -> tuple[float, float]:
    """Multiply-adds and the share that passes; no filter is one of none that passes all."""
    macs, passed = inputs.filter_macs, inputs.filter_pass_frac
    if (macs is None) != (passed is None):
        missing = SPLIT_BY_NAME["filter_macs" if macs is None else "filter_pass_frac"]
        raise ScenarioError(f"{missing.name}: missing; a filter has both, write {missing.name} = {missing.example}.")
    return (0.0, 1.0) if macs is None or passed is None else (macs, passed)


def _unit_s(network: Network, device: Device, format: str) -> list[float]:
    """Seconds of each unit."""
    times = layer_times_s([layer for unit in network.units for layer in unit.layers], device, format)
    ends = [0, *accumulate(len(unit.layers) for unit in network.units)]
    return [sum(times[a:b]) for a, b in pairwise(ends)]


def layer_times_s(layers: Sequence[Convolution], device: Device, format: str) -> list[float]:
    """Seconds of each convolution as a product of (positions) x (taps x inputs) x (outputs)."""
    sizes = np.array([(x.positions, x.outputs, x.taps * x.inputs) for x in layers], np.int64)
    m, n, k = sizes.T
    times = kernels.predict(Gemm(m=m, n=n, k=k, format=format, quantises_input=False), device).time_s
    return [float(x) for x in times]


def _at(cuts: tuple[Cut, ...], rate: float, way_s: float, watts: tuple[float, float, float]) -> AtRate:
    best = min(cuts, key=lambda c: (c.delay_s(rate, way_s), c.mean_bytes))
    return AtRate(
        link_bytes_per_s=rate,
        best=best.name,
        delay_s=best.delay_s(rate, way_s),
        energy_j=best.energy_j(rate, way_s, *watts),
        device_s=cuts[-1].delay_s(rate, way_s),
        server_s=cuts[0].delay_s(rate, way_s),
    )


def _rates(text: str) -> list[float]:
    """Bytes per second of Mbit/s with commas."""
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = list[float]()
    if not 0 < len(found) <= MAX_RATES or not all(0.0 < rate < inf for rate in found):
        raise ScenarioError(f'link_rates: got {text[:80]!r}; write Mbit/s above 0, such as link_rates = "1,10,100".')
    return [rate * BYTES_PER_S_OF_MBIT for rate in found]
