"""ETS: drawn tree searches pruned by score alone and by what candidates hold in the cache."""

from collections.abc import Iterator

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.memory import Infeasible
from orrery.reasoning.cost import GraphCost, cost
from orrery.reasoning.graph import Graph
from orrery.reasoning.tree.search import Growth, Step, search, step_calls
from orrery_papers.shared.setup import deployment

BASELINE, OURS = "balanced-tree", "shared-cache-tree"
NUM_DRAWN = 5
DIFFERS = (
    "scores of a trained verifier lie closer together than drawn ones, so its balanced search prunes less by itself"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """Throughput, then the cache over all steps."""
    setup = paper.setups["math500"]
    before, after = ([_searched(setup, rule, seed) for seed in range(NUM_DRAWN)] for rule in (BASELINE, OURS))
    slow, fast = _costs(setup, before), _costs(setup, after)
    if slow and fast:
        ratio = sum(c.time_s for c in slow) / sum(c.time_s for c in fast)
        words = f"for eight searches {_describe(slow)} against {_describe(fast)}"
        yield Prediction(claim="throughput", predicted=ratio, because=words, differs=DIFFERS)
    retained, held = (sum(s.kept_tokens for steps in runs for s in steps) / NUM_DRAWN for runs in (before, after))
    words = f"{retained:,.0f} tokens against {held:,.0f}, summed over the steps of a search"
    yield Prediction(claim="cache-reduction", predicted=retained / held, because=words, differs=DIFFERS)


def _searched(setup: Setup, rule: str, seed: int) -> list[Step]:
    growth = Growth(
        width=int(setup.number("num_search_candidates")),
        prompt_tokens=setup.number("input_tokens"),
        step_tokens=setup.number("search_step_mean_tokens"),
        most_step_tokens=setup.number("search_step_most_tokens"),
        most_tokens=setup.number("search_path_most_tokens"),
        end_frac=setup.number("search_end_frac"),
        new_idea_ratio=setup.number("new_idea_ratio"),
        seed=seed,
    )
    knobs = {"score_temperature_ratio": setup.number("score_temperature_ratio")}
    if rule == OURS:
        knobs |= {name: setup.number(name) for name in ("node_price_ratio", "idea_price_ratio")}
    return search(growth, rule, **knobs)


def _costs(setup: Setup, runs: list[list[Step]]) -> list[GraphCost]:
    """Searches that run side by side, each step read by the verifier; none where the model does not fit."""
    engine = setup.word("engine")
    served = {
        role: deployment(setup, model=setup.word(line), engine=engine)
        for role, line in (("solver", "model"), ("verifier", "verifier_model"))
    }
    calls = (step_calls(steps, int(setup.number("num_searches"))) for steps in runs)
    found = [cost(Graph(calls=each), served) for each in calls]
    return [c for c in found if not isinstance(c, Infeasible)]


def _describe(costs: list[GraphCost]) -> str:
    time_s, energy_j, read_bytes, most_bytes = (
        sum(values) / len(costs)
        for values in zip(*((c.time_s, c.energy_j, c.cache_read_bytes, c.peak_kept_bytes) for c in costs), strict=True)
    )
    cache = f"{read_bytes / 1e12:.0f} TB of cache read and {most_bytes / 1e9:.0f} GB held"
    return f"{time_s:.0f} s, {energy_j / 1e3:.0f} kJ, {cache}"
