"""ATTS: drawn chains of a small and a large model, in step and each at its own pace."""

from collections.abc import Iterator
from typing import Any

from orrery.base.units import percent
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.ask import Answer, estimate
from orrery_papers.shared.setup import settings_of

QUESTIONS = 8
"""Questions in flight when throughput is measured: [unstated] questions."""

DIFFERS = "what the paper compares with, its devices and its lengths, none of which were found"


def predict(paper: Paper) -> Iterator[Prediction]:
    """One question's latency, and several questions' throughput."""
    setup = paper.setups["aime"]
    one, many = chains(setup, 1), chains(setup, QUESTIONS)
    yield Prediction(
        claim="speedup",
        predicted=one["speedup_ratio"],
        because=f"{one['in_step_s']:.0f} s in step, {one['own_pace_s']:.0f} s at their own pace, "
        f"{one['large_model_s']:.0f} s by the large model alone; of new scores "
        f"{percent(one['held_out_rejected_frac'], 1)} are rejected where {percent(one['rejection_level'])} are "
        "asked for",
        differs=DIFFERS,
    )
    yield Prediction(
        claim="throughput",
        predicted=many["speedup_ratio"],
        because=f"{many['tokens_per_s']:,.0f} tokens/s against {many['tokens_per_s'] / many['speedup_ratio']:,.0f} "
        f"with {QUESTIONS} questions in flight",
        differs=DIFFERS,
    )


def chains(setup: Setup, questions: int) -> dict[str, Any]:
    """``orrery estimate --reasoning speculative-chains`` with mode=asynchronous, for so many questions at once."""
    rounds, block = int(setup.number("num_rounds")), setup.number("block_mean_tokens")
    knobs = {
        "num_chains": int(setup.number("num_chains")),
        "num_blocks": rounds,
        "rejection_level": setup.number("rejected_frac"),
        "block_spread": setup.number("block_spread_ratio"),
    }
    settings: dict[str, Any] = settings_of(setup) | {
        "batch": questions,
        "input_tokens": int(setup.number("input_tokens")),
        "output_tokens": round(rounds * block),
        "draft_model": setup.word("small_model"),
        "reasoning": "speculative-chains",
        "reasoning_knob": ["mode=asynchronous", *(f"{name}={value:g}" for name, value in knobs.items())],
    }
    found = estimate(**settings)
    assert isinstance(found, Answer)
    return found.to_json()["answer"]["studies"]["chains"]
