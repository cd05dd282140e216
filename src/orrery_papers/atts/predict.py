"""ATTS: drawn chains of a small and a large model, in step and each at its own pace."""

from collections.abc import Iterator

from orrery.engine.streams import stream
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.reasoning.chains import Models, Rounds, alone_s, drawn_rounds, in_step_s, own_pace_s
from orrery.reasoning.paces import models_of
from orrery_papers.shared.setup import deployment

QUESTIONS = 8
"""In flight when throughput is measured: [unstated] questions."""

DIFFERS = "what the paper compares with, its devices and its lengths, none of which were found"


def predict(paper: Paper) -> Iterator[Prediction]:
    """One question's latency, and several questions' throughput."""
    setup = paper.setups["aime"]
    chains = int(setup.number("num_chains"))
    rounds, models = _drawn(setup, chains), _models(setup, chains)
    waiting_s, own_s = in_step_s(rounds, models), own_pace_s(rounds, models)
    large_s = alone_s(rounds, models)
    words = f"{waiting_s:.0f} s in step, {own_s:.0f} s at their own pace, {large_s:.0f} s by the large model alone"
    yield Prediction(claim="speedup", predicted=waiting_s / own_s, because=words, differs=DIFFERS)
    many, served = _drawn(setup, QUESTIONS * chains), _models(setup, QUESTIONS * chains)
    rates = [many.written_tokens / seconds for seconds in (own_pace_s(many, served), in_step_s(many, served))]
    words = f"{rates[0]:,.0f} tokens/s against {rates[1]:,.0f} with {QUESTIONS} questions in flight"
    yield Prediction(claim="throughput", predicted=rates[0] / rates[1], because=words, differs=DIFFERS)


def _drawn(setup: Setup, chains: int) -> Rounds:
    return drawn_rounds(
        chains, int(setup.number("num_rounds")), setup.number("block_mean_tokens"), setup.number("block_spread_ratio"),
        setup.number("rejected_frac"), stream(0, "chains"),
    )  # fmt: skip


def _models(setup: Setup, chains: int) -> Models:
    """Paces at half of a chain's length."""
    context = setup.number("input_tokens") + setup.number("num_rounds") * setup.number("block_mean_tokens") / 2
    draft = deployment(setup, model=setup.word("small_model"), layout=setup.word("small_layout"))
    return models_of(
        draft, deployment(setup), context_tokens=context, block_tokens=setup.number("block_mean_tokens"),
        most_sequences=chains,
    )  # fmt: skip
