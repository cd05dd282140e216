"""Rejected configurations: the nearest misses of each kind, and why fewer devices are not enough."""

from collections import Counter
from dataclasses import dataclass

from orrery.base.units import text
from orrery.reports.plan_alternatives import WHY
from orrery.reports.words import counted, format_value
from orrery.web.plans.candidate import Plain

MISSES = 4
"""Maximum number of misses shown of each kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One reason, how many candidates it struck out, and those that came closest."""

    name: str
    misses: tuple[str, ...]
    num_more: int


def kinds(answer: Plain) -> tuple[Kind, ...]:
    """Every reason, the most frequent first."""
    found: list[Kind] = []
    for reason, count in Counter(r["reason"] for r in answer["rejected"]).most_common():
        near = sorted((r for r in answer["rejected"] if r["reason"] == reason), key=_excess)
        misses = tuple(dict.fromkeys(shortfall(r) for r in near))
        name = f"{count:,} {WHY.get(reason, reason)}"
        found.append(Kind(name=name, misses=misses[:MISSES], num_more=max(0, len(misses) - MISSES)))
    return tuple(found)


def counts(answer: Plain) -> str:
    """How many ways were tried, and how many work."""
    tried = answer["num_plans"] + len(answer["rejected"])
    return (
        f"{tried:,} configurations were evaluated (device, layout, formats) at {answer['evaluated']:,} loads in "
        f"{answer['seconds']:.1f} s; {answer['num_plans']:,} of them work."
    )


def fewer(answer: Plain) -> str:
    """Why the first plan does not take fewer devices."""
    if not answer["plans"]:
        return ""
    best = answer["plans"][0]
    if best["num_devices"] == 1:
        return "1 device is the minimum."
    if best["replicas"] > 1:
        less = best["replicas"] - 1
        carried = less * best["highest_requests_per_s"] / best["replicas"]
        verb = "carries" if less == 1 else "carry"
        return (
            f"{counted(less, 'replica')} of it {verb} {format_value(carried, 'requests_per_s')}, less than the "
            f"arrival rate."
        )
    other = next((p for p in answer["plans"] if p["num_devices"] < best["num_devices"]), None)
    if other is not None:
        return (
            f"{counted(other['num_devices'], other['device'] + ' device')} "
            f"{'is' if other['num_devices'] == 1 else 'are'} enough; see the list below."
        )
    short = [r for r in answer["rejected"] if _devices(r) < best["num_devices"]]
    if not short:
        return "No configuration with fewer devices costs less."
    return f"The closest rejected configuration with fewer devices is {shortfall(min(short, key=_excess))}"


def shortfall(rejected: Plain) -> str:
    """The need, the supply, and a value that would work; with enough digits to see the difference."""
    need = have = ""
    for digits in (3, 4, 5):
        need, have = (_quantity(rejected[side], rejected["unit"], digits) for side in ("need", "have"))
        if need != have:
            break
    return f"{rejected['what']}: needs {need}, has {have}. {rejected['smallest_change']}"


def _quantity(value: float, unit: str, digits: int) -> str:
    return f"{value:,.0f} {unit}" if unit in ("tokens", "devices") else text(value, unit, digits)


def _devices(rejected: Plain) -> float:
    if rejected["reason"] == "devices":
        return rejected["need"]
    layout = rejected["layout"]
    return float(layout["tp"] * layout["pp"] * layout["dp"] * layout["cp"])


def _excess(rejected: Plain) -> float:
    """Ratio of the need to the supply, above 1."""
    need, have = rejected["need"], rejected["have"]
    return max(need / have, have / need) if need and have else float("inf")
