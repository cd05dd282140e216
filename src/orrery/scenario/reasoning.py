"""One answer out of many calls: a scenario's shape, priced on its deployment and judged by the laws of tries and votes.

The traffic's batch or concurrency says how many questions are asked at once; each replica of the deployment takes its
part of them. A verifier or a draft that is a model of its own runs on as many devices of the same kind.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from math import ceil, inf

from orrery.base.errors import ScenarioError
from orrery.base.extension_points import knobs_from
from orrery.base.technique import Technique
from orrery.catalog.models import get_model
from orrery.execution.layout import TREE_METHODS, Deployment
from orrery.execution.memory import Infeasible
from orrery.planner.money import Tariff
from orrery.reasoning.accuracy import AnswerAccuracy, odds
from orrery.reasoning.choice import Choice, ShapeKnobs
from orrery.reasoning.cost import cost
from orrery.reasoning.coverage import Difficulty
from orrery.reasoning.graph import Graph, Problem
from orrery.reasoning.shape import SHAPES, drawn
from orrery.reasoning.vote import Checker, WrongAnswers
from orrery.scenario.answer_budget import COUNTED, COUNTS, ranked
from orrery.scenario.answer_studies import Subject, parted, studies, study_notes
from orrery.scenario.answer_ways import Budget, Reasoned, SampleCount, Spent
from orrery.scenario.fields_reasoning import REASONING_SETTINGS
from orrery.scenario.resolve import Question, check_layout
from orrery.scenario.schema import Scenario
from orrery.scenario.schema_reasoning import sample_counts, shape_knobs
from orrery.serving.estimate import Estimate

PLAIN, PLAIN_CHOICE = "majority-vote", Choice(by="vote")
"""One call is a vote of one."""


REASONING = ("budget_usd", *(setting.name for setting in REASONING_SETTINGS))
"""Settings of many calls for one answer."""

OF_OTHER_RUNS = ("draft_model", "draft_tree", "prefix_caching", "draft_tokens", "acceptance", "acceptance_by_position")
"""Settings of simulated runs, or of heads, that ``unused`` looks at."""


def reasoned(scenario: Scenario, question: Question, call: Estimate, tariff: Tariff) -> Reasoned | Infeasible | None:
    """Cost of an answer by the scenario's shape, beside the estimate of one call; None where it has none."""
    if scenario.reasoning is None and scenario.budget_usd is not None:
        scenario = scenario.model_copy(update={"reasoning": "best-of-n", "samples": scenario.samples or "1"})
    if scenario.reasoning is None:
        _refuse_alone(scenario)
        return None
    shape, work = SHAPES.get(scenario.reasoning), question.workload
    if work.mode == "open":
        raise ScenarioError(
            "reasoning: an answer is estimated for questions that are asked at once; write batch = 1 or "
            "concurrency = 8 in place of a rate."
        )
    own, for_studies = parted(shape_knobs(scenario.reasoning_knob), shape.name, [f.name for f in fields(shape.knobs)])
    tries = _knobs(scenario, shape, own)
    _refuse_idle(scenario, shape.name, tries[-1])
    problem = Problem(prompt_tokens=work.input_tokens, answer_tokens=work.output_tokens)
    plain, *graphs = (
        drawn(s, problem, k)
        for s, k in ((SHAPES.get(PLAIN), SHAPES.get(PLAIN).knobs(num_samples=1)), *((shape, k) for k in tries))
    )
    deployments = dict(_deployments(scenario, question.deployment, graphs[-1]))
    place = _Place(
        scenario=scenario,
        deployments=deployments,
        num_questions=work.batch_size or work.concurrency,
        tariff=tariff,
        call=call,
    )
    one = place.way(plain, 1, 1, _odds(scenario, PLAIN_CHOICE))
    ways = list[SampleCount]()
    for knobs, graph in zip(tries, graphs, strict=True):
        samples: int | None = getattr(knobs, knobs.samples) if knobs.samples else None
        found = place.way(graph, samples, knobs.num_answers, _odds(scenario, knobs.choice))
        if isinstance(found, Infeasible):
            return found
        ways.append(found)
    if isinstance(one, Infeasible):
        return one
    counts = [getattr(k, k.samples) if k.samples else None for k in tries]
    about = Subject(
        scenario=scenario,
        shape=shape.name,
        knobs=tries[-1],
        graphs=graphs,
        samples=counts,
        deployments=deployments,
        problem=problem,
        num_questions=place.num_questions,
        one_call_usd=one.usd,
    )
    return Reasoned(
        shape=shape.name,
        studies=tuple(studies(about, for_studies)),
        budget=_budget(scenario, place, problem, solver=question.deployment),
        knobs=tries[-1],
        num_questions=place.num_questions,
        one_call=one,
        ways=tuple(ways),
        notes=(*_notes(scenario, shape, tries[-1], graphs[-1], place), *study_notes(for_studies)),
    )


