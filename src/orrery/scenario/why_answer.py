"""Why an answer of many calls takes what it takes: its groups of calls, one after the other."""

from collections.abc import Callable, Mapping

from orrery.base.units import text
from orrery.planner.money import Tariff
from orrery.reasoning.cost import CallCost
from orrery.scenario.answer_ways import Reasoned, SampleCount
from orrery.scenario.reason import Reason


def reasons_of(found: Reasoned, tariff: Tariff) -> Mapping[str, Callable[[], Reason]]:
    """Numbers of the way with the most samples, by the name that they are asked by."""
    way = found.ways[-1]
    return {
        "answer.time_s": lambda: _time(way),
        "answer.energy_j": lambda: _energy(way),
        "answer.usd": lambda: _usd(way, tariff),
    }


def _time(way: SampleCount) -> Reason:
    return Reason(
        name="answer.time_s",
        value=way.time_s,
        rule="the longest way through the groups of calls",
        parts=tuple(Reason(name=f"{c.name}: time_s", value=c.time_s, rule=_describe(c)) for c in way.calls),
    )


def _describe(call: CallCost) -> str:
    waves = f", {call.num_waves} waves" if call.num_waves > 1 else ""
    return f"bound by {call.bound_by}, {call.prefilled_tokens:,.0f} tokens read, {text(call.flops, 'flops')}{waves}"


def _energy(way: SampleCount) -> Reason:
    return Reason(
        name="answer.energy_j",
        value=way.energy_j,
        rule="of all groups of calls, shared by the answers made at once",
        parts=tuple(Reason(name=f"{c.name}: energy_j", value=c.energy_j, rule=_describe(c)) for c in way.calls),
    )


def _usd(way: SampleCount, tariff: Tariff) -> Reason:
    return Reason(
        name="answer.usd",
        value=way.usd,
        rule="devices x usd_per_hour / 3600 x time, shared by the answers made at "
        "once, and electricity where it is paid for",
        parts=(
            Reason(name="usd_per_hour", value=tariff.usd_per_hour, rule=tariff.because, facts=tariff.facts),
            _time(way),
        ),
    )
