"""Set-ups of split networks asked of orrery split: what each place of handing over takes at a rate of the radio."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orrery.evidence.paper_file import Setup
from orrery.execution.edge.cuts import Cut
from orrery.scenario.split import SplitAnswer, split

MBIT_PER_BYTE_PER_S = 8e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Trip:
    """One input from capture to answer."""

    delay_s: float
    energy_j: float  # of the device


def answer_at(setup: Setup, model: str | Path, **more: Any) -> SplitAnswer:
    """The answer for the set-up's device, server and way, at the rates that it tries."""
    rates = ",".join(f"{MBIT_PER_BYTE_PER_S * rate:.10g}" for rate in setup.numbers("radio_rates_swept"))
    settings: Mapping[str, Any] = {
        "model": str(model),
        "device": setup.word("device"),
        "server": setup.word("server"),
        "round_trip_s": setup.number("radio_s"),
        "input_bytes": setup.number("input_bytes"),
        "link_rates": rates,
    }
    return split(**settings, **more)


def cut_named(answer: SplitAnswer, name: str) -> Cut:
    """The place of that name."""
    return next(cut for cut in answer.cuts if cut.name == name)


def at(setup: Setup, cut: Cut, rate_bytes_per_s: float) -> Trip:
    """One input handed over at that place, at that rate of the radio."""
    way_s, watts = setup.number("radio_s"), [setup.number(name) for name in ("busy_w", "sending_w", "idle_w")]
    return Trip(delay_s=cut.delay_s(rate_bytes_per_s, way_s), energy_j=cut.energy_j(rate_bytes_per_s, way_s, *watts))
