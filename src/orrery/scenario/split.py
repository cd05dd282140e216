"""One network over a device, a link and a server: where to cut it, as the link changes."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, isinf
from typing import Any

from orrery.base.arguments import typed
from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.catalog.links import NAMES, uplink
from orrery.execution.edge.cuts import BestRange, Cut, best_ranges
from orrery.execution.edge.exits import Exit
from orrery.execution.edge.placement import CONVERTED, Ends, converted, cuts_of, filtered, with_bottlenecks
from orrery.execution.edge.session import Watts
from orrery.models.networks import Network
from orrery.scenario.answer import to_json
from orrery.scenario.fields_split import SPLIT_BY_NAME
from orrery.scenario.inputs import Inputs, read_asked
from orrery.scenario.kinds import Count, Number, Word
from orrery.scenario.link_trace import BYTES_PER_S_OF_MBIT
from orrery.scenario.split_parts import bottlenecks_of, exits_of, network_named, rates_of, widths_of
from orrery.scenario.split_session import Session, SessionInputs, session

ELEMENT_BYTES = {"fp32": 4.0, "fp16": 2.0, "bf16": 2.0}
J_PER_WH = 3600.0


class SplitQuestion(Inputs, table=SPLIT_BY_NAME):
    """A network, both ends, and the link."""

    model: Word = None
    input_tokens: Count = None
    device: Word = None
    server: Word = None
    link_rates: Word = None
    round_trip_s: Number = None
    input_bytes: Number = None
    precision: Word = None
    sent_bits: Number = None
    bottleneck: Word = None
    bottleneck_bits: Number = None
    exits: Word = None
    easy_frac: Number = None
    converter: Word = None
    filter_pass_frac: Number = None
    filter_macs: Number = None
    sending_w: Number = None
    link_trace: Word = None
    frames_per_s: Number = None
    limit_s: Number = None
    storage_bytes_per_s: Number = None
    battery_wh: Number = None
    seed: Count = None


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
    """Every cut, the ranges of link rates in which each is best, and the rates that were asked for.

    ``converter_pays_below_frac``: the share of easy inputs below which converting all beats the first exit on the
    device; None without a converter.
    """

    cuts: tuple[Cut, ...]
    ranges: tuple[BestRange, ...]
    rates: tuple[AtRate, ...]
    notes: tuple[str, ...]
    settings: Mapping[str, Any]
    session: Session | None = None
    converter_pays_below_frac: float | None = None

    @property
    def split_ranges(self) -> tuple[tuple[float, float], ...]:
        """Link rates (bytes/s) between which cutting inside the network answers first; empty where it never does."""
        found = list[tuple[float, float]]()
        for each in self.ranges:
            if not self.cuts[each.index].sent_bytes or each.index == 0:
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
                "converter_pays_below_frac": self.converter_pays_below_frac,
                "session": self.session,
                "settings": self.settings,
                "notes": self.notes,
            }
        )


def _bound(rate: float) -> float | None:
    return None if isinf(rate) else rate


@typed
def split(**settings: Any) -> SplitAnswer:
    """The cut that answers first at each link rate, the ranges of rates in which each cut does, and a session.

    Settings are those of `orrery split`: model, device, server, link_rates or link_trace, and the others of its help.
    """
    inputs = read_asked(SplitQuestion, settings, SPLIT_BY_NAME)
    missing = [name for name in ("model", "device", "server") if getattr(inputs, name) is None]
    if inputs.link_rates is None and inputs.link_trace is None:
        missing.append("link_rates")
    if missing:
        examples = ", ".join(f"{name} = {SPLIT_BY_NAME[name].example}" for name in missing)
        raise ScenarioError(f"{', '.join(missing)}: missing; write {examples}.")
    network = network_named(str(inputs.model), inputs.input_tokens)
    ends = _ends(inputs)
    exits = _exits(inputs, network)
    cuts = _cuts(inputs, network, ends, exits)
    way_s, device = _way_s(inputs), ends.device
    watts = Watts(
        busy_w=device.power_limit_w, sending_w=inputs.sending_w or device.idle_power_w, idle_w=device.idle_power_w
    )
    rates = rates_of(inputs.link_rates) if inputs.link_rates is not None else []
    return SplitAnswer(
        cuts=cuts,
        ranges=best_ranges(cuts, way_s),
        rates=tuple(_at(cuts, rate, way_s, watts) for rate in rates),
        notes=_notes(inputs),
        settings=inputs.written(),
        session=_session(inputs, cuts, network, ELEMENT_BYTES[ends.format], watts),
        converter_pays_below_frac=_converter_pays_below(cuts, network, ends, exits),
    )


def _notes(inputs: SplitQuestion) -> tuple[str, ...]:
    found = (
        "energy: the device draws its power limit while it computes and its idle power while it waits",
        "times are of convolutions as products, with constants of the devices or of the nearest measured ones",
    )
    if inputs.link_trace not in NAMES:
        return found
    link = uplink(str(inputs.link_trace))
    median = f"a median of {link.each_way_bytes_per_s / BYTES_PER_S_OF_MBIT:.3g} Mbit/s up ({link.basis})"
    drawn = f"link_trace: drawn around {median}; its spread and how fast it moves are assumed"
    way = () if inputs.round_trip_s is not None else (f"round_trip_s: {link.latency_s:g}, of {inputs.link_trace}",)
    return (*found, drawn, *way)


def _way_s(inputs: SplitQuestion) -> float:
    """The round trip that is set, or that of the named uplink."""
    if inputs.round_trip_s is not None:
        return inputs.round_trip_s
    return uplink(str(inputs.link_trace)).latency_s if inputs.link_trace in NAMES else 0.0


def _ends(inputs: SplitQuestion) -> Ends:
    format = inputs.precision or "fp32"
    if format not in ELEMENT_BYTES:
        raise ScenarioError(f"precision: got {format[:80]!r}; write {', '.join(ELEMENT_BYTES)}.")
    device, server = get_device(str(inputs.device)), get_device(str(inputs.server))
    sent_bytes = ELEMENT_BYTES[format] if inputs.sent_bits is None else inputs.sent_bits / 8.0
    return Ends(device=device, server=server, format=format, sent_bytes=sent_bytes)


def _exits(inputs: SplitQuestion, network: Network) -> list[Exit]:
    if inputs.exits is None:
        for name in ("easy_frac", "converter"):
            if getattr(inputs, name) is not None:
                raise ScenarioError(f'{name}: set without exits; write exits = "{network.units[0].name}" beside it.')
        return []
    return exits_of(inputs.exits, network, inputs.easy_frac)


def _cuts(inputs: SplitQuestion, network: Network, ends: Ends, exits: list[Exit]) -> tuple[Cut, ...]:
    cuts = cuts_of(network, ends, inputs.input_bytes, exits)
    if inputs.bottleneck is not None:
        bits = inputs.bottleneck_bits or 8.0 * ends.sent_bytes
        cuts = with_bottlenecks(cuts, network, ends, bottlenecks_of(inputs.bottleneck, network), bits)
    elif inputs.bottleneck_bits is not None:
        raise ScenarioError('bottleneck_bits: set without bottleneck; write bottleneck = "conv2_3:12" beside it.')
    cuts = filtered(cuts, network, *_filter(inputs))
    if inputs.converter is None:
        return cuts
    return (*cuts[:-1], converted(network, ends, widths_of(inputs.converter, network), exits[0]), cuts[-1])


def _converter_pays_below(cuts: tuple[Cut, ...], network: Network, ends: Ends, exits: list[Exit]) -> float | None:
    """The easy share at which converting everything takes as long as the first exit alone, on the device.

    trunk + branch + (1 - easy) rest = converter + trunk + branch, so easy = 1 - converter / rest.
    """
    found = [cut for cut in cuts if cut.name == CONVERTED]
    if not found:
        return None
    none, every = (
        cuts_of(network, ends, exits=[Exit(index=exits[0].index, easy_frac=share)])[-1].head_s for share in (0.0, 1.0)
    )
    return max(0.0, 1.0 - (found[0].head_s - every) / (none - every))


def _filter(inputs: SplitQuestion) -> tuple[float, float]:
    """Multiply-adds and the share that passes; no filter is one of none that passes all."""
    macs, passed = inputs.filter_macs, inputs.filter_pass_frac
    if (macs is None) != (passed is None):
        missing = SPLIT_BY_NAME["filter_macs" if macs is None else "filter_pass_frac"]
        raise ScenarioError(f"{missing.name}: missing; a filter has both, write {missing.name} = {missing.example}.")
    return (0.0, 1.0) if macs is None or passed is None else (macs, passed)


def _session(
    inputs: SplitQuestion, cuts: tuple[Cut, ...], network: Network, element_bytes: float, watts: Watts
) -> Session | None:
    if inputs.link_trace is None:
        for name in ("frames_per_s", "limit_s", "storage_bytes_per_s", "battery_wh", "seed"):
            if getattr(inputs, name) is not None:
                raise ScenarioError(f'{name}: has no effect without link_trace; write link_trace = "4g" beside it.')
        return None
    about = SessionInputs(
        trace=inputs.link_trace,
        seed=inputs.seed or 0,
        frame_s=1.0 / (inputs.frames_per_s or 1.0),
        limit_s=inputs.limit_s or inf,
        way_s=_way_s(inputs),
        watts=watts,
        storage_bytes_per_s=inputs.storage_bytes_per_s or 0.0,
        battery_j=(inputs.battery_wh or 0.0) * J_PER_WH,
    )
    return session(cuts, network, element_bytes, about)


def _at(cuts: tuple[Cut, ...], rate: float, way_s: float, watts: Watts) -> AtRate:
    best = min(cuts, key=lambda c: (c.delay_s(rate, way_s), c.mean_bytes))
    return AtRate(
        link_bytes_per_s=rate,
        best=best.name,
        delay_s=best.delay_s(rate, way_s),
        energy_j=best.energy_j(rate, way_s, watts.busy_w, watts.sending_w, watts.idle_w),
        device_s=cuts[-1].delay_s(rate, way_s),
        server_s=cuts[0].delay_s(rate, way_s),
    )
