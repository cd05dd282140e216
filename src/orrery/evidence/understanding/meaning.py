"""Effect of a new paper's likely technique on a reader's own deployment, by ``orrery what-if``.

Nothing of this is the paper's: both numbers are orrery's, for the scenario file without the technique and with it. A
technique that no command takes is said to be one.
"""

from dataclasses import dataclass

from orrery.base.errors import OrreryError, UnknownName
from orrery.base.units import percent
from orrery.evidence.feed.entry import Classification
from orrery.evidence.understanding.claim_effect import ClaimEffect, Result, answer_of, askable, effects, why_none
from orrery.scenario.levers import get_lever, lever_of
from orrery.scenario.levers.lever import Lever
from orrery.scenario.schema import Scenario
from orrery.scenario.what_if import Comparer, WhatIf
from orrery.scenario.what_if.metrics import Metric

_METRICS = {
    "time_to_first_token": "ttft",
    "ttft": "ttft",
    "time_per_output_token": "tpot",
    "tpot": "tpot",
    "latency": "latency",
    "time": "latency",
}


PAPER_ALONE = "It is computed in the reproduction of its paper alone: no command takes it."
"""Reason where a mechanism is no technique of orrery."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentEffect:
    """One technique in one deployment. Without numbers, ``because`` says why there are none."""

    technique: str
    confidence_frac: float  # that the paper is about this technique
    metric: str = ""
    before: float | None = None
    after: float | None = None
    ratio: float | None = None  # after / before
    low_80: float | None = None  # of the ratio
    high_80: float | None = None
    because: str = ""
    must_be_measured: tuple[str, ...] = ()

    def __str__(self) -> str:
        """One sentence."""
        head = f"{self.technique} ({percent(self.confidence_frac)} sure): "
        if self.before is None or self.after is None:
            return head + self.because
        times = "" if self.ratio is None else f" ({self.ratio:.2f} times)"
        return f"{head}{self.metric.replace('_', ' ')} {self.before:.4g} -> {self.after:.4g}{times}; {self.because}"


class Deployment:
    """A reader's scenario, asked about one technique after the other; each is computed once."""

    def __init__(self, scenario: Scenario) -> None:
        self._comparer = Comparer(scenario)
        self._found: dict[tuple[str, str], WhatIf] = {}

    @property
    def is_training(self) -> bool:
        """Whether the file describes a training job."""
        return self._comparer.is_training

    def meanings(self, understood: Classification) -> tuple[DeploymentEffect, ...]:
        """Effect of each technique of a paper on this deployment, the likeliest first."""
        metric = self._comparer.metric(self._word(understood))
        return tuple(self._meaning(name, sure, metric) for name, sure in understood.techniques)

    def claim_effects(self, understood: Classification) -> tuple[ClaimEffect, ...]:
        """Each claim of a paper, as it would be here with the likeliest of its techniques."""
        found = answer_of(askable(understood), self._result) if understood.claims else None
        return tuple(effects(understood.claims, found, why_none(understood)))

    def _result(self, name: str) -> Result:
        """A technique by the deployment's own metric, as ``orrery what-if NAME --json`` lists it."""
        return self._what_if(get_lever(name), self._comparer.metric()).to_json()

    def _what_if(self, lever: Lever, metric: Metric) -> WhatIf:
        key = (lever.name, metric.name)
        if key not in self._found:
            self._found[key] = self._comparer.what_if(lever, metric)
        return self._found[key]

    def _word(self, understood: Classification) -> str:
        """The metric that the paper writes most about, if this deployment has it."""
        if self.is_training:
            return "step_time"
        bases = [c.metric.removesuffix("_reduction").removesuffix("_ratio") for c in understood.claims]
        return next((_METRICS[b] for b in bases if b in _METRICS), "throughput")

    def _meaning(self, name: str, sure: float, metric: Metric) -> DeploymentEffect:
        try:
            lever = get_lever(name)
        except UnknownName:
            return DeploymentEffect(technique=name, confidence_frac=sure, because=PAPER_ALONE)
        except OrreryError as error:
            return DeploymentEffect(technique=name, confidence_frac=sure, because=str(error))
        return _describe(self._what_if(lever, metric), sure)


def _describe(found: WhatIf, sure: float) -> DeploymentEffect:
    known = DeploymentEffect(
        technique=found.technique, confidence_frac=sure, because=found.because, must_be_measured=found.lever.measure
    )
    d = found.difference.get(found.metric.name)
    if found.without is None or found.having is None or d is None:
        return known
    before, after = found.without.figures[found.metric.name], found.having.figures[found.metric.name]
    return DeploymentEffect(
        technique=known.technique,
        confidence_frac=sure,
        metric=found.metric.name,
        before=before,
        after=after,
        ratio=after / before if before else None,
        low_80=None if d.low_80 is None else 1.0 + d.low_80,
        high_80=None if d.high_80 is None else 1.0 + d.high_80,
        because=found.because,
        must_be_measured=known.must_be_measured,
    )


def is_of_training(technique: str) -> bool | None:
    """Whether a technique changes training jobs; None where no deployment can be asked about it."""
    lever = lever_of(technique)
    return lever.is_training if lever and lever.questions else None
