"""Content of the page of a design: all that it says of an answer."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from orrery.drawing import Axis, Bar, Part, stacked
from orrery.execution.memory import Infeasible
from orrery.reports.ops import STEPS
from orrery.reports.words import BOUND_BY, format_value
from orrery.scenario.ask import Answer, InfeasibleAnswer
from orrery.scenario.schema import Scenario
from orrery.scenario.why import paths
from orrery.web.address import query_of
from orrery.web.both_widths import at_both_widths
from orrery.web.command import command
from orrery.web.design import capacity, cost, times
from orrery.web.design.changes import changes
from orrery.web.design.drawings import DRAWINGS, TITLES
from orrery.web.design.figures import figures, headline, name_of
from orrery.web.design.techniques import technique_tables
from orrery.web.facts_table import facts_tables
from orrery.web.question.inputs import PLANNED

NUM_SUMMED = 4
"""Figures in the line that describes the page where it is shared."""


def shown_of(scenario: Scenario, answer: Answer | InfeasibleAnswer, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Context of the template; ``lacks`` where the design is infeasible."""
    common = {"links": links(settings), "command": command("estimate", settings), "notes": answer.notes}
    if isinstance(answer, InfeasibleAnswer):
        infeasible = answer.infeasible
        return common | {
            "infeasible": infeasible,
            "summary": str(infeasible),
            "changes": tuple(changes(scenario, settings, infeasible)),
            "shortage": shortage(infeasible),
            "missing": f"It {str(infeasible).removeprefix(infeasible.what).lstrip(': ')}",
            "headline": "Infeasible configuration",
            "techniques": facts_tables(answer.tables),
        }
    e, memory = answer.estimate, capacity.figure(answer)
    drawn = {name: svg for name, draw in DRAWINGS.items() if (svg := at_both_widths(partial(draw, answer)))}
    return common | {
        "infeasible": None,
        "summary": "; ".join(f"{f.label}: {f.text}" for f in list(figures(answer))[:NUM_SUMMED]),
        "headline": headline(answer),
        "figures": tuple(figures(answer)),
        "drawings": drawn,
        "chart_names": TITLES,
        "limit": BOUND_BY.get(e.bound_by) or e.bound_by,
        "steps": [(STEPS[step], times.rows(e, step)) for step in STEPS],
        "left": capacity.left(answer),
        "room_told": memory.summary,
        "bill": cost.cost_rows(answer),
        "paths": paths(answer),
        "name_of": name_of,
        "ways": ways(answer),
        "techniques": facts_tables(technique_tables(answer)),
    }


def ways(answer: Answer) -> tuple[str, ...]:
    """Cost of one answer out of many calls; empty where each call is an answer."""
    many = answer.reasoned
    return (
        ()
        if many is None
        else tuple(
            f"{many.shape}: {way.num_calls:,.3g} calls for an answer: {format_value(way.time_s, 's')} and "
            f"{format_value(way.usd, 'usd')}."
            for way in many.ways
        )
    )


def links(settings: Mapping[str, Any]) -> dict[str, str]:
    """Where to go on from a design, with its settings."""
    address = query_of(settings)
    return {
        "compare": f"/compare?{query_of(settings, 'a.')}&{query_of(settings, 'b.')}",
        "sweep": f"/sweep?{address}",
        "simulate": f"/runs/new?kind=simulate&{address}",
        "report": f"/report?as=estimate&{address}",
        "plan": f"/plan?{query_of({name: value for name, value in settings.items() if name in PLANNED})}",
    }


def shortage(infeasible: Infeasible) -> str:
    """The need, against the supply."""
    bar = Bar("needed", [Part("needed", infeasible.need)], mark=infeasible.have, mark_name="there is")
    return at_both_widths(lambda: stacked([bar], Axis("", infeasible.unit), title="What is missing"))