def _budget(scenario: Scenario, place: "_Place", problem: Problem, *, solver: Deployment) -> Budget | None:
    """The ways to spend a budget, where one is given; shapes that the deployment cannot hold are left out."""
    if scenario.budget_usd is None:
        return None
    if scenario.success is None:
        raise ScenarioError("budget_usd: needs the chance that one sample is right; write success = 0.3 beside it.")
    found = list[Spent]()
    for name in COUNTED:
        shape = SHAPES.get(name)
        for count in COUNTS:
            knobs: ShapeKnobs = shape.knobs(**{str(getattr(shape.knobs, "samples", "")): count})
            graph = drawn(shape, problem, knobs)
            at = replace(place, deployments=dict(_deployments(scenario, solver, graph, is_strict=False)))
            way = at.way(graph, count, knobs.num_answers, _odds(scenario, knobs.choice))
            if not isinstance(way, Infeasible):
                found.append(Spent(shape=name, way=way))
    return ranked(scenario.budget_usd, found)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Place:
    """Where answers are made: deployments by role, how many questions are asked at once, and what devices cost."""

    scenario: Scenario
    deployments: Mapping[str, Deployment]
    num_questions: int
    tariff: Tariff
    call: Estimate

    @property
    def shares_prefix(self) -> bool:
        """Whether calls read what others of the same question have computed."""
        inputs = self.scenario.prefix_caching
        return self.deployments["solver"].engine.has_prefix_caching if inputs is None else inputs

    @property
    def kv_limit_bytes(self) -> float:
        """Cache that a replica may fill."""
        return self.scenario.kv_limit_bytes or inf

    def way(
        self, graph: Graph, num_samples: int | None, num_answers: int, found: AnswerAccuracy | None
    ) -> SampleCount | Infeasible:
        """The figures of one answer; a graph makes ``num_answers`` of them."""
        replicas = self.deployments["solver"].layout.dp
        each = ceil(self.num_questions / replicas)
        price = cost(
            graph.times(each), self.deployments, shares_prefix=self.shares_prefix, kv_limit_bytes=self.kv_limit_bytes
        )
        if isinstance(price, Infeasible):
            return price
        answers = each * num_answers  # of one replica
        read = sum(call.count * call.context_tokens for call in graph.calls) / num_answers
        computed = sum(call.prefilled_tokens for call in price.calls) / answers
        energy_j, busy_s = price.energy_j / (answers * replicas), price.time_s + price.offline_s
        inputs = self.num_questions * num_answers
        roles = {"solver", *(call.model for call in graph.calls)}
        devices = sum(d.layout.num_devices for role, d in self.deployments.items() if role in roles)
        usd_per_s = self.tariff.usd_per_s(devices, energy_j * inputs / busy_s)
        return SampleCount(
            num_samples=num_samples,
            num_calls=sum(call.count for call in graph.calls) / num_answers,
            prompt_tokens=max(read, computed),
            shared_tokens=max(0.0, read - computed),
            answer_tokens=graph.written_tokens() / num_answers,
            time_s=price.time_s,
            offline_s=price.offline_s,
            kv_peak_bytes=price.peak_kept_bytes / (answers * replicas),
            num_waves=max(call.num_waves for call in price.calls),
            energy_j=energy_j,
            usd=None if usd_per_s is None else usd_per_s * busy_s / inputs,
            bound_by=price.bound_by,
            time_interval=self.call.intervals["latency_s"].scaled(price.time_s / self.call.latency_s),
            calls=price.calls,
            coverage_frac=found.coverage_frac if found else None,
            right_frac=found.right_frac if found else None,
        )


def unused(scenario: Scenario) -> Iterator[str]:
    """Settings of simulated runs that an estimate of single calls passes over."""
    passed = ("prefix_caching",) if scenario.draft in TREE_METHODS else ("draft_model", "draft_tree", "prefix_caching")
    for name in passed:
        if scenario.reasoning is None and getattr(scenario, name) is not None:
            ask = 'no tree is asked for; write draft = "tree" beside it'
            why = ask if name == "draft_tree" else "says nothing about an estimate of single calls"
            yield f"{name}: {why}; it is not used"
    for name in ("draft_tokens", "acceptance", "acceptance_by_position") if scenario.draft is None else ():
        if scenario.reasoning is None and getattr(scenario, name) is not None:
            yield f'{name}: no head guesses; write draft = "mtp" (or eagle, eagle3), or simulate. It is not used'


