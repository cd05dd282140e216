"""Questions about an answer of many calls that its price alone leaves open, asked by knobs of ``reasoning_knob``.

allocate=by-difficulty        a budget of answers dealt out by bins of difficulty (num_bins, spoil_frac)
cost=equivalent-flops         ways under operations alone and with cache reads (sparse_kept_tokens, sparse_block_tokens,
                              sparse_loss)
stop_gain=G                   the samples after which another one adds less than G (ceiling)
idle_price_ratio=R            what thinking beforehand costs a question (hit_frac, num_questions, online_frac, …)
budget_tokens=B               the best split of B answers' worth of tokens between answers and checks
                              (check_right_frac, check_wrong_frac, check_evenness, wrong_rank,
                              most_checks)
mode=asynchronous             speculative chains at their own pace (rejection_level, block_spread)
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.base.extension_points import knob_hint
from orrery.base.units import percent
from orrery.engine.streams import stream
from orrery.execution.layout import Deployment
from orrery.numerics.registry import get_format
from orrery.reasoning.amortise import SleepTimePass
from orrery.reasoning.budget import Split, Trial, growth
from orrery.reasoning.by_difficulty import COUNTS, WAYS, Law, best_allocation, mean_right, saving_ratio, uniform
from orrery.reasoning.chains import Rounds, alone_s, drawn_rounds, in_step_s, own_pace_s
from orrery.reasoning.choice import ShapeKnobs
from orrery.reasoning.conformal import calibrated
from orrery.reasoning.coverage import Difficulty, coverage, saturation_tries
from orrery.reasoning.equivalent import Sparsity, equivalent, intensity_flops_per_byte
from orrery.reasoning.frontier import cheapest, frontier
from orrery.reasoning.graph import Graph, Problem
from orrery.reasoning.matched import answer_flops
from orrery.reasoning.paces import models_of
from orrery.reasoning.shape import graph_of
from orrery.reasoning.vote import Checker, WrongAnswers
from orrery.scenario.answer import to_json
from orrery.scenario.schema import Scenario

NUM_QUESTIONS = 200
"""Bins of difficulty of a split of tokens."""

NUM_SCORES = 2000
"""Drawn scores of blocks, half of which calibrate."""

NEAR_FRAC = 0.005
"""So close to the most that votes ever reach counts as matching it."""

DEFAULTS: Mapping[str, str] = {
    "allocate": "",
    "num_bins": "5",
    "spoil_frac": "0.1",
    "cost": "",
    "sparse_kept_tokens": "0",
    "sparse_block_tokens": "0",
    "sparse_loss": "0",
    "stop_gain": "",
    "ceiling": "1",
    "idle_price_ratio": "",
    "hit_frac": "1",
    "budget_tokens": "",
    "check_right_frac": "",
    "check_wrong_frac": "",
    "check_evenness": "2",
    "wrong_rank": "1",
    "most_checks": "128",
    "mode": "",
    "rejection_level": "0.4",
    "block_spread": "0.4",
}
"""Knob of a study -> what it is where nothing is said; blank switches its study off."""

SWITCHES: Mapping[str, tuple[str, ...]] = {
    "allocate": ("num_bins", "spoil_frac"),
    "cost": ("sparse_kept_tokens", "sparse_block_tokens", "sparse_loss"),
    "stop_gain": ("ceiling",),
    "idle_price_ratio": ("hit_frac",),
    "budget_tokens": ("check_right_frac", "check_wrong_frac", "check_evenness", "wrong_rank", "most_checks"),
    "mode": ("rejection_level", "block_spread"),
}
"""Knob that asks for a study -> the others that it reads."""

SHAPES: Mapping[str, tuple[str, ...]] = {
    "allocate": ("best-of-n",),
    "stop_gain": ("best-of-n", "sequential-revision"),
    "idle_price_ratio": ("sleep-time-compute",),
    "budget_tokens": ("generative-verification",),
    "mode": ("speculative-chains",),
}
"""Knob that asks for a study -> the shapes that it is about; all of them where none are listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """One question and its answer: single figures, and a table."""

    name: str
    title: str
    figures: Mapping[str, Any]
    rows: tuple[Mapping[str, Any], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The figures by name, and the table under ``rows``."""
        return to_json({**self.figures, "rows": list(self.rows)})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subject:
    """The answer that studies are about: its scenario, knobs, graphs and deployments."""

    scenario: Scenario
    shape: str
    knobs: ShapeKnobs  # of the last way
    graphs: Sequence[Graph]
    samples: Sequence[int | None]
    deployments: Mapping[str, Deployment]
    problem: Problem
    num_questions: int
    one_call_usd: float | None

    @property
    def questions(self) -> Difficulty:
        """Difficulty of the questions; an error where none is stated."""
        if self.scenario.success is None:
            raise ScenarioError("success: is missing; write the chance that one sample is right, such as 0.3.")
        return Difficulty(mean_frac=self.scenario.success, evenness_ratio=self.scenario.evenness or inf)

    @property
    def checker(self) -> Checker | None:
        """The verifier of the scenario; None where nothing is said of it."""
        trust = self.scenario.verifier_accuracy
        return None if trust is None else Checker(right_frac=trust, wrong_frac=1.0 - trust)

    @property
    def most(self) -> int:
        """The most samples that are looked at."""
        return max((n for n in self.samples if n), default=1)


def parted(written: Mapping[str, str], shape: str, own: Collection[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Knobs of the shape (``own``), and those of studies; refused where neither knows one, where a study is not about
    the shape, or where nothing asks for it.
    """
    mine = {name: value for name, value in written.items() if name in DEFAULTS}
    if strange := sorted(written.keys() - mine.keys() - set(own)):
        raise ScenarioError(f"{shape} has no knob {strange[0]!r}; {knob_hint(strange[0], (*own, *_readable(shape)))}")
    for name in mine:
        switch = next(s for s, others in SWITCHES.items() if name == s or name in others)
        if switch not in mine:
            raise ScenarioError(f"reasoning_knob: {name} is read with {switch}; write that beside it.")
        shapes = SHAPES.get(switch, ())
        if shapes and shape not in shapes:
            raise ScenarioError(f"reasoning_knob: {switch} is about {' and '.join(shapes)}, not {shape}; leave it out.")
    return {name: value for name, value in written.items() if name not in mine}, mine


def _readable(shape: str) -> Iterator[str]:
    """Knobs of the studies that are about a shape."""
    for switch, others in SWITCHES.items():
        if shape in SHAPES.get(switch, (shape,)):
            yield from (switch, *others)


def studies(subject: Subject, written: Mapping[str, str]) -> Iterator[Study]:
    """The studies that knobs ask for."""
    made = {
        "allocate": _allocation,
        "cost": _equivalents,
        "stop_gain": _stopping,
        "idle_price_ratio": _amortised,
        "budget_tokens": _split,
        "mode": _chains,
    }
    values = {**DEFAULTS, **written}
    for name, study in made.items():
        if name in written:
            yield study(subject, values)


def study_notes(written: Mapping[str, str]) -> tuple[str, ...]:
    """Knobs that a study reads and the answer's own figures do not."""
    if "hit_frac" not in written or float(written["hit_frac"]) >= 1:
        return ()
    return (
        f"hit_frac: an answer above is to a question that was foreseen; a share "
        f"{percent(1 - float(written['hit_frac']))} costs as much as one call beside its part of the pass, which "
        "the table of costs counts",
    )


def _number(values: Mapping[str, str], name: str, low: float, high: float) -> float:
    try:
        found = float(values[name])
    except ValueError:
        found = float("nan")
    if not low <= found <= high:
        raise ScenarioError(f"reasoning_knob: {name} = {values[name]}; write {low:g} to {high:g}.")
    return found


def _word(values: Mapping[str, str], name: str, known: str) -> None:
    if values[name] != known:
        raise ScenarioError(f"reasoning_knob: {name} = {values[name]}; write {name}={known}.")


def _allocation(subject: Subject, values: Mapping[str, str]) -> Study:
    """A budget of as many answers as the most samples, dealt out by difficulty."""
    _word(values, "allocate", "by-difficulty")
    bins = [float(p) for p in subject.questions.bins(int(_number(values, "num_bins", 1, 50)))]
    law = Law(checker=subject.checker, spoil_frac=_number(values, "spoil_frac", 0, 1))
    budget = max(n for n in COUNTS if n <= subject.most)
    found = best_allocation(bins, budget, law)
    best_way = max(WAYS, key=lambda way: uniform(bins, budget, law, way))
    return Study(
        name="allocation",
        title=f"{budget} answers' worth of tokens a question, dealt out by difficulty",
        figures={
            "budget_answers": budget,
            "right_frac": mean_right(found),
            "right_same_samples_frac": uniform(bins, budget, law, "samples"),
            "best_same_way": best_way,
            "right_same_way_frac": uniform(bins, budget, law, best_way),
            "saving_over_samples_ratio": saving_ratio(bins, budget, law, "samples"),
            "saving_over_same_way_ratio": saving_ratio(bins, budget, law, best_way),
        },
        rows=tuple(
            {"success_frac": p, "way": c.way, "num_answers": c.num_answers, "right_frac": c.right_frac}
            for p, c in zip(bins, found, strict=True)
        ),
    )


def _equivalents(subject: Subject, values: Mapping[str, str]) -> Study:
    """Each way's operations, alone and with its cache reads at the device's intensity, dense and sparse."""
    _word(values, "cost", "equivalent-flops")
    solver = subject.deployments["solver"]
    intensity = intensity_flops_per_byte(solver.cluster.device, get_format(solver.formats.activations).rates[0])
    element_bytes = get_format(solver.formats.kv).bytes_per_element
    models = {role: d.model for role, d in subject.deployments.items()}
    retained, block = (_number(values, name, 0, 1e9) for name in ("sparse_kept_tokens", "sparse_block_tokens"))
    loss = _number(values, "sparse_loss", 0, 1)
    rows = list[dict[str, Any]]()
    for sparsity in (None, Sparsity(kept_tokens=retained, block_tokens=int(block))) if retained else (None,):
        for samples, graph in zip(subject.samples, subject.graphs, strict=True):
            price = equivalent(solver.model, graph, intensity, sparsity=sparsity, cache_element_bytes=element_bytes)
            covered = subject.questions.coverage(samples or 1) * (1.0 - loss if sparsity else 1.0)
            rows.append(
                {
                    "attention": "sparse" if sparsity else "dense",
                    "num_samples": samples,
                    "parameter_flops": answer_flops(graph, models),
                    "linear_flops": price.linear_flops,
                    "attention_flops": price.attention_flops,
                    "computed_flops": price.computed_flops,
                    "cache_flops": price.cache_flops,
                    "total_flops": price.total_flops,
                    "coverage_frac": covered,
                }
            )
    for name, cost in (("on_front_of_operations", "computed_flops"), ("on_front_of_equivalents", "total_flops")):
        front = frontier(rows, lambda row, cost=cost: row[cost], lambda row: row["coverage_frac"])
        for row in rows:
            row[name] = any(row is one for one in front)
    return Study(
        name="equivalent_flops",
        title="Operations, and operations with cache reads at the device's intensity",
        figures={"intensity_flops_per_byte": intensity, "sparse_loss_frac": loss},
        rows=tuple(rows),
    )


def _stopping(subject: Subject, values: Mapping[str, str]) -> Study:
    """The fewest tries after which another one adds less than a given gain."""
    least, ceiling = _number(values, "stop_gain", 1e-9, 1), _number(values, "ceiling", 1e-9, 1)
    success = subject.questions.mean_frac
    if success > ceiling:
        raise ScenarioError(f"reasoning_knob: ceiling = {ceiling:g} is below success = {success:g}; write more.")
    advised = saturation_tries(success / ceiling, least, ceiling)
    reached = ceiling * float(coverage(success / ceiling, advised))
    return Study(
        name="stop",
        title=f"Where another {'round' if subject.shape == 'sequential-revision' else 'try'} adds less than {least:g}",
        figures={
            "advised_tries": advised,
            "coverage_frac": reached,
            "ceiling_frac": ceiling,
            "next_gain_frac": ceiling * float(coverage(success / ceiling, advised + 1)) - reached,
        },
    )


def _amortised(subject: Subject, values: Mapping[str, str]) -> Study:
    """A question's cost where thinking beforehand is shared by all about one context."""
    cheap, hits = _number(values, "idle_price_ratio", 1e-9, 1e9), _number(values, "hit_frac", 0, 1)
    knobs, plain = subject.knobs, subject.problem.answer_tokens
    graph = graph_of(
        "sleep-time-compute",
        Problem(prompt_tokens=0.0, answer_tokens=plain),
        num_questions=1,
        thought_ratio=getattr(knobs, "thought_ratio", 1.0),
        online_frac=getattr(knobs, "online_frac", 0.2),
    )
    online = graph.written_tokens(online_only=True)
    shared = SleepTimePass(
        thought_tokens=graph.written_tokens() - online,
        short_tokens=online,
        plain_tokens=plain,
        online_price_ratio=1.0 / cheap,
        profiting_frac=hits,
    )
    most = max(1, int(getattr(knobs, "num_questions", 1)))
    counts = sorted({1, 2, 5, 10, 20, 50, most})
    usd = subject.one_call_usd
    return Study(
        name="amortised",
        title="A question with thinking beforehand, over one without",
        figures={
            "num_questions": most,
            "cost_over_plain_ratio": shared.cost_tokens(most) / shared.plain_cost_tokens,
            "alone_over_shared_ratio": shared.cost_tokens(1) / shared.cost_tokens(most),
            "break_even_questions": shared.even_questions if isfinite(shared.even_questions) else None,
            "online_tokens": shared.online_tokens,
        },
        rows=tuple(
            {
                "num_questions": count,
                "cost_over_plain_ratio": (ratio := shared.cost_tokens(count) / shared.plain_cost_tokens),
                "usd": None if usd is None else usd * ratio,
            }
            for count in counts
        ),
    )


def _split(subject: Subject, values: Mapping[str, str]) -> Study:
    """The best split of a budget of answers' worth of tokens, and the first budget at which checks catch up."""
    budget = _number(values, "budget_tokens", 1, 1e9) / subject.problem.answer_tokens
    trial = Trial(
        success_frac=subject.questions.bins(NUM_QUESTIONS),
        wrong=WrongAnswers(
            num_answers=subject.scenario.wrong_answers or 1, rank_ratio=_number(values, "wrong_rank", 0, 10)
        ),
        checker=_checker(subject, values),
        check_ratio=float(getattr(subject.knobs, "check_ratio", 1.0)),
    )
    counts = [n for n in COUNTS if n <= max(1.0, budget)]
    wide = [n for n in COUNTS if n <= _number(values, "most_checks", 1, COUNTS[-1])]
    votes = [trial.vote(n) for n in COUNTS]
    checks = [split for n in COUNTS for split in trial.check(n, wide)]
    within = [s for s in (*[trial.vote(n) for n in counts], *checks) if s.answers_ratio <= budget]
    best = max(within, key=lambda s: (s.right_frac, -s.answers_ratio))
    fronts = [frontier(ways, _spent, _right) for ways in (votes, checks)]
    goal = fronts[0][-1].right_frac - NEAR_FRAC
    vote, check = (cheapest(front, _right, goal) for front in fronts)
    tokens = subject.problem.answer_tokens
    return Study(
        name="split",
        title=f"{budget:.3g} answers' worth of tokens, between answers and checks of them",
        figures={
            "best_solutions": best.num_solutions,
            "best_checks": best.num_checks,
            "right_frac": best.right_frac,
            "vote_right_frac": max(v.right_frac for v in within if not v.num_checks),
            "catch_up_tokens": check.answers_ratio * tokens if check else None,
            "catch_up_ratio": check.answers_ratio / vote.answers_ratio if check and vote else None,
            **{f"{name}_exponent": growth(fronts[1]).get(name) for name in ("solutions", "checks")},
        },
        rows=tuple(
            {
                "tokens": s.answers_ratio * tokens,
                "num_solutions": s.num_solutions,
                "num_checks": s.num_checks,
                "right_frac": s.right_frac,
            }
            for s in frontier(within, _spent, _right)
        ),
    )


def _checker(subject: Subject, values: Mapping[str, str]) -> Checker:
    """Checks that say yes as often as the knobs state; without those, as the scenario's verifier, or never wrong."""
    plain = subject.checker or Checker(right_frac=1.0, wrong_frac=0.0)
    if not values["check_right_frac"] and not values["check_wrong_frac"]:
        return plain
    stated = {
        name: _number(values, f"check_{name}", 0, 1) if values[f"check_{name}"] else getattr(plain, name)
        for name in ("right_frac", "wrong_frac")
    }
    return Checker(**stated, evenness_ratio=_number(values, "check_evenness", 1e-9, 1e9))


def _spent(split: Split) -> float:
    return split.answers_ratio


def _right(split: Split) -> float:
    return split.right_frac


def _chains(subject: Subject, values: Mapping[str, str]) -> Study:
    """Chains in step and each at its own pace, with blocks rejected by a threshold that was calibrated beforehand."""
    _word(values, "mode", "asynchronous")
    knobs, seed, spread = subject.knobs, subject.scenario.seed or 0, _number(values, "block_spread", 0, 5)
    chains, blocks = int(getattr(knobs, "num_chains", 1)), int(getattr(knobs, "num_blocks", 1))
    scores = stream(seed, "chains/scores").beta(4.0, 2.0, NUM_SCORES)
    level = calibrated(scores, _number(values, "rejection_level", 0, 0.999999), seed)
    count, block = subject.num_questions * chains, subject.problem.answer_tokens / blocks
    drawn = drawn_rounds(count, blocks, block, spread, 0.0, stream(seed, "chains"))
    fresh = stream(seed, "chains/fresh").beta(4.0, 2.0, drawn.is_rejected.shape)
    rounds = Rounds(block_tokens=drawn.block_tokens, is_rejected=np.asarray(fresh <= level.threshold_frac))
    models = models_of(
        subject.deployments["draft"],
        subject.deployments["solver"],
        context_tokens=subject.problem.prompt_tokens + subject.problem.answer_tokens / 2,
        block_tokens=block,
        most_sequences=count,
    )
    step_s, own_s, large_s = in_step_s(rounds, models), own_pace_s(rounds, models), alone_s(rounds, models)
    return Study(
        name="chains",
        title=f"{count} chains of {blocks} blocks, in step and each at its own pace",
        figures={
            "in_step_s": step_s,
            "own_pace_s": own_s,
            "large_model_s": large_s,
            "waiting_frac": max(0.0, 1.0 - own_s / step_s),
            "speedup_ratio": step_s / own_s,
            "tokens_per_s": rounds.written_tokens / own_s,
            "threshold": level.threshold_frac,
            "rejection_level": level.level_frac,
            "held_out_rejected_frac": level.rejected_frac,
            "held_out_spread_frac": level.spread_frac,
            "rejected_frac": float(rounds.is_rejected.mean()),
        },
    )
