"""The drawings of a design, each by the name that its file is asked for by."""

from collections.abc import Callable, Mapping

from orrery.reports import roofs
from orrery.reports.ops import StepKind, ops_of
from orrery.scenario.ask import Answer
from orrery.web.design import capacity, request_timeline, times


def _time(answer: Answer) -> str:
    return times.drawn(answer.estimate)


def _roof(step: StepKind) -> Callable[[Answer], str]:
    return lambda answer: roofs.drawn(answer.estimate, step) if ops_of(answer.estimate, step) else ""


def _memory(answer: Answer) -> str:
    return capacity.figure(answer).svg


TITLES = {
    "time": "Time breakdown",
    "decode-roof": "Roofline of a decode step",
    "prompts-roof": "Roofline of a prefill step",
    "memory": "Memory",
    "request": "Timeline of a request",
    "pipeline": "Timeline of the pipeline",
    "layers": "Timeline of layers",
}

DRAWINGS: Mapping[str, Callable[[Answer], str]] = {
    "time": _time,
    "decode-roof": _roof("decode"),
    "prompts-roof": _roof("prompts"),
    "memory": _memory,
    "request": request_timeline.life,
    "pipeline": request_timeline.stages,
    "layers": request_timeline.layers,
}
"""Blank where a design has no such thing."""
