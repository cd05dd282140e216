"""Sleep-time compute: what a question costs when one thinking pass serves several."""

from collections.abc import Iterator

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.reasoning.amortise import SleepTimePass
from orrery.reasoning.graph import Graph, Problem
from orrery.reasoning.shape import graph_of

DIFFERS = "the length of the thinking pass, which was not found: the longer it is, the more sharing it saves"


def predict(paper: Paper) -> Iterator[Prediction]:
    """Alone against shared."""
    setup = paper.setups["multi-query"]
    sleep, count = sleep_of(setup), setup.number("num_questions")
    alone, shared = sleep.cost_tokens(1), sleep.cost_tokens(count)
    words = (
        f"{alone:,.0f} idle tokens a question alone, {shared:,.0f} with {count:g} of them; "
        f"{sleep.plain_cost_tokens:,.0f} without thinking beforehand, better below {sleep.even_questions:.2g} questions"
    )
    yield Prediction(claim="cost-per-question", predicted=alone / shared, because=words, differs=DIFFERS)


def sleep_of(setup: Setup) -> SleepTimePass:
    """What the calls of the shape write, beforehand and then."""
    plain = setup.number("output_tokens")
    graph = _graph(setup, Problem(prompt_tokens=0.0, answer_tokens=plain))
    online = graph.written_tokens(online_only=True)
    return SleepTimePass(
        thought_tokens=graph.written_tokens() - online, short_tokens=online, plain_tokens=plain,
        online_price_ratio=setup.number("online_price_ratio"), profiting_frac=setup.number("profiting_frac"),
    )  # fmt: skip


def _graph(setup: Setup, problem: Problem) -> Graph:
    """One question and the pass before it."""
    knobs = {name: setup.number(name) for name in ("thought_ratio", "online_frac")}
    return graph_of("sleep-time-compute", problem, num_questions=1, **knobs)
