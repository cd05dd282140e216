"""Kinetics: strategies of a model family priced by operations alone and with cache reads, dense and sparse."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orrery.base.units import percent
from orrery.catalog.models import get_model
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.models.model import Model
from orrery.reasoning.frontier import cheapest, frontier
from orrery_papers.shared.answered import reasoned, study

LOW_COST_RATIO = 10.0
"""Up to so many times the cheapest dense strategy counts as low cost: [unstated] budgets."""

DIFFERS = "accuracies: recorded answers of each model and sparsity instead of one published number and a beta spread"


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """A model with a number of tries: what it costs and how many questions it covers."""

    model: Model
    num_tries: int
    computed_flops: float
    total_flops: float
    covered_frac: float


def predict(paper: Paper) -> Iterator[Prediction]:
    """Gains of sparse attention, one recorded question, and choices with and without traffic."""
    family, trace = paper.setups["family"], paper.setups["trace"]
    found = strategies(family)
    yield from _gains(found["dense"], found["sparse"])
    yield from _recorded(trace)
    yield from _choices(found["dense"])


def strategies(setup: Setup) -> dict[str, list[Strategy]]:
    """Every model with every number of tries, dense and sparse."""
    lengths = setup.numbers("trace_tokens")
    found: dict[str, list[Strategy]] = {"dense": [], "sparse": []}
    for name, one_frac in zip(setup.word("models").split(","), setup.numbers("one_try_fracs"), strict=True):
        model = get_model(name.strip())
        for row in priced(setup, name.strip(), sum(lengths) / len(lengths), setup.numbers("tries_swept"), one_frac):
            found[row["attention"]].append(
                Strategy(
                    model=model,
                    num_tries=row["num_samples"],
                    computed_flops=row["computed_flops"],
                    total_flops=row["total_flops"],
                    covered_frac=row["coverage_frac"],
                )
            )
    return found


def priced(
    setup: Setup, model: str, answer_tokens: float, tries: Sequence[float] = (1,), success: float = 0.5
) -> Sequence[Mapping[str, Any]]:
    """``orrery estimate --reasoning majority-vote --reasoning-knob cost=equivalent-flops``, a row for each way."""
    knobs: dict[str, Any] = {"cost": "equivalent-flops"}
    if retained := setup.number("num_kept_tokens"):
        knobs |= {"sparse_kept_tokens": retained, "sparse_block_tokens": setup.number("num_search_block_tokens")}
    found = reasoned(
        "majority-vote",
        knobs,
        model=model,
        device=setup.word("device"),
        weights=setup.word("intensity_format"),
        kv="bf16",
        batch=1,
        input_tokens=int(setup.number("input_tokens")),
        output_tokens=round(answer_tokens),
        samples=",".join(f"{n:g}" for n in tries),
        success=success,
        evenness=setup.number("difficulty_evenness_ratio", 1.0),
    )
    return study(found, "equivalent_flops").rows


def _gains(dense: list[Strategy], sparse: list[Strategy]) -> Iterator[Prediction]:
    """The largest gain at any dense frontier's price among cheap ones, and the gain at the dearest price of all."""
    fronts = [frontier(ways, _total, _covered) for ways in (dense, sparse)]
    low = [s.total_flops for s in fronts[0] if s.total_flops <= LOW_COST_RATIO * fronts[0][0].total_flops]
    for claim, budgets in (("gain-low-cost", low), ("gain-high-cost", [max(s.total_flops for s in dense)])):
        gain, at, pair = max((_gain(fronts, budget), budget, claim) for budget in budgets)
        best = [_best_within(front, at) for front in fronts]
        words = " against ".join(
            f"{s.model.name} x {s.num_tries}: {percent(s.covered_frac, 1)}" for s in best[::-1] if s
        )
        yield Prediction(claim=pair, predicted=gain, because=f"at {at:.2g} equivalent flops {words}", differs=DIFFERS)


def _gain(fronts: list[list[Strategy]], budget: float) -> float:
    dense, sparse = (_best_within(front, budget) for front in fronts)
    return (sparse.covered_frac if sparse else 0.0) - (dense.covered_frac if dense else 0.0)


def _best_within(front: list[Strategy], budget: float) -> Strategy | None:
    """The last of a frontier that the budget pays for."""
    return next((way for way in reversed(front) if _total(way) <= budget), None)


def _recorded(setup: Setup) -> Iterator[Prediction]:
    """Mean over the recorded answers to one question."""
    prices = [priced(setup, setup.word("model"), tokens)[0] for tokens in setup.numbers("trace_tokens")]
    computed = sum(p["computed_flops"] for p in prices) / len(prices)
    cache = sum(p["cache_flops"] for p in prices) / len(prices)
    words = f"{len(prices)} answers"
    yield Prediction(
        claim="computed",
        predicted=computed,
        because=words,
        differs="the shared embedding, counted twice there",
    )
    yield Prediction(claim="cache", predicted=cache, because=words)
    attention = sum(p["attention_flops"] + p["cache_flops"] for p in prices)
    attention /= sum(p["linear_flops"] for p in prices)
    yield Prediction(claim="attention-dominates", predicted=attention, because=f"attention and its traffic, {words}")


def _choices(dense: list[Strategy]) -> Iterator[Prediction]:
    """Excess cost of a choice by operations, and the point where tries overtake size."""
    by_flops, by_all = (frontier(dense, price, _covered) for price in (_computed, _total))
    pairs = [(s, found) for s in by_flops if (found := cheapest(by_all, _covered, s.covered_frac))]
    chosen, better = max(pairs, key=lambda pair: pair[0].total_flops / pair[1].total_flops)
    ratio = chosen.total_flops / better.total_flops
    words = f"{chosen.model.name} x {chosen.num_tries} where {better.model.name} x {better.num_tries} does as well"
    yield Prediction(claim="costlier-choice", predicted=ratio, because=words, differs=DIFFERS)
    once = next((i for i, s in enumerate(by_all) if s.num_tries > 1), len(by_all))
    path = ", ".join(f"{s.model.name} x {s.num_tries}" for s in by_all[: once + 1])
    size = float(by_all[max(once, 1) - 1].model.num_parameters)
    yield Prediction(claim="threshold", predicted=size, because=f"cheapest first: {path}", differs=DIFFERS)


def _total(strategy: Strategy) -> float:
    return strategy.total_flops


def _computed(strategy: Strategy) -> float:
    return strategy.computed_flops


def _covered(strategy: Strategy) -> float:
    return strategy.covered_frac
