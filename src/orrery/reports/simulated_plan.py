"""Plans that were held against a simulation of their traffic, as a table."""

from orrery.planner.rejection_reasons import described
from orrery.reports.report import Section, Table
from orrery.reports.words import format_value
from orrery.scenario.plan_simulated import SimulatedPlans


def held_against(found: SimulatedPlans) -> Section:
    """Percentiles of each plan's simulated requests, and whether the objectives hold."""
    rows: list[tuple[str, ...]] = []
    for number, one in enumerate(found.simulated, 1):
        s = one.answer.summary
        times = (s.ttft.percentile_s(99.0), s.tpot.percentile_s(99.0), s.e2el.percentile_s(99.0))
        rows.append(
            (
                str(number),
                described(one.operation.candidate),
                "yes" if one.is_met else "no",
                *(format_value(t, "s") for t in times),
                f"{one.num_added}",
            )
        )
    table = Table(
        title="The plans, served their traffic step by step",
        num_words=3,
        chosen=0,
        columns=("", "plan", "holds", "TTFT, P99", "TPOT, P99", "E2EL, P99", "replicas added"),
        rows=tuple(rows),
    )
    count = found.simulated[0].answer.simulated.requests.count if found.simulated else 0
    return Section(heading="", summary=(f"Each plan was served {count:,} requests step by step.",), tables=(table,))


def tail_of(found: SimulatedPlans) -> tuple[str, ...]:
    """Slow requests in the simulation of the first plan."""
    first = found.simulated[0]
    s = first.answer.summary
    times = (
        f"{format_value(s.ttft.percentile_s(99.0), 's')}, of whole requests "
        f"{format_value(s.e2el.percentile_s(99.0), 's')}"
    )
    verdict = "the objectives hold" if first.is_met else "the objectives are missed"
    return (f"Served step by step, 99 of 100 first tokens come within {times}; {verdict}.",)
