"""One training job: a step's time, memory, money, and its pipeline, with a form beside it that answers at once."""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from orrery.base.errors import ScenarioError
from orrery.drawing.paper import drawn_at
from orrery.reports.report import Section
from orrery.reports.train import describe, headline, numbers, where
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.schema import Scenario
from orrery.scenario.train import TrainAnswer, train
from orrery.scenario.train_offload import OffloadAnswer
from orrery.web.address import query_of
from orrery.web.answered import Answering, answer_page
from orrery.web.both_widths import PHONE_PX, paired
from orrery.web.command import command
from orrery.web.design.shown import shortage
from orrery.web.export import as_csv, as_json, as_svg
from orrery.web.facts_table import facts_tables
from orrery.web.form_groups import SEARCH_ONLY, groups, names_of
from orrery.web.forms import fields, others, suggestions
from orrery.web.parameters import PageRoute, Parameters
from orrery.web.training.inputs import TRAINED, training_settings

MENU = (15, "/training", "Train")

FIELDS = (
    "model",
    "device",
    "devices",
    "global_batch",
    "micro_batch",
    "seq_len",
    "precision",
    "framework",
    "tp",
    "pp",
    "vp",
    "cp",
    "ep",
    "sharding",
    "recompute",
    "schedule",
    "train_tokens",
    "usd_per_hour",
)
"""Settings that stand open beside the answer; all others are folded away."""

Answered = TrainAnswer | OffloadAnswer | InfeasibleAnswer


async def training(request: Request) -> Response:
    """The page, its part, or a file."""
    return await answer_page(request, TRAINING)


def _form(request: Request, settings: Mapping[str, Any]) -> dict[str, Any]:
    shown = (*FIELDS, *SEARCH_ONLY)
    return {
        "fields": fields(settings, FIELDS),
        "groups": groups(settings, "train", shown),
        "hidden": others(settings, (*FIELDS, *names_of("train", shown))),
        "suggestions": suggestions(request.app.state.place.uploads),
    }


def _shown(_: Scenario, answer: Answered, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Context of the template; its words and drawings are those of the report."""
    address = query_of(settings)
    common = {
        "notes": answer.notes,
        "techniques": facts_tables(answer.tables),
        "command": command("train", settings),
        "search": f"/runs/new?kind=train-plan&{address}",
        "report": f"/report?as=train&{address}",
    }
    if isinstance(answer, InfeasibleAnswer):
        infeasible = answer.infeasible
        return common | {
            "infeasible": infeasible,
            "shortage": shortage(infeasible),
            "headline": "Infeasible configuration",
            "title": "Infeasible configuration",
        }
    shown = _where(answer)
    with drawn_at(PHONE_PX):
        narrow = _where(answer)
    drawings = [paired(one.svg, other.svg) for one, other in zip(shown.figures, narrow.figures, strict=True)]
    return common | {
        "infeasible": None,
        "headline": headline(answer),
        "title": _title(answer),
        "description": describe(answer),
        "numbers": numbers(answer),
        "where": shown,
        "drawings": drawings,
    }


def _title(answer: TrainAnswer | OffloadAnswer) -> str:
    """The model, its devices, layout and precision."""
    job = answer.job
    devices = f"{job.cluster.num_devices} x {job.cluster.device.name}"
    return f"{job.model.name} on {devices}: {answer.layout}, {job.recipe.name.upper()}"


def _where(answer: TrainAnswer | OffloadAnswer) -> Section:
    return where([("this layout", answer)])


def _file(kind: str, drawing: str, answer: Answered, settings: Mapping[str, Any]) -> Response:
    name = f"training-{settings['model']}-{settings['device']}"
    if kind == "json":
        return as_json(name, answer.to_json() | {"settings": settings})
    if isinstance(answer, InfeasibleAnswer):
        raise ScenarioError(str(answer.infeasible))
    if kind == "csv":
        return as_csv(name, ("part", "time_s"), answer.parts.items())
    figures = _where(answer).figures
    if kind == "svg" and drawing in map(str, range(len(figures))):
        return as_svg(f"{name}-{figures[int(drawing)].title}", figures[int(drawing)].svg)
    raise ScenarioError(
        f"format: got {kind[:20]!r}; write json, csv, or svg with drawing=N from 0 to {len(figures) - 1}."
    )


TRAINING = Answering(name="training", settings=training_settings, ask=train, shown=_shown, file=_file, form=_form)

PARAMETERS = Parameters(words={"format": ("json", "csv", "svg")}, numbers=frozenset({"drawing"}), settings=TRAINED)

ROUTES = (PageRoute("/training", training, PARAMETERS),)
