"""Everything that the page of a design says of an answer."""

from collections.abc import Mapping
from typing import Any

from orrery.drawing import Axis, Bar, Part, stacked
from orrery.execution.memory import Infeasible
from orrery.reports.ops import STEPS
from orrery.reports.serving_words import BOUND_BY
from orrery.reports.words import said
from orrery.scenario.ask import Answer, CannotBe
from orrery.scenario.schema import Scenario
from orrery.scenario.why import paths
from orrery.web.address import query_of
from orrery.web.command import command
from orrery.web.design import bill, room, times
from orrery.web.design.changes import changes
from orrery.web.design.drawings import DRAWINGS
from orrery.web.design.figures import figures, headline


def shown_of(asked: Scenario, answer: Answer | CannotBe, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What the template needs; ``lacks`` where it cannot be."""
    common = {"links": links(settings), "command": command("estimate", settings), "notes": answer.notes}
    if isinstance(answer, CannotBe):
        lacks = answer.infeasible
        return common | {
            "lacks": lacks, "changes": tuple(changes(asked, settings, lacks)), "shortage": shortage(lacks),
            "missing": f"It {str(lacks).removeprefix(lacks.what).lstrip(': ')}",
            "headline": "This design cannot be",
        }  # fmt: skip
    e, memory = answer.estimate, room.figure(answer)
    drawn = {name: svg for name, draw in DRAWINGS.items() if name != "memory" and (svg := draw(answer))}
    return common | {
        "lacks": None, "headline": headline(answer), "figures": tuple(figures(answer)),
        "drawings": drawn | {"memory": memory.svg}, "limit": BOUND_BY.get(e.bound_by) or e.bound_by,
        "steps": [(STEPS[step], times.rows(e, step)) for step in STEPS], "left": room.left(answer),
        "room_told": memory.told, "bill": bill.bill(answer), "paths": paths(answer), "ways": ways(answer),
    }  # fmt: skip


def ways(answer: Answer) -> tuple[str, ...]:
    """What one answer out of many calls takes; empty where each call is an answer."""
    many = answer.reasoned
    return () if many is None else tuple(
        f"{many.shape}: {way.num_calls:,.3g} calls for an answer: {said(way.time_s, 's')} and {said(way.usd, 'usd')}."
        for way in many.ways
    )  # fmt: skip


def links(settings: Mapping[str, Any]) -> dict[str, str]:
    """Where to go on from a design, with its settings."""
    address = query_of(settings)
    return {
        "compare": f"/compare?{query_of(settings, 'a.')}&{query_of(settings, 'b.')}", "sweep": f"/sweep?{address}",
        "simulate": f"/runs/new?kind=simulate&{address}",
        "report": f"/report?as=estimate&{address}", "plan": f"/?{address}",
    }  # fmt: skip


def shortage(lacks: Infeasible) -> str:
    """What is needed against what there is."""
    bar = Bar("needed", [Part("needed", lacks.need)], mark=lacks.have, mark_name="there is")
    return stacked([bar], Axis("", lacks.unit), title="What is missing")