def _refuse_alone(scenario: Scenario) -> None:
    """Settings that mean nothing without a shape."""
    for setting in REASONING_SETTINGS:
        if getattr(scenario, setting.name) not in (None, ()):
            raise ScenarioError(f'{setting.name}: is about many calls; write reasoning = "best-of-n" beside it.')


def _refuse_idle(scenario: Scenario, shape: str, knobs: ShapeKnobs) -> None:
    """Settings that mean nothing for this shape, or without each other."""
    for name in ("verifier_accuracy", "wrong_answers", "evenness"):
        if getattr(scenario, name) is not None and scenario.success is None:
            raise ScenarioError(f"{name}: needs the chance that one sample is right; write success = 0.3 beside it.")
    choice = knobs.choice
    if scenario.verifier_accuracy is not None and (choice is None or choice.by != "check"):
        raise ScenarioError(
            f"verifier_accuracy: no verifier chooses the answer of {shape}; leave it out, or write "
            'reasoning = "best-of-n".'
        )


def _knobs(scenario: Scenario, shape: Technique, written: dict[str, str]) -> list[ShapeKnobs]:
    """The shape's knobs for each number of samples, or once as they are."""
    if scenario.seed is not None and "seed" in (f.name for f in fields(shape.knobs)):
        written = {"seed": str(scenario.seed), **written}
    if scenario.samples is None:
        return [knobs_from(shape, written)]
    name = getattr(shape.knobs, "samples", "")
    if not name:
        raise ScenarioError(f"samples: {shape.name} takes none; leave it out (`orrery show technique {shape.name}`).")
    if name in written:
        raise ScenarioError(f"samples: is {name} of {shape.name}, which is given as a knob too; keep one.")
    return [knobs_from(shape, {**written, name: str(n)}) for n in sample_counts(scenario.samples)]


def _deployments(
    scenario: Scenario, solver: Deployment, graph: Graph, *, is_strict: bool = True
) -> Iterator[tuple[str, Deployment]]:
    """The solver's deployment, and those of other models that the calls need."""
    yield "solver", solver
    for role in ("verifier", "draft"):
        name: str | None = getattr(scenario, f"{role}_model")
        is_used = any(graph.of(role))
        if name and is_used:
            model = get_model(name, scenario.assume or "")
            check_layout(solver.layout, model)
            yield role, replace(solver, model=model)
        elif name and role == "verifier" and is_strict:
            raise ScenarioError(f"verifier_model: {scenario.reasoning} has nothing verified; leave it out.")
        elif is_used and role == "draft":
            raise ScenarioError(f'draft_model: {scenario.reasoning} needs one; write draft_model = "llama-3.2-1b".')


def _odds(scenario: Scenario, choice: Choice | None) -> AnswerAccuracy | None:
    """How often an answer that is chosen in that way is right; None where nothing is known of it."""
    if scenario.success is None or choice is None:
        return None
    trust = scenario.verifier_accuracy
    return odds(
        choice,
        Difficulty(mean_frac=scenario.success, evenness_ratio=scenario.evenness or inf),
        WrongAnswers(num_answers=scenario.wrong_answers or 1),
        None if trust is None else Checker(right_frac=trust, wrong_frac=1.0 - trust),
    )


def _notes(scenario: Scenario, shape: Technique, knobs: ShapeKnobs, graph: Graph, place: _Place) -> Iterator[str]:
    """Assumptions."""
    if not place.shares_prefix:
        yield "prefix_caching: off, so that every call computes its whole prompt"
    if any(graph.of("verifier")) and scenario.verifier_model is None:
        yield "verifier_model: the model itself, on the same devices"
    if scenario.success is None:
        return
    choice = knobs.choice
    if choice is None:
        yield f"success: no law says how often an answer of {shape.name} is right"
        return
    if scenario.evenness is None:
        yield "evenness: every question is taken to be as hard; for the mean of a benchmark write evenness = 1"
    if choice.by == "vote" and choice.num_tries > 1 and scenario.wrong_answers is None:
        yield "wrong_answers: wrong answers are taken to agree with each other, the worst for a vote"
    if choice.by == "check" and scenario.verifier_accuracy is None:
        yield "verifier_accuracy: unknown; coverage is what a verifier that is never wrong would get"
