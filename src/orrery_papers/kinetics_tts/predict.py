"""Kinetics: strategies of a model family priced by operations alone and with cache reads, dense and sparse."""

from collections.abc import Iterator
from dataclasses import dataclass

from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.models.model import Model
from orrery.reasoning.coverage import Difficulty
from orrery.reasoning.equivalent import Equivalent, Sparsity, equivalent, intensity_flops_per_byte
from orrery.reasoning.frontier import best_within, cheapest, frontier
from orrery.reasoning.graph import Problem
from orrery.reasoning.shape import graph_of

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
    dense, sparse = strategies(family, None), strategies(family, _sparsity(family))
    yield from _gains(dense, sparse)
    yield from _recorded(trace)
    yield from _choices(dense)


def strategies(setup: Setup, sparsity: Sparsity | None) -> list[Strategy]:
    """Every model with every number of tries."""
    lengths = setup.numbers("trace_tokens")
    problem = Problem(prompt_tokens=setup.number("input_tokens"), answer_tokens=sum(lengths) / len(lengths))
    found = list[Strategy]()
    for name, one_frac in zip(setup.word("models").split(","), setup.numbers("one_try_fracs"), strict=True):
        model = get_model(name.strip())
        questions = Difficulty(mean_frac=one_frac, evenness_ratio=setup.number("difficulty_evenness_ratio"))
        for tries in map(int, setup.numbers("tries_swept")):
            price = _price(setup, model, problem, tries, sparsity)
            found.append(
                Strategy(
                    model=model,
                    num_tries=tries,
                    computed_flops=price.computed_flops,
                    total_flops=price.total_flops,
                    covered_frac=questions.coverage(tries),
                )
            )
    return found


def _gains(dense: list[Strategy], sparse: list[Strategy]) -> Iterator[Prediction]:
    """The largest gain at any dense frontier's price among cheap ones, and the gain at the dearest price of all."""
    fronts = [frontier(ways, _total, _covered) for ways in (dense, sparse)]
    low = [s.total_flops for s in fronts[0] if s.total_flops <= LOW_COST_RATIO * fronts[0][0].total_flops]
    for claim, budgets in (("gain-low-cost", low), ("gain-high-cost", [max(s.total_flops for s in dense)])):
        gain, at, pair = max((_gain(fronts, budget), budget, claim) for budget in budgets)
        best = [best_within(front, _total, at) for front in fronts]
        words = " against ".join(f"{s.model.name} x {s.num_tries}: {s.covered_frac:.1%}" for s in best[::-1] if s)
        yield Prediction(claim=pair, predicted=gain, because=f"at {at:.2g} equivalent flops {words}", differs=DIFFERS)


def _gain(fronts: list[list[Strategy]], budget: float) -> float:
    dense, sparse = (best_within(front, _total, budget) for front in fronts)
    return (sparse.covered_frac if sparse else 0.0) - (dense.covered_frac if dense else 0.0)


def _recorded(setup: Setup) -> Iterator[Prediction]:
    """Mean over the recorded answers to one question."""
    model, prompt = get_model(setup.word("model")), setup.number("input_tokens")
    prices = [
        _price(setup, model, Problem(prompt_tokens=prompt, answer_tokens=tokens), 1, None)
        for tokens in setup.numbers("trace_tokens")
    ]
    computed = sum(p.computed_flops for p in prices) / len(prices)
    cache = sum(p.cache_flops for p in prices) / len(prices)
    words = f"{len(prices)} answers, {_intensity(setup):.4g} flops a byte"
    yield Prediction(
        claim="computed",
        predicted=computed,
        because=words,
        differs="the shared embedding, counted twice there",
    )
    yield Prediction(claim="cache", predicted=cache, because=words)
    attention = sum(p.attention_flops + p.cache_flops for p in prices) / sum(p.linear_flops for p in prices)
    yield Prediction(claim="attention-dominates", predicted=attention, because=f"attention and its traffic, {words}")


def _choices(dense: list[Strategy]) -> Iterator[Prediction]:
    """What a choice by operations costs too much, and where tries overtake size."""
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


def _price(setup: Setup, model: Model, problem: Problem, tries: int, sparsity: Sparsity | None) -> Equivalent:
    graph = graph_of("majority-vote", problem, num_samples=tries)
    return equivalent(model, graph, _intensity(setup), sparsity=sparsity)


def _sparsity(setup: Setup) -> Sparsity:
    blocks = int(setup.number("num_search_block_tokens"))
    return Sparsity(kept_tokens=setup.number("num_kept_tokens"), block_tokens=blocks)


def _intensity(setup: Setup) -> float:
    return intensity_flops_per_byte(get_device(setup.word("device")), setup.word("intensity_format"))


def _total(strategy: Strategy) -> float:
    return strategy.total_flops


def _computed(strategy: Strategy) -> float:
    return strategy.computed_flops


def _covered(strategy: Strategy) -> float:
    return strategy.covered_frac
