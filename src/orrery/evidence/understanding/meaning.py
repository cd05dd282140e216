"""What a technique that a paper resembles would change in a reader's own deployment: computed with it and without it.

Nothing of this is the paper's: both numbers are orrery's, for the scenario file as it stands and with the technique's
settings on top. A technique that no setting turns on is said to be one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from orrery.base.errors import OrreryError
from orrery.base.technique import discover, technique_folders
from orrery.evidence.feed.entry import Understood
from orrery.evidence.understanding.switches import Door, Switch, switch_of

if TYPE_CHECKING:  # what asks scenarios takes long to import, and most readers have none
    from orrery.scenario.schema import Scenario

SIMULATED_REQUESTS = 200
"""Of a run, where the scenario does not say."""

_SERVING_METRICS = {
    "time_to_first_token": "ttft_s", "ttft": "ttft_s", "time_per_output_token": "tpot_s", "tpot": "tpot_s",
    "latency": "latency_s", "time": "latency_s",
}  # fmt: skip
_SIMULATED = {
    "ttft_s": ("mean_ttft_ms", 1e-3), "tpot_s": ("mean_tpot_ms", 1e-3), "latency_s": ("mean_e2el_ms", 1e-3),
    "output_tokens_per_s": ("output_throughput", 1.0),
}  # fmt: skip

Figures = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """One technique in one deployment. Without numbers, ``because`` says why there are none."""

    technique: str
    confidence_frac: float  # that the paper is about this technique
    metric: str = ""
    before: float | None = None
    after: float | None = None
    ratio: float | None = None  # after / before
    because: str = ""

    def __str__(self) -> str:
        """One sentence."""
        head = f"{self.technique} ({self.confidence_frac:.0%} sure): "
        if self.before is None or self.after is None:
            return head + self.because
        times = "" if self.ratio is None else f" ({self.ratio:.2f} times)"
        return f"{head}{self.metric.replace('_', ' ')} {self.before:.4g} -> {self.after:.4g}{times}; {self.because}"


@dataclass(frozen=True, slots=True)
class _Told:
    """The outcome of a technique, before a metric is chosen."""

    before: Figures = field(default_factory=dict[str, float])
    after: Figures = field(default_factory=dict[str, float])
    because: str = ""


class Deployment:
    """A reader's scenario, asked about one technique after the other; each is computed once."""

    def __init__(self, scenario: "Scenario") -> None:
        self.scenario = scenario
        self._told: dict[str, _Told] = {}
        self._figures: dict[str, Figures] = {}

    @property
    def is_training(self) -> bool:
        """Whether the file describes a training job."""
        return self.scenario.global_batch is not None

    def meanings(self, understood: Understood) -> tuple[Meaning, ...]:
        """What each technique of a paper would do here, the likest first."""
        metric = self._metric(understood)
        return tuple(self._meaning(name, sure, metric) for name, sure in understood.techniques)

    def _metric(self, understood: Understood) -> str:
        """What the paper says most about, as far as it is a figure of this deployment."""
        if self.is_training:
            return "step_time_s"
        bases = [c.metric.removesuffix("_reduction").removesuffix("_ratio") for c in understood.claims]
        return next((_SERVING_METRICS[b] for b in bases if b in _SERVING_METRICS), "output_tokens_per_s")

    def _meaning(self, name: str, sure: float, metric: str) -> Meaning:
        if name not in self._told:
            self._told[name] = self._ask(name)
        told = self._told[name]
        if not told.before or not told.after:
            return Meaning(technique=name, confidence_frac=sure, because=told.because)
        before, after = told.before[metric], told.after[metric]
        return Meaning(
            technique=name, confidence_frac=sure, metric=metric, before=before, after=after,
            ratio=after / before if before else None, because=told.because,
        )  # fmt: skip

    def _ask(self, name: str) -> _Told:
        """Both figures of a technique, or why there are none."""
        switch = switch_of(name, _seams())
        if switch is None:
            return _Told(because="no setting of a scenario turns it on.")
        if (switch.door == "train") != self.is_training:
            kind = "serves" if switch.door == "train" else "trains"
            return _Told(because=f"the file {kind}, and this is a technique of {_FLOOR[switch.door]}.")
        given = self.scenario.written()
        if switch.needs and not any(key in given for key in switch.needs):
            return _Told(because=f"it needs {' or '.join(switch.needs)} in the file, which no abstract can know.")
        if switch.door == "simulate" and "batch" in given:
            return _Told(because="a static batch shows nothing of it; write concurrency or rate in place of batch.")
        try:
            return self._compare(switch, given)
        except OrreryError as error:
            return _Told(because=f"it cannot be tried here: {error}")

    def _compare(self, switch: Switch, given: Mapping[str, Any]) -> _Told:
        on, base, off = _settings(switch, given)
        without = {**base, **off}
        is_asked = all(given.get(key) == value for key, value in on.items())
        after = self._answer(switch.door, {**base, **on})
        before = self._answer(switch.door, without if is_asked else base)
        state = "it is on already, and before is without it" if is_asked else "switched on"
        if before and before == after and off and not is_asked:  # the engine may do so unasked
            before, state = self._answer(switch.door, without), "the engine does so unasked, and before is without it"
        if not before or not after:
            return _Told(because=f"the deployment does not fit its devices {'without' if not before else 'with'} it.")
        if before == after:
            state = "it changes nothing in this deployment"
        said = ", ".join(f"{k} = {_written(v)}" for k, v in on.items()) or ", ".join(switch.needs)
        beside = "; both on as many devices" if switch.name == "disaggregated" else ""
        return _Told(before, after, because=f"{said}: {state}{beside} ({_HOW[switch.door]}).")

    def _answer(self, door: Door, settings: Mapping[str, Any]) -> Figures:
        """Figures of a scenario; none where it is infeasible. The same question is computed once."""
        from orrery.scenario.schema import read_scenario

        scenario = read_scenario(settings)
        key = f"{door} {scenario.model_dump_json(exclude_defaults=True)}"
        if key not in self._figures:
            self._figures[key] = _DOORS[door](scenario)
        return self._figures[key]


