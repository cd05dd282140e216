"""Autoscalers by name."""

from collections.abc import Mapping

from orrery.base.errors import UnknownName
from orrery.base.extension_points import knobs_from, techniques_at
from orrery.base.technique import Technique
from orrery.fleet.service import techniques
from orrery.fleet.service.setup import Scaler

EXTENSION_POINT = "fleet.autoscaler"


def autoscalers() -> Mapping[str, Technique]:
    """Every autoscaler by name."""
    return techniques_at(techniques, EXTENSION_POINT)


def scaler_of(name: str, knobs: Mapping[str, str] | None = None) -> Scaler:
    """The autoscaler of that name with its knobs as written; its rule takes Signals and knobs and answers replicas."""
    known = autoscalers()
    if name not in known:
        raise UnknownName("autoscaler", name, known, "orrery show techniques")
    technique = known[name]
    found = knobs_from(technique, knobs or {})
    return Scaler(name=name, rule=technique.rule, knobs=found, period_s=float(found.period_s))
