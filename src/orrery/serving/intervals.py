"""Joint intervals: a few unsure factors of an answer, pushed through what its metrics have to do with each other.

What is not known well of a run is how fast its machines go (``pace``), how long first tokens wait beyond that
(``first``) and what the boards draw (``power``). Each is a factor with four quantiles. An end of an interval is what
the metrics would be with the factors at that quantile, all slow or all fast, so between ends holds what holds between
values:

    latency end      = ttft end + (output - 1) x tpot end         wherever it holds for the values
    rate's low end   x latency's high end = rate x latency        (Little's law: as many are in flight)
    energy a token   = power / rate; both unsure on their own, so half-widths add as squares, in the logarithm

and no end passes a bound: a token is not faster than reading the active weights once at the datasheet's bandwidth, a
prompt not faster than its arithmetic at the peak, boards draw between idle and their limit. What is given (the rate of
arrivals that are served in time) has no interval. An open loop near its highest rate waits for the queue

    wait ~ 1 / (1 - load),    load = rate / highest rate,    and the load is as unsure as the pace

so its first tokens' ends move apart as the load nears 1, by at most ``MAX_WAITING``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, hypot, log

from orrery.base.cost import Interval, Spread
from orrery.base.units import percent

ENDS = ("low_80", "high_80", "low_95", "high_95")
OTHER_END = {"low_80": "high_80", "high_80": "low_80", "low_95": "high_95", "high_95": "low_95"}
RATES = ("requests_per_s", "output_tokens_per_s", "total_tokens_per_s")

MAX_WAITING = 30.0
"""Times that a queue may grow or shrink between an answer and its interval's end: runs end, and clients give up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors:
    """Error factors of an answer, as truth / prediction."""

    pace: Spread  # of everything that machines do
    first: Spread  # of the time to the first token, but for what it waits for a slot
    power: Spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Physical bounds; a value beyond a bound is not moved, and its end is the value."""

    least_tpot_s: float = 0.0
    least_ttft_s: float = 0.0
    least_power_w: float = 0.0
    most_power_w: float = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The metrics of one answer, and what ties them together."""

    ttft_s: float
    tpot_s: float
    latency_s: float
    requests_per_s: float
    power_w: float
    steps: float  # tokens of a request after its first
    waiting_s: float = 0.0  # of the time to the first token: for a slot, which frees at the machines' pace
    is_one_request: bool = True  # the latency is that of a request or a batch, not of a whole run of many
    load_frac: float = 0.0  # of an open loop: the rate of arrivals over the highest that can be served; else 0


def joint(values: Mapping[str, float], figures: Figures, factors: Factors, bounds: Bounds) -> dict[str, Interval]:
    """An interval for each of ``values`` that is unsure, all of them by the same factors."""
    ratios = ratios_of(figures, factors, bounds)
    return {name: ratios[name].around(value) for name, value in values.items() if name in ratios}


def ratios_of(figures: Figures, factors: Factors, bounds: Bounds) -> dict[str, Spread]:
    """By metric, its ends over its value."""
    ends = {end: _times(figures, factors, bounds, end) for end in ENDS}
    pace = factors.pace.because
    found = {
        name: _spread({end: ends[end][name] for end in ENDS}, why)
        for name, why in (("ttft_s", factors.first.because), ("tpot_s", pace), ("latency_s", pace))
    }
    power = found["power_w"] = _power(figures, factors, bounds)
    if figures.load_frac and figures.load_frac < 1.0:
        return found | {"energy_j_per_token": power}
    slower = "latency_s" if not figures.load_frac else "pace"  # a backlog leaves at the machines' pace
    rate = _spread({end: 1.0 / ends[OTHER_END[end]][slower] for end in ENDS}, pace)
    return found | dict.fromkeys(RATES, rate) | {"energy_j_per_token": quotient(power, rate)}


def _spread(ends: Mapping[str, float], because: str) -> Spread:
    return Spread(**{f"{end}_ratio": ends[end] for end in ENDS}, because=because)


