"""Pipeline schedules by name: which there are, what they do to a step, and what they refuse."""

from orrery.base.errors import ScenarioError
from orrery.base.extension_points import ExtensionPoint
from orrery.training.schedules import techniques
from orrery.training.schedules.schedule import Schedule

SCHEDULES = ExtensionPoint(name="training.schedule", folder=techniques, noun="pipeline schedule")


def get_schedule(name: str) -> Schedule:
    """The schedule called ``name``."""
    rule = SCHEDULES.get(name).rule
    if not isinstance(rule, Schedule):
        raise ScenarioError(f"The rule of pipeline schedule {name!r} is a {type(rule).__name__}; write a Schedule.")
    return rule


def refusal(name: str, pp: int, vp: int, num_micro_batches: int) -> str:
    """Why the schedule called ``name`` cannot run at these sizes, in one sentence; empty where it can."""
    why = get_schedule(name).sizes.refusal(pp, vp, num_micro_batches)
    return f"Pipeline schedule {name} {why}" if why else ""
