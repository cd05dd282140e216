"""Sleep-time compute: what a question costs when one thinking pass serves several."""

from collections.abc import Iterator
from typing import Any

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.ask import Answer, estimate

DIFFERS = "the length of the thinking pass, which was not found: the longer it is, the more sharing it saves"


def predict(paper: Paper) -> Iterator[Prediction]:
    """Alone against shared."""
    setup = paper.setups["multi-query"]
    found = amortised(setup)
    yield Prediction(
        claim="cost-per-question",
        predicted=found["alone_over_shared_ratio"],
        because=f"with {found['num_questions']} questions {found['cost_over_plain_ratio']:.2f} times the cost of one "
        f"without thinking beforehand, which is better below {found['break_even_questions']:.2g} questions",
        differs=DIFFERS,
    )


def amortised(setup: Setup) -> dict[str, Any]:
    """``orrery estimate --reasoning sleep-time-compute`` with the set-up's prices and lengths."""
    knobs = {
        "idle_price_ratio": 1.0 / setup.number("online_price_ratio"),
        "hit_frac": setup.number("profiting_frac"),
        "num_questions": int(setup.number("num_questions")),
        "thought_ratio": setup.number("thought_ratio"),
        "online_frac": setup.number("online_frac"),
    }
    found = estimate(
        model="llama-3.1-8b",
        device="h100-sxm",
        batch=1,
        input_tokens=256,
        output_tokens=int(setup.number("output_tokens")),
        reasoning="sleep-time-compute",
        reasoning_knob=[f"{name}={value:g}" for name, value in knobs.items()],
    )
    assert isinstance(found, Answer)
    return found.to_json()["answer"]["studies"]["amortised"]
