"""One technique after the other in one deployment: both sides by the plain command, each scenario computed once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from orrery.base.errors import OrreryError, ScenarioError
from orrery.execution.layout import Deployment
from orrery.execution.train.job import TrainingJob
from orrery.scenario.fields import BY_NAME
from orrery.scenario.fields_reasoning import REASONING_SETTINGS
from orrery.scenario.levers.found import of_deployment, of_job, of_run
from orrery.scenario.levers.idle import OTHERWISE, Found, idle_because
from orrery.scenario.levers.lever import Lever, Question
from orrery.scenario.levers.registry import flag
from orrery.scenario.schema import Scenario, read_scenario
from orrery.scenario.simulate import SimulatedAnswer
from orrery.scenario.what_if.break_even import BreakEven, break_even
from orrery.scenario.what_if.difference import STILL_FRAC, differences, gain, is_same
from orrery.scenario.what_if.metrics import Metric, default_metric, metric_called
from orrery.scenario.what_if.result import State, WhatIf
from orrery.scenario.what_if.side import Side, side_of
from orrery.serving.simulation.rules import policy_of

TRAFFIC: Mapping[str, tuple[str, ...]] = {
    "estimate": ("concurrency", "batch", "users", "rate", "input_tokens", "output_tokens"),
    "simulate": ("concurrency", "users", "rate", "input_tokens", "output_tokens"),
    "plan": ("rate", "input_tokens"),
    "train": ("global_batch", "seq_len", "island_link_bytes_per_s"),
}
"""Inputs whose break-even is looked for, where the deployment states them."""

REASONING = "reasoning.shape"
_REASONING = frozenset(s.name for s in REASONING_SETTINGS)
"""Settings of answers that many calls make."""

_HOW = {"estimate": "estimated", "simulate": "simulated", "plan": "the best plans", "train": "estimated"}


STATES: Mapping[State, str] = {
    "on": "switched on",
    "in use": "it is on already; without is with it off",
    "default": "the default has it on already; without is with it off",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """The settings of both sides, and how the technique came on."""

    without: Mapping[str, Any]
    having: Mapping[str, Any]
    off: Mapping[str, Any]  # without it, where the plain scenario has it unasked
    on: Mapping[str, Any]
    is_asked: bool  # the deployment has it on already


class Comparer:
    """A deployment, asked about one technique after the other."""

    def __init__(self, scenario: Scenario, *, is_simulated: bool = False) -> None:
        """``is_simulated``: both sides by simulation wherever that can answer."""
        self.scenario = scenario
        self.is_simulated = is_simulated
        self._sides: dict[str, Side] = {}
        self._figures: dict[str, Side] = {}  # of sides without a technique, at other values of an input

    @property
    def is_training(self) -> bool:
        """Whether it is a training job."""
        return self.scenario.global_batch is not None

    def metric(self, word: str = "") -> Metric:
        """The metric of that word; blank for the one that the traffic leaves open."""
        return metric_called(word or default_metric(self.scenario.written()), is_training=self.is_training)

    def what_if(self, lever: Lever, metric: Metric, inputs: Sequence[str] | None = ()) -> WhatIf:
        """One technique. ``inputs``: those whose break-even is looked for; None for what matters to it."""
        try:
            if lever.is_training == self.is_training and (idle := self._idle(lever, metric)):
                return idle
            question = self.question(lever)
            sides = self._settings(lever)
            found = self._compared(lever, question, sides, metric)
        except OrreryError as error:
            return WhatIf(
                lever=lever, outcome="does not apply", because=str(error), command=lever.command, metric=metric
            )
        if found.outcome != "changes" or (inputs is not None and not inputs):
            return found
        names = self._inputs(lever, question, sides) if inputs is None else tuple(inputs)
        turns = (self._break_even(name, question, found, sides) for name in names)
        return replace(found, break_even=tuple(t for t in turns if t is not None))

    def question(self, lever: Lever) -> Question:
        """The command that answers; ScenarioError where none does for this deployment."""
        if not lever.questions:
            raise ScenarioError(f"{lever.name} changes no deployment; it is tried by `{lever.command}`.")
        if lever.is_training != self.is_training:
            kind, other = ("training", "serves") if lever.is_training else ("serving", "trains")
            raise ScenarioError(f"the deployment {other}, and this is a technique of {kind}.")
        given = self.scenario.written()
        if self._lacks(lever):
            needs = " or ".join(_flag_name(key) for key in lever.needs)
            raise ScenarioError(f"it needs {needs}; write yours.")
        if self.is_training:
            return "train"
        allowed: list[Question] = [q for q in lever.questions if q in self._readers(given)]
        if "simulate" in allowed and self.is_simulated:
            return "simulate"
        if not allowed and "batch" in given and "simulate" in lever.questions:
            raise ScenarioError("a static batch shows nothing of it; write concurrency or rate in place of batch.")
        if not allowed:
            raise ScenarioError(f"it is of orrery {' and '.join(lever.questions)}, which this deployment is not for.")
        return allowed[0]

    def plain(self) -> Side:
        """The deployment as it is, by the plain command."""
        given = self.scenario.written()
        return self.side("train" if self.is_training else self._readers(given)[0], given)

    def _lacks(self, lever: Lever) -> bool:
        """Whether none of the numbers is given that a technique needs."""
        given = self.scenario.written()
        return bool(lever.needs) and not any(key in given for key in lever.needs)

    def _idle(self, lever: Lever, metric: Metric) -> WhatIf | None:
        """The answer where a number is missing that would change nothing: there is nothing to act on."""
        if not self._lacks(lever) or not lever.on or "max_devices" in self.scenario.written():
            return None
        plain = self.plain()
        why = idle_because(lever.on, found_in(plain)) if plain.figures else ""
        if not why:
            return None
        return WhatIf(
            lever=lever,
            outcome="no effect",
            because=f"no effect on this deployment: {why}.",
            command=lever.command,
            metric=metric,
            without=plain,
            having=plain,
            difference=differences(plain, plain),
        )

    def _readers(self, given: Mapping[str, Any]) -> tuple[Question, ...]:
        """Commands that answer this deployment, those that read all of its settings."""
        if "max_devices" in given:
            return ("plan",)
        commands: tuple[Question, ...] = ("simulate",) if _is_stepwise(given) else ("estimate", "simulate")
        return tuple(c for c in commands if c != "simulate" or "batch" not in given)

    def _settings(self, lever: Lever) -> Sides:
        given = self.scenario.written()
        base, off = dict(given), {**lever.off, **dict.fromkeys(lever.extra)}
        on = {**lever.on, **{key: given.get(key, value) for key, value in lever.extra.items()}}
        is_asked = all(given.get(key) == value for key, value in lever.on.items()) and bool(lever.on or lever.needs)
        if lever.parts_replicas:
            base, on, off = _on_as_many_devices(given)
            is_asked = all(given.get(key) == value for key, value in on.items())
        on = on or {key: given[key] for key in lever.needs if key in given}
        having = {**base, **on}
        base = base if is_asked else {k: v for k, v in base.items() if k not in lever.own}
        if lever.extension_point == REASONING:
            off = dict.fromkeys(_REASONING)
        if "reasoning" not in given:  # what is known of answers means nothing to single calls
            base = {k: v for k, v in base.items() if k not in _REASONING}
            if lever.extension_point != REASONING:
                having = {k: v for k, v in having.items() if k not in _REASONING or k in on}
        off = off or dict.fromkeys(on)
        without = {**base, **off} if is_asked else base
        return Sides(
            without=_plain(without), having=_plain(having), off=_plain({**base, **off}), on=on, is_asked=is_asked
        )

    def _compared(self, lever: Lever, question: Question, sides: Sides, metric: Metric) -> WhatIf:
        having, without = self.side(question, sides.having), self.side(question, sides.without)
        state: State = "in use" if sides.is_asked else "on"
        is_default = not sides.is_asked and _may_be_default(sides.on, without) and is_same(without, having)
        if is_default and dict(sides.off) != dict(sides.without):
            without, state = self.side(question, sides.off), "default"
        if "answer_time_s" in having.figures and lever.extension_point == REASONING:
            without, metric = _one_call(without, having), _of_answers(metric)
        command = self._command(question, having.settings)
        text = ", ".join(f"{key} = {_written(value)}" for key, value in sides.on.items())
        beside = "; both on as many devices" if lever.parts_replicas else ""
        common: dict[str, Any] = {
            "lever": lever,
            "command": command,
            "metric": metric,
            "without": without,
            "having": having,
            "state": state,
        }
        if having.figures and not without.figures:
            why = f"{text}: without it, {without.infeasible}"
            return WhatIf(**common, outcome="makes it fit", because=why)
        if not having.figures:
            which = "with" if without.figures else "with or without"
            infeasible = (having if without.figures else without).infeasible
            why = f"the deployment does not fit its devices {which} it: {infeasible}"
            return WhatIf(**common, outcome="infeasible", because=why)
        if is_same(without, having):
            why = "it does so already." if not lever.off else self._why_idle(sides.on, having)
            return WhatIf(
                **common,
                outcome="no effect",
                because=f"no effect on this deployment: {why}",
                difference=differences(without, having),
            )
        return WhatIf(
            **common,
            outcome="changes",
            because=f"{text}: {STATES[state]}{beside} ({_HOW[question]}).",
            difference=differences(without, having),
        )

    def side(self, question: Question, settings: Mapping[str, Any]) -> Side:
        """A scenario by that command; computed once."""
        scenario = read_scenario(settings)
        key = _key(question, scenario)
        if key not in self._sides:
            self._sides[key] = side_of(question, scenario)
        return self._sides[key]

    def _inputs(self, lever: Lever, question: Question, sides: Sides) -> tuple[str, ...]:
        """Inputs that matter to a technique: the load, the lengths, and inputs of its own, as far as they are
        stated.
        """
        stated = [name for name in TRAFFIC[question] if name in sides.having][:3]
        own = [name for name in lever.inputs if name in sides.having and question in BY_NAME[name].commands]
        return tuple(dict.fromkeys((*own, *stated)))

    def _break_even(self, name: str, question: Question, found: WhatIf, sides: Sides) -> BreakEven | None:
        at = sides.having.get(name)
        if name not in BY_NAME or BY_NAME[name].kind not in ("count", "number"):
            raise ScenarioError(f"break_even: {name!r} is no numeric setting; write one, such as concurrency.")
        if at is None or isinstance(at, str):
            raise ScenarioError(f"break_even: the deployment states no {name}; write {_flag_name(name)} beside it.")
        is_own = name in sides.on
        plain = found.without
        assert plain is not None

        def helps(value: float) -> bool | None:
            x = int(value) if BY_NAME[name].kind == "count" else value
            try:
                having = side_of(question, read_scenario(_plain({**sides.having, name: x})))
                without = plain if is_own else self._without_at(question, {**plain.settings, name: x})
            except OrreryError:
                return None
            if found.lever.extension_point == REASONING:
                without = _one_call(without, having)
            won = gain(found.metric, without.figures, having.figures)
            return None if won is None else won > STILL_FRAC

        return break_even(name, float(at), helps)

    def _without_at(self, question: Question, settings: Mapping[str, Any]) -> Side:
        """The side without a technique at another value of an input, the same for many techniques: its figures alone
        are kept, since there are many."""
        scenario = read_scenario(_plain(settings))
        key = _key(question, scenario)
        if key not in self._sides and key not in self._figures:
            self._figures[key] = replace(side_of(question, scenario), about=None, answer=None)
        return self._sides.get(key) or self._figures[key]

    def _why_idle(self, on: Mapping[str, Any], having: Side) -> str:
        found = found_in(having)
        if why := idle_because(on, found):
            return why + "."
        known = next((OTHERWISE[key] for key in on if key in OTHERWISE), "")
        return f"{known or 'both sides come to the same numbers'}."

    def _command(self, question: Question, settings: Mapping[str, Any]) -> str:
        """The plain command of a side, as typed."""
        read = {k: v for k, v in settings.items() if question in BY_NAME[k].commands}
        return " ".join((f"orrery {question}", *(flag(key, value) for key, value in read.items())))


def _key(question: Question, scenario: Scenario) -> str:
    return f"{question} {scenario.model_dump_json(exclude_defaults=True)}"


def found_in(side: Side) -> Found:
    """Properties of a side that techniques act on."""
    about, answer, given = side.about, side.answer, side.settings
    if isinstance(about, TrainingJob):
        return of_job(about, answer.layout, given)
    if isinstance(answer, SimulatedAnswer):
        return of_run(answer.service, answer.simulated, answer.summary, given)
    return of_deployment(about, given) if isinstance(about, Deployment) else Found()


def _on_as_many_devices(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Separate replicas take no more devices than joint ones: what both sides share, what turns it on, and off."""
    base = dict(given)
    own = {key: value for key, value in given.items() if key.startswith("prefill_")}
    replicas = int(given.get("replicas", 1)) + int(given.get("prefill_replicas", 0))
    if own:
        return base, own, {**dict.fromkeys(own), "replicas": replicas}
    replicas = base["replicas"] = max(2, replicas)
    return base, {"prefill_replicas": replicas // 2, "replicas": replicas - replicas // 2}, {}


def _may_be_default(on: Mapping[str, Any], plain: Side) -> bool:
    """Whether the deployment may do so unasked: of policies, which can come to the same numbers, its own one alone."""
    if "policy" not in on or not isinstance(plain.answer, SimulatedAnswer):
        return True
    service = plain.answer.service
    return (service.policy or policy_of(service.pools[0].deployment.engine)) == on["policy"]


def _one_call(without: Side, having: Side) -> Side:
    """The side without a shape of calls, with the figures of one plain call beside; another shape has its own."""
    if "answer_time_s" in without.figures or not without.figures or not having.figures:
        return without
    one = having.answer.reasoned.one_call
    figures = {
        "answer_time_s": one.time_s,
        "answer_usd": one.usd,
        "answer_energy_j": one.energy_j,
        "right_frac": one.right_frac,
    }
    return replace(
        without,
        figures={**without.figures, **{k: float(v) for k, v in figures.items() if v is not None}},
        intervals={**without.intervals, "answer_time_s": one.time_interval},
    )


def _of_answers(metric: Metric) -> Metric:
    """The same of a whole answer, where many calls make one."""
    names = {
        "latency_s": "answer_time_s",
        "usd_per_million_tokens": "answer_usd",
        "energy_j_per_token": "answer_energy_j",
    }
    return metric_called(names.get(metric.name, "right_frac"), is_training=False)


def _is_stepwise(given: Mapping[str, Any]) -> bool:
    """Whether a setting means something to simulations alone."""
    return any("simulate" in BY_NAME[k].commands and "estimate" not in BY_NAME[k].commands for k in given)


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if value is not None}


def _flag_name(key: str) -> str:
    return BY_NAME[key].flag


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