def door_of(technique: str) -> Door | None:
    """The question that answers for a technique; None where no setting turns it on."""
    switch = switch_of(technique, _seams())
    return switch.door if switch else None


def _settings(switch: Switch, given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """What turns it on, what both sides share, and what turns it off."""
    on, base, off = dict(switch.on), dict(given), dict(switch.off)
    if switch.door == "simulate":
        base.setdefault("num_requests", SIMULATED_REQUESTS)
    if switch.name == "disaggregated":  # separate replicas take no more devices than joint ones
        own = {key: value for key, value in given.items() if key.startswith("prefill_")}
        replicas = int(given.get("replicas", 1)) + int(given.get("prefill_replicas", 0))
        if own:
            return own, base, {**dict.fromkeys(own), "replicas": replicas}
        replicas = base["replicas"] = max(2, replicas)
        on = {"prefill_replicas": replicas // 2, "replicas": replicas - replicas // 2}
    return on, base, off


def _estimated(scenario: "Scenario") -> Figures:
    from orrery.scenario.ask import CannotBe, estimate

    answer = estimate(scenario)
    if isinstance(answer, CannotBe):
        return {}
    return {name: float(getattr(answer.estimate, name)) for name in _SIMULATED}


def _simulated(scenario: "Scenario") -> Figures:
    from orrery.scenario.ask import CannotBe
    from orrery.scenario.simulate import simulate

    answer = simulate(scenario)
    if isinstance(answer, CannotBe):
        return {}
    found = answer.to_json()
    return {name: float(found[key]) * size for name, (key, size) in _SIMULATED.items()}


def _trained(scenario: "Scenario") -> Figures:
    from orrery.scenario.ask import CannotBe
    from orrery.scenario.train import train

    answer = train(scenario)
    return {} if isinstance(answer, CannotBe) else {"step_time_s": float(answer.step_time_s)}


_DOORS = {"estimate": _estimated, "simulate": _simulated, "train": _trained}
_HOW = {"estimate": "estimated", "simulate": "simulated", "train": "estimated"}
_FLOOR = {"estimate": "serving", "simulate": "serving", "train": "training"}


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@cache
def _seams() -> Mapping[str, str]:
    """Technique -> the seam of its file."""
    return {t.name: t.seam for folder in technique_folders() for t in discover(folder)}
