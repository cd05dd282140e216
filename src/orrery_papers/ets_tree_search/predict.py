"""ETS: drawn tree searches pruned by score alone and by what candidates hold in the cache."""

from collections.abc import Iterator

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.answer_ways import SampleCount
from orrery_papers.shared.answered import reasoned

BASELINE, OURS = "balanced-tree", "shared-cache-tree"
NUM_DRAWN = 5
DIFFERS = (
    "scores of a trained verifier lie closer together than drawn ones, so its balanced search prunes less by itself"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """Throughput, then the cache over all steps."""
    setup = paper.setups["math500"]
    before, after = ([searched(setup, rule, seed) for seed in range(NUM_DRAWN)] for rule in (BASELINE, OURS))
    ratio = sum(way.time_s for way in before) / sum(way.time_s for way in after)
    words = f"for eight searches {_describe(before)} against {_describe(after)}"
    yield Prediction(claim="throughput", predicted=ratio, because=words, differs=DIFFERS)
    retained, held = (sum(map(held_bytes, ways)) / NUM_DRAWN for ways in (before, after))
    words = f"{retained / 1e9:,.0f} GB against {held / 1e9:,.0f} GB, summed over the steps of the searches"
    yield Prediction(claim="cache-reduction", predicted=retained / held, because=words, differs=DIFFERS)


def searched(setup: Setup, rule: str, seed: int) -> SampleCount:
    """``orrery estimate --reasoning tree-search``: searches that run side by side, each step read by the verifier."""
    step, end = setup.number("search_step_mean_tokens"), setup.number("search_end_frac")
    answer = step / end
    knobs = {
        "prune": rule,
        "num_steps": 1.0 / end,
        "seed": seed,
        "longest_step_ratio": setup.number("search_step_most_tokens") / step,
        "longest_path_ratio": setup.number("search_path_most_tokens") / answer,
        "new_idea_ratio": setup.number("new_idea_ratio"),
        "score_temperature_ratio": setup.number("score_temperature_ratio"),
        "node_price_ratio": setup.number("node_price_ratio"),
        "idea_price_ratio": setup.number("idea_price_ratio"),
    }
    found = reasoned(
        "tree-search",
        knobs,
        model=setup.word("model"),
        verifier_model=setup.word("verifier_model"),
        device=setup.word("device"),
        engine=setup.word("engine"),
        batch=int(setup.number("num_searches")),
        samples=int(setup.number("num_search_candidates")),
        input_tokens=int(setup.number("input_tokens")),
        output_tokens=round(answer),
    )
    return found.ways[0]


def held_bytes(way: SampleCount) -> float:
    """Cache that each step's candidates and their paths hold, summed over the steps."""
    return sum(call.kept_bytes for call in way.calls if call.name.startswith("step"))


def _describe(ways: list[SampleCount]) -> str:
    time_s, energy_j, most_bytes = (
        sum(values) / len(ways)
        for values in zip(*((way.time_s, way.energy_j, way.kv_peak_bytes) for way in ways), strict=True)
    )
    return f"{time_s:.0f} s, {energy_j / 1e3:.0f} kJ an answer, {most_bytes / 1e9:.0f} GB of cache held"