def _times(f: Figures, factors: Factors, bounds: Bounds, end: str) -> dict[str, float]:
    """The times with every factor at one quantile, over the times as they are."""
    pace, first = (float(getattr(s, f"{end}_ratio")) for s in (factors.pace, factors.first))
    tpot_s = _not_below(f.tpot_s * pace, f.tpot_s, bounds.least_tpot_s)
    waiting_s = min(f.waiting_s, f.ttft_s)
    ttft_s = waiting_s * pace + (f.ttft_s - waiting_s) * first * queue_ratio(f.load_frac, pace)
    ttft_s = _not_below(ttft_s, f.ttft_s, bounds.least_ttft_s)
    before, after = f.ttft_s + f.steps * f.tpot_s, ttft_s + f.steps * tpot_s
    return {
        "ttft_s": _ratio(ttft_s, f.ttft_s),
        "tpot_s": _ratio(tpot_s, f.tpot_s),
        "latency_s": _ratio(after, before) if f.is_one_request else pace,
        "pace": pace,
    }


def _ratio(end: float, value: float) -> float:
    return end / value if value > 0 else 1.0


def _not_below(end: float, value: float, bound: float) -> float:
    """An end no lower than a bound; but a value below it (speculation, a cache's hits) is what it is."""
    return max(end, min(value, bound))


def queue_ratio(load_frac: float, pace: float) -> float:
    """How much longer first tokens of an open loop take when machines take ``pace`` times as long.

    Of the time a share ``load`` waits. Below saturation the wait goes as 1 / (1 - load); beyond it, as the backlog
    1 - 1 / load that the run ends with. Where ``pace`` crosses from one to the other, the wait is ``MAX_WAITING``
    times as long or short.
    """
    if load_frac <= 0.0:
        return 1.0
    now, then = (_slack(load_frac), _slack(load_frac * pace))
    is_crossed = (load_frac < 1.0) != (load_frac * pace < 1.0)
    if load_frac < 1.0:
        grown = MAX_WAITING if is_crossed else min(now / then, MAX_WAITING)
    else:
        grown = 1.0 / MAX_WAITING if is_crossed else max(then / now, 1.0 / MAX_WAITING)
    share = min(load_frac, 1.0)
    return 1.0 - share + share * grown


def _slack(load_frac: float) -> float:
    """Distance of a load from saturation, on either side; a little, where it is there."""
    return max(1.0 - load_frac if load_frac < 1.0 else 1.0 - 1.0 / load_frac, 1e-6)


def _power(f: Figures, factors: Factors, bounds: Bounds) -> Spread:
    low, high = min(bounds.least_power_w, f.power_w), max(bounds.most_power_w, f.power_w)
    ends = {end: min(max(f.power_w * getattr(factors.power, f"{end}_ratio"), low), high) for end in ENDS}
    return _spread({end: _ratio(w, f.power_w) for end, w in ends.items()}, factors.power.because)


def quotient(over: Spread, under: Spread) -> Spread:
    """The spread of one value over another whose errors are independent: half-widths add as squares, in logarithms."""

    def end(name: str) -> float:
        sign = -1.0 if name.startswith("low") else 1.0
        top, bottom = getattr(over, f"{name}_ratio"), getattr(under, f"{OTHER_END[name]}_ratio")
        return exp(sign * hypot(log(top), log(bottom)))

    return _spread({name: end(name) for name in ENDS}, f"power: {over.because}; rate: {under.because}")


def difference_interval(a: float, around_a: Interval, b: float, around_b: Interval, *, shared_frac: float) -> Interval:
    """The interval of b / a, where a share of both variances is one and the same error (``shared_frac``, 0 to 1).

    Half-widths h of logarithms join as those of a difference of correlated errors,

        h = sqrt(ha^2 + hb^2 - 2 shared ha hb)

    with an end of b taken against the opposite end of a, which raises the ratio as it does.
    """

    def end(name: str) -> float:
        sign = -1.0 if name.startswith("low") else 1.0
        hb = abs(log(getattr(around_b, name) / b))
        ha = abs(log(getattr(around_a, OTHER_END[name]) / a))
        return b / a * exp(sign * max(ha**2 + hb**2 - 2.0 * shared_frac * ha * hb, 0.0) ** 0.5)

    return Interval(
        **{name: end(name) for name in ENDS}, because=f"{percent(shared_frac)} of both errors is the same one"
    )
