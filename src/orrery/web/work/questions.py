"""Questions for a worker process, by name."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from orrery.reports.kinds import Kind
from orrery.scenario.ask import estimate, plan
from orrery.scenario.schema import read_scenario
from orrery.scenario.train import train
from orrery.scenario.train_plan import train_plan

QUESTIONS: dict[str, Callable[..., Any]] = {
    "estimate": estimate,
    "plan": plan,
    "train": train,
    "train-plan": train_plan,
}


PAPER = "paper"
"""Effect of a paper's techniques on a deployment; its settings are a deployment and the paper's techniques."""

TECHNIQUE = "technique"
"""One technique in a deployment, as a paper's claims are held against it."""

COMMANDS = {
    TECHNIQUE: "orrery.web.papers.yours:answer",
    "what-if": "orrery.web.command_pages.what_if:answer",
    "designs": "orrery.web.command_pages.designs:answer",
    "cache-size": "orrery.web.command_pages.cache_size:answer",
    "diagnose": "orrery.web.command_pages.diagnose:answer",
    "my-device": "orrery.web.command_pages.device:answer",
    "kernel": "orrery.web.command_pages.kernel:answer",
    "fleet": "orrery.web.command_pages.fleet:answer",
    "search": "orrery.web.command_pages.search:answer",
    "split": "orrery.web.command_pages.split:answer",
    "pictures": "orrery.web.command_pages.pictures:answer",
    "disaggregate": "orrery.web.command_pages.disaggregate:answer",
}
"""Questions that have a command of their own, and what answers each; imported when the first one comes."""

POINTS = "points"
"""The best layouts of one accelerator, for the chart of the landing page."""

REPORT = "report-"
"""Before the kind of an answer: the page about it, for the person who pays."""


def answered(question: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The answer's ``to_json``; it holds ``infeasible`` where it cannot be."""
    if question == PAPER:
        from orrery.web.papers.meaning import answered as meaning  # what reads papers takes long to import

        return meaning(settings)
    if question.startswith(REPORT):
        return {"page": _report(question.removeprefix(REPORT), settings)}
    if question == POINTS:
        from orrery.web.landing.points import points_of

        lengths = int(settings["input_tokens"]), int(settings["output_tokens"])
        return {"rows": points_of(settings["model"], settings["device"], settings["engine"], lengths)}
    if question in COMMANDS:
        from pkgutil import resolve_name

        return resolve_name(COMMANDS[question])(settings)
    found: dict[str, Any] = QUESTIONS[question](read_scenario(settings)).to_json()
    return found


def _report(kind: str, settings: Mapping[str, Any]) -> str:
    from orrery.reports.make import report_of
    from orrery.reports.page import page
    from orrery.reports.source import Source

    return page(report_of(Source(kind=cast(Kind, kind), scenario=read_scenario(settings))))
