"""Pipeline schedules by name: which there are, what they do to a step, and what they refuse."""

from collections.abc import Mapping

from orrery.base.errors import ScenarioError, nearest
from orrery.base.extension_points import techniques_at
from orrery.base.technique import Technique
from orrery.training.schedules import techniques
from orrery.training.schedules.schedule import Schedule

SEAM = "training.schedule"


def schedules() -> Mapping[str, Technique]:
    """Every schedule by name."""
    return techniques_at(techniques, SEAM)


def get_schedule(name: str) -> Schedule:
    """The schedule called ``name``; ScenarioError with the known names otherwise."""
    known = schedules()
    if name not in known:
        near = nearest(name, known) or tuple(known)
        raise ScenarioError(f"There is no pipeline schedule {name!r}; write {' or '.join(map(repr, near))}.")
    rule = known[name].rule
    if not isinstance(rule, Schedule):
        raise ScenarioError(f"The rule of pipeline schedule {name!r} is a {type(rule).__name__}; write a Schedule.")
    return rule


def refusal(name: str, pp: int, vp: int, num_micro_batches: int) -> str:
    """Why the schedule called ``name`` cannot run at these sizes, in one sentence; empty where it can."""
    why = get_schedule(name).sizes.refusal(pp, vp, num_micro_batches)
    return f"Pipeline schedule {name} {why}" if why else ""
